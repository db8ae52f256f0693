//! The file being written.
//!
//! What was put into the chain is what is in the file, even if a write fails in the middle: then the file's length says which lines are
//! there, and the next attempt begins by closing what is not one.

use std::{
    collections::VecDeque,
    fs::{self, File},
    io::{self, Read, Seek},
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use serde::Serialize;

use super::{
    body::Body,
    builder::Sync,
    disk::{Disk, World, sync_folder},
    line::{self, FORMAT, Hash, Header, Own, Record, Tear, TearReader},
    names,
    reader::{Lines, refused},
    wall::Wall,
};

/// At about so many bytes a write is begun.
const FULL: usize = 1 << 20;
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Something that takes a line.
#[derive(Debug)]
pub(super) enum Item {
    Entry {
        limiter: Arc<str>,
        at: u64,
        wall: SystemTime,
        body: Body,
    },
    /// So many entries were dropped here.
    Lost(u64),
    Start,
    End,
}

/// When a new file is begun.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rotation {
    pub(super) bytes: Option<u64>,
    pub(super) daily: bool,
}

#[derive(Debug)]
pub(super) struct Out {
    world: Box<dyn World>,
    path: PathBuf,
    rotation: Rotation,
    sync: Sync,
    /// None from the time when one was full until the next is made.
    disk: Option<Box<dyn Disk>>,
    chain: Hash,
    /// The number of the next line.
    n: u64,
    /// The file's length as far as it is known to us.
    len: u64,
    /// Where its last whole line ends. What is behind is the beginning of a line, with a newline or without.
    good: u64,
    /// The last byte is a newline, or there is none.
    newline: bool,
    /// It has its first line.
    begun: bool,
    /// It has others.
    used: bool,
    /// The next line does not fit in.
    full: bool,
    first: u64,
    day: String,
    previous: Option<String>,
    /// What is being written, and the lines in it.
    buffer: Vec<u8>,
    marks: Vec<Mark>,
    /// A write failed, and so did finding out how much of it is there.
    unsure: bool,
    dirty: bool,
    pub(super) files: u64,
    /// Entries in the file.
    pub(super) written: u64,
    /// Entries that have no text.
    pub(super) unwritable: u64,
}

#[derive(Debug)]
struct Mark {
    end: usize,
    step: Step,
}

#[derive(Debug)]
enum Step {
    /// The newline that ends what stands there.
    Newline,
    Line(Hash, Kind),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Torn,
    Entry,
    Other,
}

impl Out {
    /// Opens the file, or makes it, and finds the end of the chain.
    pub(super) fn open(
        path: &Path,
        rotation: Rotation,
        sync: Sync,
        world: Box<dyn World>,
    ) -> io::Result<Self> {
        let mut rotated = names::rotated_files(path)?;
        if !path.try_exists()? {
            // It was full, and no new one was made: then that one is looked at as any other, which may be full.
            if let Some(last) = rotated.pop() {
                // What cannot be gone on with keeps its name.
                Lines::open([&last]).finish().map_err(refused)?;
                fs::rename(last, path)?;
            }
        }
        let mut out = Self {
            world,
            path: path.to_owned(),
            rotation,
            sync,
            disk: None,
            chain: Hash::ZERO,
            n: 0,
            len: 0,
            good: 0,
            newline: true,
            begun: false,
            used: false,
            full: false,
            first: 0,
            day: String::new(),
            previous: None,
            buffer: Vec::new(),
            marks: Vec::new(),
            unsure: false,
            dirty: false,
            files: rotated.len() as u64,
            written: 0,
            unwritable: 0,
        };
        if path.try_exists()? {
            out.go_on(rotated.last())?;
        }
        Ok(out)
    }

    /// Of the last line in the file.
    pub(super) const fn last_hash(&self) -> Hash {
        self.chain
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there is something that is not synced.
    pub(super) const fn dirty(&self) -> bool {
        self.dirty
    }

    /// Writes what it can of the batch, and takes it out. What is left after an error was not written.
    pub(super) fn write(&mut self, batch: &mut VecDeque<Item>) -> io::Result<()> {
        while !batch.is_empty() {
            self.prepare(batch)?;
            self.compose(batch)?;
            self.send(batch)?;
        }
        Ok(())
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        if let (true, Some(disk)) = (self.dirty, &mut self.disk) {
            disk.sync()?;
            self.dirty = false;
        }
        Ok(())
    }

    fn go_on(&mut self, before: Option<&PathBuf>) -> io::Result<()> {
        let (tail, summary, chain) = Lines::open([&self.path]).finish().map_err(refused)?;
        self.disk = Some(self.world.open(&self.path, false)?);
        self.files += 1;
        (self.len, self.good, self.newline) = (tail.len, tail.good, tail.newline);
        self.first = tail.first;
        if let (Some(chain), Some(began)) = (chain, tail.began) {
            self.chain = chain;
            self.n = tail.first + summary.lines;
            self.begun = true;
            self.used = summary.lines > 1;
            self.day = began.chars().take("2026-01-01".len()).collect();
        } else if let Some(before) = before {
            // There is no whole line in it yet.
            let (tail, summary, chain) = Lines::open([before]).finish().map_err(refused)?;
            if summary.torn.is_some() || !tail.newline {
                let error = format!("{} is not finished", before.display());
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
            self.chain = chain.unwrap_or_default();
            self.n = summary.first + summary.lines;
            self.previous = name(before);
        }
        Ok(())
    }

    /// Sees to it that there is a file, that it is as it was left, and that it is the right one.
    fn prepare(&mut self, batch: &mut VecDeque<Item>) -> io::Result<()> {
        if self.unsure {
            self.settle(batch)?;
        }
        if self.disk.is_some() && fs::metadata(&self.path)?.len() != self.len {
            return Err(io::Error::other("somebody else changed the journal's file"));
        }
        let whole = self.begun && self.newline && self.good == self.len;
        if whole && (self.full || self.rotation.daily && self.today() != self.day) {
            self.rotate()?;
        }
        if self.disk.is_none() {
            self.disk = Some(self.world.open(&self.path, true)?);
            self.files += 1;
            if !matches!(self.sync, Sync::Never) {
                sync_folder(&self.path)?;
            }
        }
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        let name_then = names::rotated(&self.path, self.first);
        if name_then.try_exists()? {
            let error = format!("{} is there already", name_then.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, error));
        }
        if !matches!(self.sync, Sync::Never) {
            self.sync()?;
        }
        fs::rename(&self.path, &name_then)?;
        self.previous = name(&name_then);
        self.disk = None;
        (self.len, self.good, self.newline) = (0, 0, true);
        (self.begun, self.used, self.full, self.dirty) = (false, false, false, false);
        Ok(())
    }

    /// Puts lines into the buffer: first what the file needs, then as much of the batch as fits.
    fn compose(&mut self, batch: &mut VecDeque<Item>) -> io::Result<()> {
        self.buffer.clear();
        self.marks.clear();
        let (mut n, mut chain) = (self.n, self.chain);
        let wall = Wall::from(self.world.wall());
        let torn = self.torn()?;
        if !self.newline {
            self.buffer.push(b'\n');
            self.mark(Step::Newline);
        }
        if !self.begun {
            self.first = n;
            self.day = wall.day();
            let header = Header {
                format: FORMAT,
                version: VERSION.to_owned(),
                previous: self.previous.clone(),
                chain: chain.text(),
                torn,
            };
            chain = self.own(n, chain, wall, Own::File(header), Kind::File)?;
            n += 1;
        } else if let Some(tear) = torn {
            chain = self.own(n, chain, wall, Own::Torn(tear), Kind::Torn)?;
            n += 1;
        }
        let mut used = self.used;
        for item in batch {
            if self.full || self.buffer.len() >= FULL {
                break;
            }
            let start = self.buffer.len();
            let written = match item {
                Item::Entry {
                    limiter,
                    at,
                    wall,
                    body,
                } => {
                    let record = Record {
                        n,
                        at: Some(*at),
                        wall: Wall::from(*wall),
                        limiter: Some(&**limiter),
                        kind: &*body,
                    };
                    self.line(chain, &record, Kind::Entry)
                }
                Item::Lost(entries) => {
                    let own = Own::Loss { entries: *entries };
                    self.own(n, chain, wall, own, Kind::Other)
                }
                Item::Start => {
                    let own = Own::Start { version: VERSION };
                    self.own(n, chain, wall, own, Kind::Other)
                }
                Item::End => self.own(n, chain, wall, Own::End {}, Kind::Other),
            };
            let hash = match written {
                Ok(hash) => hash,
                Err(_) => {
                    // It has no text, or too long a one: it cannot be kept, but that it was there can.
                    *item = Item::Lost(1);
                    self.unwritable += 1;
                    self.own(n, chain, wall, Own::Loss { entries: 1 }, Kind::Other)?
                }
            };
            if used && self.exceeds() && !matches!(item, Item::End) {
                self.buffer.truncate(start);
                self.marks.pop();
                self.full = true;
                break;
            }
            (used, n, chain) = (true, n + 1, hash);
        }
        Ok(())
    }

    /// What is behind the last whole line.
    fn torn(&self) -> io::Result<Option<Tear>> {
        if self.len == self.good {
            return Ok(None);
        }
        let mut file = File::open(&self.path)?;
        file.seek(io::SeekFrom::Start(self.good))?;
        let mut left = self.len - self.good - u64::from(self.newline);
        let mut reader = TearReader::default();
        let mut piece = [0; 4096];
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(piece.len());
            let piece = &mut piece[..most];
            file.read_exact(piece)?;
            reader.read(piece);
            left -= most as u64;
        }
        Ok(Some(reader.tear()))
    }

    fn exceeds(&self) -> bool {
        let length = self.len.saturating_add(self.buffer.len() as u64);
        self.rotation.bytes.is_some_and(|bytes| length > bytes)
    }

    fn own(&mut self, n: u64, chain: Hash, wall: Wall, own: Own, kind: Kind) -> io::Result<Hash> {
        let record = Record {
            n,
            at: None,
            wall,
            limiter: None,
            kind: own,
        };
        self.line(chain, &record, kind)
    }

    fn line<K: Serialize>(
        &mut self,
        chain: Hash,
        record: &Record<'_, K>,
        kind: Kind,
    ) -> io::Result<Hash> {
        let hash = line::write(&mut self.buffer, chain, record)?;
        self.mark(Step::Line(hash, kind));
        Ok(hash)
    }

    fn mark(&mut self, step: Step) {
        let end = self.buffer.len();
        self.marks.push(Mark { end, step });
    }

    fn send(&mut self, batch: &mut VecDeque<Item>) -> io::Result<()> {
        let mut sent = 0;
        while sent < self.buffer.len() {
            let disk = (self.disk.as_mut()).ok_or(io::ErrorKind::NotFound)?;
            match disk.append(&self.buffer[sent..]) {
                Ok(0) => {
                    self.settle(batch)?;
                    return Err(io::ErrorKind::WriteZero.into());
                }
                Ok(more) => sent += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // The first error says more than one met while looking at what it left.
                    let _ = self.settle(batch);
                    return Err(error);
                }
            }
        }
        self.commit(sent, batch);
        Ok(())
    }

    /// Finds out how much of the buffer is in the file.
    fn settle(&mut self, batch: &mut VecDeque<Item>) -> io::Result<()> {
        self.unsure = true;
        let disk = (self.disk.as_ref()).ok_or(io::ErrorKind::NotFound)?;
        let there = disk.len()?.checked_sub(self.len);
        let there = there.and_then(|there| usize::try_from(there).ok());
        match there {
            Some(there) if there <= self.buffer.len() => {
                self.commit(there, batch);
                self.unsure = false;
                Ok(())
            }
            _ => Err(io::Error::other("somebody else changed the journal's file")),
        }
    }

    /// So many bytes of the buffer are in the file.
    fn commit(&mut self, there: usize, batch: &mut VecDeque<Item>) {
        let base = self.len;
        for mark in self.marks.drain(..) {
            // A line is one without its newline, too.
            let line = matches!(mark.step, Step::Line(..));
            if mark.end > there + usize::from(line) {
                break;
            }
            let end = mark.end.min(there) as u64;
            match mark.step {
                // It ends a line that is whole, or nothing that is one.
                Step::Newline if self.good == base => self.good = base + end,
                Step::Newline => {}
                Step::Line(hash, kind) => {
                    self.good = base + end;
                    self.chain = hash;
                    self.n += 1;
                    match kind {
                        Kind::File => self.begun = true,
                        Kind::Torn => {}
                        Kind::Entry | Kind::Other => {
                            self.used = true;
                            batch.pop_front();
                        }
                    }
                    self.written += u64::from(kind == Kind::Entry);
                }
            }
        }
        if let Some(last) = there.checked_sub(1) {
            self.newline = self.buffer[last] == b'\n';
            self.dirty = true;
        }
        self.len = base + there as u64;
        self.buffer.clear();
        self.marks.clear();
    }

    fn today(&self) -> String {
        Wall::from(self.world.wall()).day()
    }
}

fn name(path: &Path) -> Option<String> {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
}
