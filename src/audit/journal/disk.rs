//! The only place that touches the file being written, so that tests can put a disk there that fails.

use std::{
    fmt,
    fs::{File, OpenOptions, TryLockError},
    io::{self, Write},
    path::Path,
    time::SystemTime,
};

use super::names;
use crate::limiter;

/// A file that is only added to.
pub(super) trait Disk: Send {
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize>;
    fn len(&self) -> io::Result<u64>;
    fn sync(&mut self) -> io::Result<()>;
}

impl Disk for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write(bytes)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// What the journal needs from outside.
pub(super) trait World: Send {
    fn wall(&self) -> SystemTime {
        limiter::wall()
    }

    /// Opens a file to add to it; a new one must not be there yet.
    fn open(&self, path: &Path, new: bool) -> io::Result<Box<dyn Disk>> {
        let file = private().append(true).create_new(new).open(path)?;
        Ok(Box::new(file))
    }
}

/// The world as it is.
#[derive(Debug)]
pub(super) struct Real;

impl World for Real {}

impl fmt::Debug for dyn World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("World")
    }
}

impl fmt::Debug for dyn Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Disk")
    }
}

/// Makes a name that was given or taken in the folder last, too.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    // Elsewhere a folder cannot be opened as a file.
    if cfg!(unix) {
        File::open(names::folder(path))?.sync_all()?;
    }
    Ok(())
}

/// Options by which what is made is for its owner alone: a record says whom somebody talks to, and when.
pub(super) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// What keeps other journals, of this process or another, from a path as long as it lives.
///
/// It is a lock on a file of its own. The journal's file cannot bear it: it gets another name when it is full, and between that and the
/// next one there would be a moment without a lock; and some systems let nobody read what is locked. The lock's file stays: were it
/// removed, somebody could lock the removed one while somebody else locks a new one.
#[derive(Debug)]
pub(super) struct Claim(File);

impl Claim {
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        let lock = names::lock(path)?;
        let context =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", lock.display()));
        let file = (private().write(true).create(true).truncate(false))
            .open(&lock)
            .map_err(context)?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(io::Error::new(
                io::ErrorKind::ResourceBusy,
                format!(
                    "{} is open in another journal, which has locked {}",
                    path.display(),
                    lock.display()
                ),
            )),
            Err(TryLockError::Error(error)) => Err(context(error)),
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Closing the file would do, unless a process was just made that has it open, too, until it has become another program. An error
        // is of no use here: closing is all there is left to do.
        let _ = self.0.unlock();
    }
}
