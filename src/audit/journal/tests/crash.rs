use std::{
    env, fs,
    process::{Command, Stdio},
    sync::Arc,
    thread,
    time::Duration,
};

use serde_json::json;

use super::{
    super::{Journal, Sync, files},
    Dice, Fake, Folder, LONG, check, lines, note,
};

const FILE: &str = "JOURNAL_TO_WRITE";
/// The system hardly ever stops in the middle of a write, but it may make any write shorter than it was to be.
const PIECE: &str = "JOURNAL_PIECE";

/// Writes until it is killed, if it is told where.
#[test]
fn child() {
    let Some(path) = env::var_os(FILE) else {
        return;
    };
    let journal = Journal::open(path)
        .rotate_at_bytes(300_000)
        .sync(Sync::Never)
        .world(Fake {
            piece: env::var(PIECE).unwrap().parse().unwrap(),
            ..Fake::new()
        })
        .build()
        .unwrap();
    let name = Arc::from("child");
    let mut dice = Dice(7);
    for i in 0.. {
        if journal.admit().is_ok() {
            let text = "x".repeat(dice.below(2000));
            note(&journal, &name, i, json!({ "i": i, "text": text }));
        }
    }
}

#[cfg(unix)]
#[test]
fn killed_in_the_middle() {
    let folder = Folder::new();
    let mut dice = Dice(3);
    let mut torn = 0;
    let mut written = 0;
    for round in 0..50 {
        let length = || -> u64 {
            let all = files(folder.file()).unwrap().into_iter();
            // One may be renamed while we look.
            all.map(|file| fs::metadata(file).map_or(0, |data| data.len()))
                .sum()
        };
        let length_before = length();
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "audit::journal::tests::crash::child"])
            .env(FILE, folder.file())
            .env(PIECE, if round % 3 == 0 { "1000000" } else { "61" })
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Somewhere in its work, seldom in its beginning.
        if round % 10 != 0 {
            super::until(|| length() > length_before + 1000);
        }
        thread::sleep(Duration::from_millis(dice.roll(40)));
        child.kill().unwrap();
        child.wait().unwrap();
        if !folder.file().exists() && files(folder.file()).unwrap().is_empty() {
            continue;
        }
        let before = check(&folder.file());
        assert!(!before.closed, "killed, but closed, in round {round}");
        torn += u64::from(before.torn.is_some());
        written = before.lines;
        // Half of the time the next child has to find its way by itself.
        if round % 2 == 0 {
            let journal = Journal::open(folder.file()).build().unwrap();
            journal.close(LONG).unwrap();
            let after = check(&folder.file());
            assert!(after.closed && after.torn.is_none() && after.lost == 0);
            assert!(after.lines > before.lines);
            assert_eq!(after.tears, before.tears + u64::from(before.torn.is_some()));
        }
    }
    assert!(written > 1000, "only {written} lines");
    assert!(torn > 15, "only {torn} torn");
    eprintln!("{written} lines, {torn} of 50 torn");
    // The numbers of each run follow each other.
    let mut next = 0;
    for line in lines(&folder.file()) {
        match line.kind.as_str() {
            "start" => next = 0,
            "note" => {
                assert_eq!(line.at, Some(next));
                next += 1;
            }
            _ => {}
        }
    }
}

/// As if the process had been killed at each byte of the file.
#[test]
fn cut_at_each_byte() {
    let folder = Folder::new();
    let journal = Journal::open(folder.file()).build().unwrap();
    super::notes(&journal, 3);
    drop(journal);
    let whole = fs::read(folder.file()).unwrap();
    for cut in 0..whole.len() {
        fs::write(folder.file(), &whole[..cut]).unwrap();
        let before = check(&folder.file());
        let newlines = whole[..cut].iter().filter(|byte| **byte == b'\n').count() as u64;
        let line_start = whole[..cut]
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let fragment = (cut - line_start) as u64;
        // A line that lacks only its newline is one.
        let complete = whole[cut] == b'\n';
        assert_eq!(before.lines, newlines + u64::from(complete));
        assert_eq!(before.torn, (fragment > 0 && !complete).then_some(fragment));
        drop(Journal::open(folder.file()).build().unwrap());
        let after = check(&folder.file());
        assert!(after.closed && after.torn.is_none());
        assert_eq!(after.tears, u64::from(before.torn.is_some()));
        let text = fs::read(folder.file()).unwrap();
        assert_eq!(text[..cut], whole[..cut]);
    }
}
