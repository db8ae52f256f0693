use std::{
    fs, io::Write, path::Path, process::Command, sync::atomic::Ordering::SeqCst, thread,
    time::Duration,
};

use super::{
    super::{Journal, OnFailure, Sync},
    Dice, Fake, Folder, LONG, check, kinds, lines, notes, until,
};

/// A disk that takes a few bytes, then none, again and again: nothing is lost, whatever the place where it stops.
#[test]
fn a_disk_that_fills_up_anywhere() {
    let mut dice = Dice(1);
    for round in 0..60 {
        let folder = Folder::new();
        let fake = Fake::new();
        let journal = Journal::open(folder.file())
            .world(fake.clone())
            .rotate_at_bytes(3000)
            .build()
            .unwrap();
        fake.has_room(0);
        notes(&journal, 40);
        for _ in 0..5 {
            let scale = dice.roll(11);
            fake.has_room(dice.roll(1 << scale));
            fake.blind.store(dice.roll(3) == 0, SeqCst);
            thread::sleep(Duration::from_millis(dice.roll(15)));
            fake.blind.store(false, SeqCst);
        }
        fake.has_room(1 << 40);
        journal.flush(LONG).unwrap();
        let status = journal.status();
        assert_eq!(
            (status.written, status.lost, status.failing),
            (40, 0, false)
        );
        if round % 2 == 0 {
            journal.close(LONG).unwrap();
        }
        drop(journal);
        let summary = check(&folder.file());
        assert!(summary.closed && summary.lost == 0);
        let notes = lines(&folder.file()).into_iter();
        let notes = notes.filter(|line| line.kind == "note").map(|line| line.at);
        assert!(notes.eq((0..40).map(Some)));
        // And all of it can be gone on from.
        drop(Journal::open(folder.file()).build().unwrap());
        check(&folder.file());
    }
}

/// All places where one write can stop, one by one.
#[test]
fn each_byte_at_which_a_write_can_stop() {
    let folder = Folder::new();
    let journal = Journal::open(folder.file()).build().unwrap();
    notes(&journal, 3);
    drop(journal);
    let whole = fs::metadata(folder.file()).unwrap().len();
    let mut seen = 0;
    for stop in 0..whole {
        let folder = Folder::new();
        let fake = Fake::new();
        fake.has_room(stop);
        let open = Journal::open(folder.file()).world(fake.clone()).build();
        if let Ok(journal) = open {
            notes(&journal, 3);
            until(|| fake.room.load(SeqCst) == 0 || journal.status().written == 3);
            fake.has_room(1 << 40);
            journal.close(LONG).unwrap();
            let notes = kinds(&folder.file());
            assert_eq!(notes.iter().filter(|kind| *kind == "note").count(), 3);
            seen += u64::from(check(&folder.file()).tears > 0);
        } else {
            // The very first write failed: the next start closes what there is of it.
            let before = check(&folder.file());
            drop(Journal::open(folder.file()).build().unwrap());
            let summary = check(&folder.file());
            assert_eq!(summary.tears, u64::from(before.torn.is_some()));
            assert!(summary.closed && summary.lines > before.lines);
        }
    }
    assert!(seen > 100, "only {seen} were torn");
}

#[test]
fn refusing() {
    let folder = Folder::new();
    let fake = Fake::new();
    let journal = Journal::open(folder.file())
        .world(fake.clone())
        .capacity(8)
        .build()
        .unwrap();
    assert!(journal.admit().is_ok());
    fake.has_room(0);
    notes(&journal, 1);
    until(|| journal.status().failing);
    // There is room in the queue, but what is in it cannot be written.
    assert!(journal.admit().is_err());
    notes(&journal, 9);
    assert_eq!(journal.status().lost, 0);
    notes(&journal, 2);
    assert_eq!(journal.status().lost, 2);
    let error = journal.flush(Duration::from_millis(30)).unwrap_err();
    assert!(error.to_string().contains("storage"), "{error}");
    let status = journal.status();
    assert!(status.failures > 0 && status.last_error.is_some());
    fake.has_room(1 << 40);
    journal.flush(LONG).unwrap();
    assert!(journal.admit().is_ok());
    assert!(!journal.status().failing);
    drop(journal);
    assert_eq!(check(&folder.file()).lost, 2);
}

#[test]
fn blocking() {
    let folder = Folder::new();
    let fake = Fake::new();
    let journal = Journal::open(folder.file())
        .world(fake.clone())
        .capacity(8)
        .on_failure(OnFailure::Block)
        .build()
        .unwrap();
    fake.has_room(0);
    notes(&journal, 8);
    thread::scope(|scope| {
        let waiters: Vec<_> = (0..4).map(|_| scope.spawn(|| journal.admit())).collect();
        thread::sleep(Duration::from_millis(50));
        assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
        fake.has_room(1 << 40);
        for waiter in waiters {
            assert!(waiter.join().unwrap().is_ok());
        }
    });
    // A journal that is closed lets them go.
    fake.has_room(0);
    notes(&journal, 8);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| journal.admit());
        thread::sleep(Duration::from_millis(50));
        assert!(!waiter.is_finished());
        let error = journal.close(Duration::from_millis(50)).unwrap_err();
        assert_eq!(error.left(), 8);
        assert!(waiter.join().unwrap().is_err());
    });
    fake.has_room(1 << 40);
    journal.close(LONG).unwrap();
    assert_eq!(journal.status().written, 16);
    check(&folder.file());
}

#[test]
fn a_sync_that_fails_is_seen() {
    for sync in [Sync::Batch, Sync::Every(Duration::from_millis(1))] {
        let folder = Folder::new();
        let fake = Fake::new();
        let journal = Journal::open(folder.file())
            .world(fake.clone())
            .sync(sync)
            .build()
            .unwrap();
        fake.unsynced.store(true, SeqCst);
        notes(&journal, 1);
        until(|| journal.status().failures > 2);
        assert!(journal.admit().is_err());
        assert!(journal.flush(Duration::from_millis(20)).is_err());
        assert_eq!(journal.status().written, 1);
        fake.unsynced.store(false, SeqCst);
        until(|| !journal.status().failing);
        journal.flush(LONG).unwrap();
        assert!(journal.admit().is_ok());
    }
}

#[test]
fn somebody_else_in_the_file_is_seen() {
    let folder = Folder::new();
    let journal = Journal::open(folder.file()).build().unwrap();
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(folder.file())
        .unwrap();
    file.write_all(b"hello\n").unwrap();
    notes(&journal, 1);
    assert!(journal.flush(Duration::from_millis(50)).is_err());
    assert!(journal.admit().is_err());
    // Taken away again, it goes on.
    let length = file.metadata().unwrap().len();
    file.set_len(length - 6).unwrap();
    journal.flush(LONG).unwrap();
    let aside = folder.0.join("aside");
    fs::rename(folder.file(), &aside).unwrap();
    notes(&journal, 1);
    assert!(journal.flush(Duration::from_millis(50)).is_err());
    fs::rename(&aside, folder.file()).unwrap();
    journal.flush(LONG).unwrap();
    drop(journal);
    check(&folder.file());
}

/// A real disk that is full, where we may make one.
#[test]
fn a_small_disk() {
    let folder = Folder::new();
    let disk = folder.0.join("disk");
    fs::create_dir(&disk).unwrap();
    let mount = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(&disk)
        .output();
    if !mount.is_ok_and(|mount| mount.status.success()) {
        eprintln!("no disk could be mounted: not tested");
        return;
    }
    let unmount = Unmount(&disk);
    let path = disk.join("audit.jsonl");
    for policy in [OnFailure::Refuse, OnFailure::Count, OnFailure::Block] {
        let ballast = disk.join("ballast");
        fs::write(&ballast, vec![0; 48_000]).unwrap();
        let journal = Journal::open(&path)
            .on_failure(policy)
            .capacity(400)
            .build()
            .unwrap();
        notes(&journal, 120);
        until(|| journal.status().failing);
        assert_eq!(journal.admit().is_err(), policy == OnFailure::Refuse);
        fs::remove_file(&ballast).unwrap();
        journal.flush(LONG).unwrap();
        let status = journal.status();
        assert_eq!((status.written, status.lost), (120, 0));
        drop(journal);
        let summary = check(&path);
        assert!(summary.closed);
        fs::remove_file(&path).unwrap();
    }
    drop(unmount);
}

struct Unmount<'a>(&'a Path);

impl Drop for Unmount<'_> {
    fn drop(&mut self) {
        drop(Command::new("umount").arg(self.0).status());
    }
}
