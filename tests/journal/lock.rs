//! One writer at a time, from the opening to the end.

use std::{
    env, fs,
    io::{BufRead, BufReader, ErrorKind, Write},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
};

use tower_throttle::{
    Limiter, Quota,
    audit::journal::{Journal, files, verify},
};

use crate::{Folder, LONG};

const PATH: &str = "JOURNAL_TO_HOLD";

/// Holds a journal open until it is told to stop, if it is told which.
#[test]
fn holder() {
    let Some(path) = env::var_os(PATH) else {
        return;
    };
    let journal = Journal::open(path).rotate_at_bytes(2_000).build().unwrap();
    let limiter = Limiter::builder()
        .quota("q", Quota::per_second(1_000).burst(100))
        .audit(journal.clone())
        .build()
        .unwrap();
    println!("\nholding");
    for line in std::io::stdin().lines() {
        let count: u32 = line.unwrap().parse().unwrap();
        for _ in 0..count {
            limiter.try_acquire(1).unwrap();
        }
        journal.flush(LONG).unwrap();
        println!("\nwritten");
    }
    journal.close(LONG).unwrap();
}

/// Another process that has the journal open.
struct Holder {
    child: Child,
    stdin: ChildStdin,
    lines: Box<dyn Iterator<Item = String>>,
}

impl Holder {
    fn new(path: &Path) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "lock::holder", "--nocapture"])
            .env(PATH, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut holder = Self {
            child,
            stdin,
            lines: Box::new(stdout.lines().map(Result::unwrap)),
        };
        holder.says("holding");
        holder
    }

    fn says(&mut self, word: &str) {
        assert!(self.lines.any(|line| line == word), "it ended early");
    }

    fn writes(&mut self, count: u32) {
        writeln!(self.stdin, "{count}").unwrap();
        self.says("written");
    }
}

fn is_refused(path: &Path) {
    let error = Journal::open(path).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ResourceBusy);
    let text = error.to_string();
    assert!(text.contains("is open in another journal"), "{text}");
    assert!(text.contains("audit.jsonl.lock"), "{text}");
}

/// It is the second that is refused, as it opens it, and the first goes on.
#[test]
fn a_journal_that_another_process_has_open_is_refused() {
    let folder = Folder::new();
    let mut holder = Holder::new(&folder.file());
    for round in 0..3 {
        is_refused(&folder.file());
        // Over files that are begun meanwhile, too.
        holder.writes(30);
        assert!(files(folder.file()).unwrap().len() > 2 + round);
        // Readers are not hindered.
        assert!(
            !verify(files(folder.file()).unwrap(), |_| ())
                .unwrap()
                .closed
        );
    }
    is_refused(&folder.file());
    let Holder {
        mut child, stdin, ..
    } = holder;
    drop(stdin);
    assert!(child.wait().unwrap().success());
    drop(Journal::open(folder.file()).build().unwrap());
    assert!(
        verify(files(folder.file()).unwrap(), |_| ())
            .unwrap()
            .closed
    );
}

/// Nobody has to remove anything after a crash.
#[test]
fn a_process_that_is_killed_leaves_no_lock() {
    let folder = Folder::new();
    let mut holder = Holder::new(&folder.file());
    holder.writes(5);
    is_refused(&folder.file());
    holder.child.kill().unwrap();
    holder.child.wait().unwrap();
    drop(Journal::open(folder.file()).build().unwrap());
}

#[test]
fn a_journal_that_is_open_is_refused_by_any_of_its_names() {
    let folder = Folder::new();
    let journal = Journal::open(folder.file()).build().unwrap();
    is_refused(&folder.file());
    is_refused(&folder.0.join(".").join("audit.jsonl"));
    #[cfg(unix)]
    {
        let other = folder.0.join("other.jsonl");
        std::os::unix::fs::symlink(folder.file(), &other).unwrap();
        is_refused(&other);
    }
    // What is refused changed nothing, and others in the folder are free.
    drop(
        Journal::open(folder.0.join("another.jsonl"))
            .build()
            .unwrap(),
    );
    journal.close(LONG).unwrap();
    drop(Journal::open(folder.file()).build().unwrap());
    drop(journal);
    assert_eq!(verify([folder.file()], |_| ()).unwrap().lines, 5);
}

/// One that could not be opened does not keep others from it.
#[test]
fn a_journal_that_could_not_be_opened_is_let_go() {
    let folder = Folder::new();
    fs::write(folder.file(), "hello").unwrap();
    for _ in 0..2 {
        let error = Journal::open(folder.file()).build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }
    fs::remove_file(folder.file()).unwrap();
    drop(Journal::open(folder.file()).build().unwrap());
    // Nothing is put beside what is no file.
    let error = Journal::open(&folder.0).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(!folder.0.with_extension("lock").exists());
}
