use std::{
    error, fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use super::{
    body::Body,
    builder::JournalBuilder,
    queue::{Full, Queue, State},
};
use crate::limiter;

/// How long the last clone waits for what is not written yet.
const PATIENCE: Duration = Duration::from_secs(5);

/// A file in which limiters record what they decide.
///
/// Cheap to clone; all clones are the same journal, and several limiters can share it. When the last clone is dropped the journal is closed
/// as by [`close`](Self::close), with 5 s of patience; in that time the thread is blocked.
#[derive(Debug, Clone)]
pub struct Journal {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    queue: Arc<Queue>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// How a [`Journal`] does.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// Entries in the file.
    pub written: u64,
    /// Entries that wait to be written.
    pub queued: usize,
    /// Entries that will never be: for want of room, after the end, or because they have no text.
    pub lost: u64,
    /// Attempts to write, to sync or to begin a new file that failed.
    pub failures: u64,
    /// The last attempt failed.
    pub failing: bool,
    /// What the last one that failed said.
    pub last_error: Option<String>,
    /// The file being written.
    pub path: PathBuf,
    /// How many files there are, as far as the journal has seen.
    pub files: u64,
}

/// Not all could be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalError {
    left: u64,
    gone: bool,
    last_error: Option<String>,
}

impl Journal {
    /// A journal in this file, to be built.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tower_throttle::audit::journal::{Journal, verify};
    ///
    /// # let folder = std::env::temp_dir().join(format!("journal-example-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder)?;
    /// # let path = folder.join("audit.jsonl");
    /// let journal = Journal::open(&path).rotate_at_bytes(100 << 20).build()?;
    /// // ..
    /// journal.close(Duration::from_secs(5))?;
    /// let summary = verify([&path], |_bytes| ())?;
    /// assert!(summary.closed);
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(path: impl AsRef<Path>) -> JournalBuilder {
        JournalBuilder::new(path.as_ref())
    }

    pub(super) fn new(queue: Arc<Queue>, thread: JoinHandle<()>) -> Self {
        let thread = Mutex::new(Some(thread));
        Self {
            shared: Arc::new(Shared { queue, thread }),
        }
    }

    /// How it does.
    #[must_use]
    pub fn status(&self) -> Status {
        let state = self.shared.queue.lock();
        Status {
            written: state.written,
            queued: state.held(),
            lost: state.lost,
            failures: state.failures,
            failing: state.failing,
            last_error: state.last_error.clone(),
            path: state.path.clone(),
            files: state.files,
        }
    }

    /// The hash of the last line in the file, which depends on all lines before it: 64 hex digits, as in
    /// [`Summary::hash`](super::Summary::hash).
    ///
    /// Keep it where whoever can write the journal cannot write, whenever the journal is closed, and now and then before: nothing else
    /// shows that lines are missing at the end. See [the module](super#keep-the-last-hash-elsewhere). What is recorded but not yet
    /// written is not in it: [`flush`](Self::flush) first.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tower_throttle::audit::journal::{Journal, verify};
    ///
    /// # let folder = std::env::temp_dir().join(format!("journal-hash-{}", std::process::id()));
    /// # std::fs::create_dir_all(&folder)?;
    /// # let path = folder.join("audit.jsonl");
    /// let journal = Journal::open(&path).build()?;
    /// journal.close(Duration::from_secs(5))?;
    /// let kept = journal.last_hash();
    /// // Later, on another machine:
    /// assert_eq!(verify([&path], |_bytes| ())?.hash, kept);
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn last_hash(&self) -> String {
        self.shared.queue.lock().last_hash.text()
    }

    /// Waits until all that was recorded before is written and, unless it is never synced, made to last. Blocks the thread.
    ///
    /// # Errors
    ///
    /// If that was not so in time, or the journal was closed without it.
    pub fn flush(&self, timeout: Duration) -> Result<(), JournalError> {
        let queue = &self.shared.queue;
        let mut state = queue.lock();
        let wanted = state.pushed;
        state.wanted = state.wanted.max(wanted);
        state.idle = false;
        queue.wake_writer();
        let done = |state: &State| state.gone || state.lasting >= wanted;
        let state = queue.wait_progress(state, timeout, done);
        if state.lasting >= wanted {
            Ok(())
        } else {
            Err(JournalError::new(&state, wanted - state.lasting))
        }
    }

    /// Takes in nothing more, writes the rest and a line that says it is the end, syncs unless that is never done, and lets the file go.
    /// Blocks the thread. After an error it can be tried again.
    ///
    /// # Errors
    ///
    /// If that could not be done in time.
    pub fn close(&self, timeout: Duration) -> Result<(), JournalError> {
        self.shared.close(timeout)
    }

    /// Records something. Never blocks and never fails: it may be called under a lock.
    pub(crate) fn push(&self, limiter: &Arc<str>, at: u64, body: Body) {
        self.shared.queue.push(limiter, at, limiter::wall(), body);
    }

    /// Whether a new request may be taken in. May block, if the user wants that: not to be called under a lock.
    pub(crate) fn admit(&self) -> Result<(), Full> {
        self.shared.queue.admit()
    }
}

impl Shared {
    fn close(&self, timeout: Duration) -> Result<(), JournalError> {
        let mut state = self.queue.lock();
        state.closing = true;
        state.idle = false;
        self.queue.wake_writer();
        // Those who wait for room learn that there will be none.
        self.queue.tell(state);
        let state = self.queue.lock();
        let state = self.queue.wait_progress(state, timeout, |state| state.gone);
        if !state.gone {
            let left = state.held() as u64;
            return Err(JournalError::new(&state, left));
        }
        let left = state.pushed - state.handled;
        let closed = state.ended && left == 0 && !state.failing;
        let error = JournalError::new(&state, left);
        drop(state);
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take() {
            // It has nothing to say any more, not even that it panicked: what is left says so.
            drop(thread.join());
        }
        if closed { Ok(()) } else { Err(error) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.close(PATIENCE).is_err() {
            let mut state = self.queue.lock();
            state.abandoned = true;
            self.queue.wake_writer();
        }
    }
}

impl JournalError {
    fn new(state: &State, left: u64) -> Self {
        Self {
            left,
            gone: state.gone,
            last_error: state.last_error.clone().filter(|_| state.failing),
        }
    }

    /// How many entries were not written, or not made to last.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.left
    }

    /// What the last attempt to write said, if it failed.
    #[must_use]
    pub fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let when = if self.gone {
            "when it ended"
        } else {
            "in time"
        };
        write!(f, "the journal could not keep {} entries {when}", self.left)?;
        match &self.last_error {
            Some(error) => write!(f, ": {error}"),
            None => Ok(()),
        }
    }
}

impl error::Error for JournalError {}
