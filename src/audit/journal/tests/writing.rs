use std::{fs, sync::Arc, thread, time::Duration};

use serde_json::json;

use super::{
    super::{Body, Journal, OnFailure, Sync, files, verify},
    Fake, Folder, LONG, check, kinds, lines, note, notes,
};

#[test]
fn entries_are_there_as_they_were_pushed() {
    let folder = Folder::new();
    let journal = Journal::open(folder.file()).build().unwrap();
    notes(&journal, 1000);
    journal.flush(LONG).unwrap();
    assert_eq!(journal.status().written, 1000);
    assert_eq!(journal.status().queued, 0);
    journal.close(LONG).unwrap();
    let all = lines(&folder.file());
    assert_eq!(all.len(), 1003);
    assert!(all.iter().zip(0..).all(|(line, n)| line.n == n));
    for (line, i) in all[2..1002].iter().zip(0..1000) {
        assert_eq!(line.kind, "note");
        assert_eq!((line.at, line.limiter.as_deref()), (Some(i), Some("test")));
        assert_eq!(line.value["i"], i);
    }
    assert_eq!(kinds(&folder.file())[..2], ["file", "start"]);
    let summary = check(&folder.file());
    assert!(summary.closed && summary.torn.is_none());
    assert_eq!((summary.first, summary.lines), (0, 1003));
    // After the end there is no way in, and it is counted.
    notes(&journal, 3);
    assert_eq!(journal.status().lost, 3);
    assert!(journal.admit().is_err());
    journal.close(LONG).unwrap();
}

#[test]
fn a_journal_goes_on_where_it_ended() {
    let folder = Folder::new();
    for round in 0..5 {
        let journal = Journal::open(folder.file()).build().unwrap();
        notes(&journal, 10);
        assert_eq!(journal.status().lost, 0);
        drop(journal);
        let summary = check(&folder.file());
        assert_eq!(summary.lines, 1 + (round + 1) * 12);
        assert!(summary.closed);
    }
}

#[test]
fn files_are_begun_by_size() {
    for bytes in [0, 1, 700, 5000] {
        let folder = Folder::new();
        for _ in 0..3 {
            let open = Journal::open(folder.file()).rotate_at_bytes(bytes);
            let journal = open.build().unwrap();
            notes(&journal, 100);
            journal.flush(LONG).unwrap();
        }
        let all = files(folder.file()).unwrap();
        assert!(all.len() > 10, "{} files", all.len());
        for file in &all {
            let size = fs::metadata(file).unwrap().len();
            // A line of ours, or a header and the one line that there must be.
            assert!(size <= bytes.max(600) + 200, "{size} bytes for {bytes}");
        }
        let names = lines(&folder.file()).into_iter();
        let notes = names.filter(|line| line.kind == "note").count();
        assert_eq!(notes, 300);
        assert_eq!(check(&folder.file()).files, all.len() as u64);
        // Any of them, and any that follow each other.
        for window in all.windows(3) {
            let summary = verify(window, |_| ()).unwrap();
            assert_eq!(summary.files, 3);
        }
    }
}

#[test]
fn files_are_begun_by_day_whatever_the_clock_does() {
    let folder = Folder::new();
    let fake = Fake::new();
    let open = |fake: &Fake| {
        Journal::open(folder.file())
            .rotate_daily(true)
            .world(fake.clone())
            .build()
            .unwrap()
    };
    let mut journal = open(&fake);
    // Forward by hours, a month, back by years, and to the beginning of time.
    for (secs, expected) in [
        (1_800_000_100, 1),
        (1_800_086_400, 2),
        (1_802_678_400, 3),
        (1_700_000_000, 4),
        (1_700_000_001, 4),
        (0, 5),
    ] {
        fake.secs.store(secs, std::sync::atomic::Ordering::SeqCst);
        notes(&journal, 2);
        journal.flush(LONG).unwrap();
        assert_eq!(journal.status().files, expected);
        drop(journal);
        journal = open(&fake);
        assert_eq!(journal.status().files, expected);
    }
    drop(journal);
    let summary = check(&folder.file());
    assert_eq!(summary.files, 5);
    assert_eq!(lines(&folder.file()).len() as u64, summary.lines);
}

#[test]
fn a_crash_between_two_files_is_nothing() {
    let folder = Folder::new();
    let open = || Journal::open(folder.file()).rotate_at_bytes(2000).build();
    let journal = open().unwrap();
    notes(&journal, 50);
    drop(journal);
    // Renamed, and no new one made.
    let all = files(folder.file()).unwrap();
    fs::remove_file(folder.file()).unwrap();
    let before = verify(&all[..all.len() - 1], |_| ()).unwrap();
    notes(&open().unwrap(), 50);
    let after = check(&folder.file());
    assert!(after.lines > before.lines + 50);
    // Made, and nothing in it, or not all of the first line.
    for bytes in [0, 1, 5, 100] {
        let last = files(folder.file()).unwrap().pop().unwrap();
        let header = fs::read(&last).unwrap();
        fs::write(&last, &header[..bytes]).unwrap();
        let before = check(&folder.file());
        assert_eq!(before.torn, (bytes > 0).then_some(bytes as u64));
        drop(open().unwrap());
        let summary = check(&folder.file());
        assert_eq!(summary.tears, u64::from(bytes > 0));
        assert!(summary.lines > before.lines && summary.closed);
    }
}

#[test]
fn nothing_is_written_over() {
    let folder = Folder::new();
    let journal = Journal::open(folder.file())
        .rotate_at_bytes(1000)
        .build()
        .unwrap();
    let squatter = folder
        .file()
        .with_file_name("audit.00000000000000000000.jsonl");
    fs::write(&squatter, "mine").unwrap();
    notes(&journal, 20);
    assert!(journal.flush(Duration::from_millis(300)).is_err());
    let status = journal.status();
    assert!(status.last_error.unwrap().contains("already"));
    assert!(journal.admit().is_err());
    assert_eq!(fs::read(&squatter).unwrap(), b"mine");
    fs::remove_file(&squatter).unwrap();
    journal.flush(LONG).unwrap();
    assert!(journal.admit().is_ok());
    drop(journal);
    check(&folder.file());
}

#[test]
fn order_is_kept_with_many_threads() {
    let folder = Folder::new();
    let journal = Journal::open(folder.file())
        .rotate_at_bytes(100_000)
        .capacity(1 << 20)
        .build()
        .unwrap();
    thread::scope(|scope| {
        for thread in 0..8 {
            let journal = journal.clone();
            scope.spawn(move || {
                let name = Arc::from(format!("limiter {thread}"));
                for i in 0..5000 {
                    note(&journal, &name, i, json!(i));
                }
            });
        }
    });
    journal.close(LONG).unwrap();
    assert_eq!(journal.status().lost, 0);
    let all = lines(&folder.file());
    for thread in 0..8 {
        let name = format!("limiter {thread}");
        let of_one = all
            .iter()
            .filter(|line| line.limiter.as_ref() == Some(&name));
        assert!(of_one.map(|line| line.at).eq((0..5000).map(Some)));
    }
}

#[test]
fn what_cannot_be_opened_is_an_error() {
    let folder = Folder::new();
    assert!(Journal::open(folder.file()).capacity(0).build().is_err());
    let nowhere = folder.0.join("none").join("a");
    assert!(Journal::open(nowhere).build().is_err());
}

#[test]
fn what_has_no_text_is_a_loss() {
    let folder = Folder::new();
    let journal = Journal::open(folder.file()).build().unwrap();
    let name = Arc::from("test");
    note(&journal, &name, 0, json!("before"));
    let long = "x".repeat(super::super::line::LONGEST);
    note(&journal, &name, 1, json!(long));
    note(&journal, &name, 2, json!("after"));
    journal.flush(LONG).unwrap();
    assert_eq!(journal.status().lost, 1);
    assert_eq!(journal.status().written, 2);
    drop(journal);
    let kinds = kinds(&folder.file());
    assert_eq!(kinds, ["file", "start", "note", "loss", "note", "end"]);
    assert_eq!(check(&folder.file()).lost, 1);
}

#[test]
fn every_policy_of_sync_writes() {
    for sync in [
        Sync::Never,
        Sync::Batch,
        Sync::Every(Duration::ZERO),
        Sync::Every(Duration::from_millis(5)),
        Sync::Every(Duration::MAX),
    ] {
        let folder = Folder::new();
        let journal = Journal::open(folder.file()).sync(sync).build().unwrap();
        for _ in 0..20 {
            notes(&journal, 10);
            journal.flush(LONG).unwrap();
        }
        journal.close(LONG).unwrap();
        assert_eq!(check(&folder.file()).lines, 203);
    }
}

#[test]
fn a_full_queue_is_a_loss_in_its_place() {
    let folder = Folder::new();
    let fake = Fake::new();
    let journal = Journal::open(folder.file())
        .world(fake.clone())
        .capacity(10)
        .on_failure(OnFailure::Count)
        .build()
        .unwrap();
    fake.has_room(0);
    notes(&journal, 1);
    super::until(|| journal.status().failing);
    notes(&journal, 12);
    assert!(journal.admit().is_ok());
    assert_eq!(journal.status().lost, 3);
    fake.has_room(1 << 40);
    journal.flush(LONG).unwrap();
    notes(&journal, 1);
    drop(journal);
    let kinds = kinds(&folder.file());
    assert_eq!(kinds.iter().filter(|kind| *kind == "note").count(), 11);
    assert_eq!(kinds[12..], ["loss", "note", "end"]);
    assert_eq!(check(&folder.file()).lost, 3);
}

#[test]
fn no_text_forges_a_line() {
    const ALPHABET: [&str; 16] = [
        "a",
        "\0",
        "\u{1f}",
        "\n",
        "\r",
        "\"",
        "\\",
        "{",
        "}",
        ":",
        ",",
        "\u{2028}",
        "é",
        "\u{10ffff}",
        "]",
        "\\u",
    ];
    let mut random = 1_u64;
    let mut text = || {
        let mut next = || {
            random = (random.wrapping_mul(6_364_136_223_846_793_005))
                .wrapping_add(1_442_695_040_888_963_407);
            (random >> 40) as usize
        };
        (0..next() % 21)
            .map(|_| ALPHABET[next() % 16])
            .collect::<String>()
    };
    for _ in 0..64 {
        let folder = Folder::new();
        let open = Journal::open(folder.file())
            .rotate_at_bytes(3000)
            .sync(Sync::Never);
        let journal = open.build().unwrap();
        let name: Arc<str> = text().into();
        let mut pushed = Vec::new();
        for _ in 0..20 {
            let (a, b) = (text(), text());
            let forged = "x\"}}\n{\"hash\":\"00\",\"body\":{\"n\":1}}\n";
            let value = json!({ a.clone(): b.clone(), "n": forged, "hash": a, "list": [b, 0.1 + 0.2, f64::MIN_POSITIVE] });
            pushed.push(value.clone());
            journal.push(&name, u64::MAX, Body::Note(value));
        }
        journal.close(LONG).unwrap();
        let all = lines(&folder.file())
            .into_iter()
            .filter(|line| line.kind == "note");
        let read = all.map(|line| {
            assert_eq!(
                (line.at, line.limiter.as_deref()),
                (Some(u64::MAX), Some(&*name))
            );
            line.value
        });
        assert_eq!(read.collect::<Vec<_>>(), pushed);
    }
}
