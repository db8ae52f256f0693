//! The only place that touches the file being written, so that tests can put a disk there that fails.

use std::{
    collections::BTreeSet,
    fmt,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
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
        let mut options = OpenOptions::new();
        options.append(true).create_new(new);
        Ok(Box::new(options.open(path)?))
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

static CLAIMED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A path that no other journal of this process may open meanwhile.
#[derive(Debug)]
pub(super) struct Claim(PathBuf);

impl Claim {
    pub(super) fn new(path: &Path) -> io::Result<Self> {
        let name = path
            .file_name()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a file's path"))?;
        let full = fs::canonicalize(names::folder(path))?.join(name);
        let mut claimed = CLAIMED.lock().unwrap_or_else(PoisonError::into_inner);
        if claimed.insert(full.clone()) {
            Ok(Self(full))
        } else {
            Err(io::Error::new(
                io::ErrorKind::ResourceBusy,
                format!("{} is open in another journal", path.display()),
            ))
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut claimed = CLAIMED.lock().unwrap_or_else(PoisonError::into_inner);
        claimed.remove(&self.0);
    }
}
