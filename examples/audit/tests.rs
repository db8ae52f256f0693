//! The commands, as `main` runs them, on journals of their own.
#![allow(clippy::unwrap_used)]

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    time::Duration,
};

use tower_throttle::{
    Limiter, Quota,
    audit::journal::{Journal, files},
};

use crate::{args, run};

const LONG: Duration = Duration::from_secs(60);
const COMMANDS: [&str; 5] = ["verify", "report", "explain", "csv", "chart"];

/// A folder that is gone afterwards.
struct Folder(PathBuf);

impl Folder {
    /// With a journal of several files.
    fn with_journal() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("audit-{}-{}", process::id(), COUNT.fetch_add(1, SeqCst));
        let folder = Self(env::temp_dir().join(name));
        fs::create_dir_all(&folder.0).unwrap();
        folder.write();
        folder
    }

    fn file(&self) -> PathBuf {
        self.0.join("audit.jsonl")
    }

    /// Returns the hash of the last line.
    fn write(&self) -> String {
        let open = Journal::open(self.file()).rotate_at_bytes(3_000);
        let journal = open.build().unwrap();
        let limiter = Limiter::builder()
            .name("api")
            .quota("requests", Quota::per_second(10).burst(20))
            .audit(journal.clone())
            .build()
            .unwrap();
        for _ in 0..20 {
            limiter.try_acquire(1).unwrap();
        }
        journal.close(LONG).unwrap();
        journal.last_hash()
    }

    /// What a command says, or what is wrong.
    fn audit(&self, words: &[&str]) -> Result<String, String> {
        let words = words.iter().map(|word| match *word {
            "FILE" => self.file().into_os_string(),
            "--out" => format!("--out={}", self.0.join("audit.svg").display()).into(),
            word => OsString::from(word),
        });
        let command = args::parse(words).map_err(|error| error.to_string())?;
        let mut out = Vec::new();
        run(&command, &mut out).map_err(|error| error.to_string())?;
        Ok(String::from_utf8(out).unwrap())
    }

    fn command(&self, command: &str) -> Result<String, String> {
        match command {
            "explain" => self.audit(&["explain", "5", "FILE"]),
            "chart" => self.audit(&["chart", "FILE", "--out"]),
            _ => self.audit(&[command, "FILE"]),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

#[test]
fn every_command_reads_all_files_of_a_journal() {
    let folder = Folder::with_journal();
    assert!(files(folder.file()).unwrap().len() > 3);
    for command in COMMANDS {
        assert!(!folder.command(command).unwrap().is_empty(), "{command}");
    }
    let rows = folder.command("csv").unwrap();
    assert_eq!(rows.lines().count(), 21);
}

/// Whichever file it is: the oldest, which could be missing without a gap, one in the middle, or the last one.
#[test]
fn every_command_says_that_a_file_is_compressed() {
    let count = files(Folder::with_journal().file()).unwrap().len();
    for command in COMMANDS {
        for victim in [0, count / 2, count - 2] {
            let folder = Folder::with_journal();
            let file = &files(folder.file()).unwrap()[victim];
            let mut packed = file.clone().into_os_string();
            packed.push(".gz");
            let packed = Path::new(&packed);
            fs::remove_file(file).unwrap();
            fs::write(packed, b"\x1f\x8b\x08\0\0\0\0\0\0\x03").unwrap();
            let error = folder.command(command).unwrap_err();
            assert!(error.contains("gunzip it first"), "{command}: {error}");
            assert!(error.contains(packed.to_str().unwrap()), "{error}");
        }
    }
}

#[test]
fn explain_takes_its_number_first_or_last() {
    let folder = Folder::with_journal();
    let first = folder.audit(&["explain", "5", "FILE"]).unwrap();
    assert!(first.starts_with("Caller 5 of limiter"), "{first}");
    assert_eq!(folder.audit(&["explain", "FILE", "5"]).unwrap(), first);
    let named = ["explain", "--limiter", "api", "5", "FILE"];
    assert_eq!(folder.audit(&named).unwrap(), first);
    // Among several files, too.
    let all = files(folder.file()).unwrap();
    let all: Vec<_> = all.iter().map(|file| file.to_str().unwrap()).collect();
    for number in [1, all.len() + 1] {
        let mut words = vec!["explain"];
        words.extend(&all);
        words.insert(number, "5");
        assert_eq!(folder.audit(&words).unwrap(), first);
    }
    for words in [
        &["explain", "FILE"][..],
        &["explain", "FILE", "x"],
        &["explain"],
    ] {
        let error = folder.audit(words).unwrap_err();
        assert!(error.contains("number"), "{error}");
    }
    let error = folder.audit(&["explain", "5"]).unwrap_err();
    assert!(error.contains("needs a file"), "{error}");
}

#[test]
fn verify_expects_the_hash_that_was_kept() {
    let folder = Folder::with_journal();
    let kept = folder.write();
    let verify = |hash: &str| folder.audit(&["verify", "FILE", "--expect", hash]);
    let said = verify(&kept).unwrap();
    assert!(said.contains("is the one expected"), "{said}");
    assert_eq!(verify(&kept.to_uppercase()).unwrap(), said);
    // The journal went on.
    let place = said.split("line number ").nth(1).unwrap();
    let place = place.split(',').next().unwrap();
    let last = folder.write();
    let error = verify(&kept).unwrap_err();
    let place = format!("is that of line number {place}: the journal went on");
    assert!(error.contains(&place), "{error}");
    assert!(error.contains(&last) && error.contains(&kept), "{error}");
    // Its last line was cut off, which only the hash shows.
    let text = fs::read_to_string(folder.file()).unwrap();
    let lines: Vec<_> = text.split_inclusive('\n').collect();
    fs::write(folder.file(), lines[..lines.len() - 1].concat()).unwrap();
    assert!(folder.audit(&["verify", "FILE"]).is_ok());
    let error = verify(&last).unwrap_err();
    assert!(error.contains("which no line has"), "{error}");
    assert!(error.contains("line number "), "{error}");
    for bad in ["", "00", &"g".repeat(64)] {
        let error = verify(bad).unwrap_err();
        assert!(error.contains("64 hex digits"), "{error}");
    }
    let error = folder
        .audit(&["csv", "FILE", "--expect", &kept])
        .unwrap_err();
    assert!(error.contains("--expect is not for csv"), "{error}");
}
