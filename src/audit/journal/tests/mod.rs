//! What needs entries of its own, or a disk that fails; the rest is in `tests/journal`.

mod crash;
mod failures;
mod tampering;
mod writing;

use std::{
    env,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    process,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

use super::{
    Body, Journal, Line, Lines, Summary,
    disk::{Disk, World, private},
    files, verify,
};

const LONG: Duration = Duration::from_secs(60);

/// A folder that is gone afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("journal-{}-{}", process::id(), COUNT.fetch_add(1, SeqCst));
        let path = env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("audit.jsonl")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// The day's clock, and a disk with so much room.
#[derive(Clone)]
struct Fake {
    secs: Arc<AtomicU64>,
    room: Arc<AtomicU64>,
    unsynced: Arc<AtomicBool>,
    blind: Arc<AtomicBool>,
    /// No write is longer, and if it is small, each takes a while.
    piece: usize,
}

impl Fake {
    fn new() -> Self {
        Self {
            secs: Arc::new(AtomicU64::new(1_800_000_000)),
            room: Arc::new(AtomicU64::new(u64::MAX >> 1)),
            unsynced: Arc::default(),
            blind: Arc::default(),
            piece: usize::MAX,
        }
    }

    fn has_room(&self, bytes: u64) {
        self.room.store(bytes, SeqCst);
    }
}

struct FakeDisk(Fake, File);

impl World for Fake {
    fn wall(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.secs.load(SeqCst))
    }

    fn open(&self, path: &Path, new: bool) -> io::Result<Box<dyn Disk>> {
        let file = private().append(true).create_new(new).open(path)?;
        Ok(Box::new(FakeDisk(self.clone(), file)))
    }
}

impl Disk for FakeDisk {
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self
            .0
            .room
            .load(SeqCst)
            .min(bytes.len().min(self.0.piece) as u64);
        if room == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        if self.0.piece < 100 {
            std::thread::sleep(Duration::from_micros(20));
        }
        let written = self.1.write(&bytes[..usize::try_from(room).unwrap()])?;
        self.0.room.fetch_sub(written as u64, SeqCst);
        Ok(written)
    }

    fn len(&self) -> io::Result<u64> {
        if self.0.blind.load(SeqCst) {
            return Err(io::Error::other("blind"));
        }
        Ok(self.1.metadata()?.len())
    }

    fn sync(&mut self) -> io::Result<()> {
        match self.0.unsynced.load(SeqCst) {
            true => Err(io::Error::other("no sync")),
            false => Ok(()),
        }
    }
}

/// Numbers that look random.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }

    fn below(&mut self, below: usize) -> usize {
        usize::try_from(self.roll(below as u64)).unwrap()
    }
}

fn note(journal: &Journal, name: &Arc<str>, at: u64, value: Value) {
    journal.push(name, at, Body::Note(value));
}

/// Pushes so many entries that say their place.
fn notes(journal: &Journal, count: u64) {
    let name = Arc::from("test");
    for at in 0..count {
        note(journal, &name, at, json!({ "i": at, "text": "some words" }));
    }
}

fn lines(path: &Path) -> Vec<Line> {
    Lines::open(files(path).unwrap())
        .collect::<Result<_, _>>()
        .unwrap()
}

fn kinds(path: &Path) -> Vec<String> {
    lines(path).into_iter().map(|line| line.kind).collect()
}

fn check(path: &Path) -> Summary {
    verify(files(path).unwrap(), |_| ()).unwrap()
}

/// Waits until it is so.
fn until(mut so: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("it never came");
}
