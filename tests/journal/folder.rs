//! Where a test keeps its journals.

use std::{
    env, fs,
    path::PathBuf,
    process,
    sync::atomic::{AtomicU64, Ordering::SeqCst},
    time::Duration,
};

use tower_throttle::audit::journal::Journal;

pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A folder that is gone afterwards.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("journals-{}-{}", process::id(), COUNT.fetch_add(1, SeqCst));
        let path = env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("audit.jsonl")
    }

    /// A journal of several files, opened and closed that often.
    pub(crate) fn with_files(times: usize) -> Self {
        let folder = Self::new();
        for _ in 0..times {
            let open = Journal::open(folder.file()).rotate_at_bytes(1200);
            open.build().unwrap().close(LONG).unwrap();
        }
        folder
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}
