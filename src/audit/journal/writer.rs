//! The thread that writes.

use std::{
    collections::VecDeque,
    io, mem,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use super::{
    builder::{OnFailure, Sync},
    disk::Claim,
    handle::Journal,
    out::{Item, Out},
    queue::{BATCH, Queue, State},
};

/// So long entries are collected after a batch, so that a busy journal does not write one by one.
const LINGER: Duration = Duration::from_millis(1);
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Writes the first lines, and starts the thread.
pub(super) fn start(
    mut out: Out,
    claim: Claim,
    sync: Sync,
    capacity: usize,
    policy: OnFailure,
) -> io::Result<Journal> {
    out.write(&mut VecDeque::from([Item::Start]))?;
    if sync != Sync::Never {
        out.sync()?;
    }
    let state = State {
        path: out.path().to_owned(),
        last_hash: out.last_hash(),
        files: out.files,
        ..State::default()
    };
    let queue = Arc::new(Queue::new(policy, capacity, state));
    let writer = Writer {
        queue: Arc::clone(&queue),
        out,
        sync,
        batch: VecDeque::new(),
        synced: now(),
        _claim: claim,
    };
    let thread = thread::Builder::new()
        .name("throttle-journal".into())
        .spawn(move || writer.run())?;
    Ok(Journal::new(queue, thread))
}

struct Writer {
    queue: Arc<Queue>,
    out: Out,
    sync: Sync,
    /// Taken from the queue, and kept until it is written.
    batch: VecDeque<Item>,
    synced: Instant,
    _claim: Claim,
}

/// What is to be done besides writing the batch.
struct Task {
    sync: bool,
    last: bool,
}

impl Writer {
    fn run(mut self) {
        let mut pause = None;
        while let Some(task) = self.take(pause) {
            let done = self.work(&task);
            let failed = done.is_err();
            self.report(done, &task);
            pause = match pause {
                _ if !failed => None,
                None => Some(FIRST_PAUSE),
                Some(pause) => Some(LONGEST_PAUSE.min(pause * 2)),
            };
            if task.last && !failed {
                break;
            }
        }
    }

    /// Waits until there is something to do, and takes it; none if the journal was abandoned.
    fn take(&mut self, pause: Option<Duration>) -> Option<Task> {
        let mut state = self.queue.lock();
        if let Some(pause) = pause {
            let end = now() + pause;
            while !state.abandoned {
                let left = end.saturating_duration_since(now());
                if left.is_zero() {
                    break;
                }
                state = self.queue.wait(state, Some(left));
            }
        } else {
            if !state.urgent() && state.items.len() < self.queue.many() {
                state = self.queue.wait(state, Some(LINGER));
            }
            while state.items.is_empty() && !state.urgent() {
                let left = self.sync_due();
                if left.is_some_and(|left| left.is_zero()) {
                    break;
                }
                state.idle = true;
                state = self.queue.wait(state, left);
                state.idle = false;
            }
        }
        if state.abandoned {
            return None;
        }
        let more = (BATCH.saturating_sub(self.pending())).min(state.items.len());
        self.batch.extend(state.items.drain(..more));
        let last = state.closing && state.items.is_empty();
        // From here on there is no way into the file any more.
        state.ended = last;
        state.busy = self.pending();
        let sync = match self.sync {
            Sync::Never => false,
            Sync::Batch => true,
            Sync::Every(_) => state.urgent() || self.sync_due().is_some_and(|left| left.is_zero()),
        };
        drop(state);
        if last && !matches!(self.batch.back(), Some(Item::End)) {
            self.batch.push_back(Item::End);
        }
        Some(Task { sync, last })
    }

    fn work(&mut self, task: &Task) -> io::Result<()> {
        self.out.write(&mut self.batch)?;
        if task.sync {
            self.out.sync()?;
            self.synced = now();
        }
        Ok(())
    }

    /// Items in the batch, without the end.
    fn pending(&self) -> usize {
        self.batch.len() - usize::from(matches!(self.batch.back(), Some(Item::End)))
    }

    fn report(&mut self, done: io::Result<()>, task: &Task) {
        let mut state = self.queue.lock();
        let left = self.pending();
        state.handled += (state.busy - left) as u64;
        state.lost += mem::take(&mut self.out.unwritable);
        state.busy = left;
        state.written = self.out.written;
        state.files = self.out.files;
        state.last_hash = self.out.last_hash();
        state.failing = done.is_err();
        match done {
            Ok(()) if task.sync || self.sync == Sync::Never => state.lasting = state.handled,
            Ok(()) => {}
            Err(error) => {
                state.failures += 1;
                state.last_error = Some(error.to_string());
            }
        }
        self.queue.tell(state);
    }

    /// How long until the file is to be synced, if it is.
    fn sync_due(&self) -> Option<Duration> {
        match self.sync {
            Sync::Every(time) if self.out.dirty() => {
                Some(time.saturating_sub(now().saturating_duration_since(self.synced)))
            }
            _ => None,
        }
    }
}

/// However it ends, nobody waits for it in vain.
impl Drop for Writer {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        let entries = (self.batch.iter().chain(&state.items))
            .filter(|item| matches!(item, Item::Entry { .. }))
            .count();
        state.lost += entries as u64;
        state.items.clear();
        state.busy = 0;
        state.gone = true;
        self.queue.tell(state);
    }
}

fn now() -> Instant {
    #[expect(
        clippy::disallowed_methods,
        reason = "a thread of its own, on no runtime's clock, and nothing is decided by it"
    )]
    Instant::now()
}
