use std::{
    fmt, io,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    disk::{Claim, Real, World},
    handle::Journal,
    out::{Out, Rotation},
    writer,
};

/// When what was written is also made to last (`fsync`), so that it survives a loss of power. A crash of the process alone loses nothing
/// that was written, and each batch is written at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sync {
    /// When the system does it by itself.
    Never,
    /// After each batch: a few hundred times a second at most, as fast as the disk is.
    Batch,
    /// When this time has passed since the last.
    Every(Duration),
}

/// What becomes of new requests when the journal cannot keep up, or cannot write.
///
/// What is said of requests that were let in before is kept in a quarter of the capacity above it, so that it is not lost either unless
/// there is very much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OnFailure {
    /// They wait until there is room. The wait blocks the thread, other tasks on it as well.
    Block,
    /// They are refused: when the queue is full, and as long as the last attempt to write failed.
    #[default]
    Refuse,
    /// They go on. Entries for which there is no room are counted, and where they are missing a line says how many.
    Count,
}

/// Builds a [`Journal`]; made by [`Journal::open`].
///
/// | option | default |
/// |---|---|
/// | [`rotate_at_bytes`](Self::rotate_at_bytes), [`rotate_daily`](Self::rotate_daily) | one file |
/// | [`sync`](Self::sync) | every second |
/// | [`capacity`](Self::capacity) | 65,536 entries |
/// | [`on_failure`](Self::on_failure) | [`OnFailure::Refuse`] |
#[must_use = "a builder does nothing until it is built"]
pub struct JournalBuilder {
    path: PathBuf,
    rotation: Rotation,
    sync: Sync,
    capacity: usize,
    on_failure: OnFailure,
    world: Box<dyn World>,
}

impl JournalBuilder {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            rotation: Rotation::default(),
            sync: Sync::Every(Duration::from_secs(1)),
            capacity: 65_536,
            on_failure: OnFailure::default(),
            world: Box::new(Real),
        }
    }

    /// Begins a new file before the one being written becomes longer than this; only one entry alone, and what the journal says by itself,
    /// can make it longer. The full one gets the number of its first line into its name, before the extension.
    pub const fn rotate_at_bytes(mut self, bytes: u64) -> Self {
        self.rotation.bytes = Some(bytes);
        self
    }

    /// Begins a new file with the first entry that is written on another day, in UTC.
    pub const fn rotate_daily(mut self, daily: bool) -> Self {
        self.rotation.daily = daily;
        self
    }

    /// When what was written is made to last.
    pub const fn sync(mut self, sync: Sync) -> Self {
        self.sync = sync;
        self
    }

    /// How many entries may wait to be written.
    pub const fn capacity(mut self, entries: usize) -> Self {
        self.capacity = entries;
        self
    }

    /// What becomes of new requests when the journal cannot keep up, or cannot write.
    pub const fn on_failure(mut self, policy: OnFailure) -> Self {
        self.on_failure = policy;
        self
    }

    #[cfg(test)]
    pub(super) fn world(mut self, world: impl World + 'static) -> Self {
        self.world = Box::new(world);
        self
    }

    /// Locks the journal, opens its file or makes it, and writes its first line. A file that is there is read and checked as a whole, so this can take a
    /// while; a line that a crash left unfinished at its end is closed by a line that says so.
    ///
    /// # Errors
    ///
    /// If the capacity is zero; if the file cannot be opened, read or written; if it is not a journal, or is not as it was written anywhere
    /// but at its end (the error is of the kind `InvalidData` and has the [`Fault`](super::Fault) in it); if another journal, of this
    /// process or another, has it open (of the kind `ResourceBusy`); or if the lock that shows this cannot be had, as on a file system
    /// without locks.
    pub fn build(self) -> io::Result<Journal> {
        if self.capacity == 0 {
            let error = "the capacity of a journal must not be zero";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
        }
        let claim = Claim::new(&self.path)?;
        let out = Out::open(&self.path, self.rotation, self.sync, self.world)?;
        writer::start(out, claim, self.sync, self.capacity, self.on_failure)
    }
}

impl fmt::Debug for JournalBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JournalBuilder")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
