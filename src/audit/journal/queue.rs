//! What waits to be written: the only thing that those who have something to say touch.

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use super::{body::Body, builder::OnFailure, line::Hash, out::Item};

/// Items that the writer takes at once.
pub(super) const BATCH: usize = 4096;

#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// For the writer: there is something to do.
    work: Condvar,
    /// For those who wait until there is room.
    room: Condvar,
    /// For those who wait until something is written.
    progress: Condvar,
    policy: OnFailure,
    /// Above it nobody is let in.
    capacity: usize,
    /// Above it entries are dropped.
    bound: usize,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) items: VecDeque<Item>,
    /// Items that the writer has taken and not yet written.
    pub(super) busy: usize,
    /// The writer waits for the first item.
    pub(super) idle: bool,
    /// Callers who wait for room.
    pub(super) waiting: usize,
    /// How many items were put in, written, and made to last, ever. `wanted`: up to which one somebody waits for.
    pub(super) pushed: u64,
    pub(super) handled: u64,
    pub(super) lasting: u64,
    pub(super) wanted: u64,
    pub(super) closing: bool,
    /// The writer should leave even if it could not write.
    pub(super) abandoned: bool,
    /// The writer has left.
    pub(super) gone: bool,
    /// `end` is in the file.
    pub(super) ended: bool,
    /// The last attempt to write failed.
    pub(super) failing: bool,
    pub(super) written: u64,
    pub(super) lost: u64,
    pub(super) failures: u64,
    pub(super) last_error: Option<String>,
    /// Of the last line in the file.
    pub(super) last_hash: Hash,
    pub(super) path: PathBuf,
    pub(super) files: u64,
}

/// The journal takes no more: its queue is full, it cannot write, or it was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl State {
    pub(super) fn held(&self) -> usize {
        self.items.len() + self.busy
    }

    /// Somebody waits for something other than the next item.
    pub(super) const fn urgent(&self) -> bool {
        self.closing || self.abandoned || self.lasting < self.wanted
    }
}

impl Queue {
    pub(super) fn new(policy: OnFailure, capacity: usize, state: State) -> Self {
        let margin = match policy {
            OnFailure::Count => 0,
            OnFailure::Block | OnFailure::Refuse => (capacity / 4).max(1),
        };
        Self {
            state: Mutex::new(state),
            work: Condvar::new(),
            room: Condvar::new(),
            progress: Condvar::new(),
            policy,
            capacity,
            bound: capacity.saturating_add(margin),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, limiter: &Arc<str>, at: u64, wall: SystemTime, body: Body) {
        let mut state = self.lock();
        if state.gone || state.ended {
            state.lost += 1;
            return;
        }
        if state.held() < self.bound {
            state.items.push_back(Item::Entry {
                limiter: Arc::clone(limiter),
                at,
                wall,
                body,
            });
            state.pushed += 1;
        } else {
            state.lost += 1;
            if let Some(Item::Lost(entries)) = state.items.back_mut() {
                *entries += 1;
            } else {
                state.items.push_back(Item::Lost(1));
                state.pushed += 1;
            }
        }
        // Without a writer that waits, waking one is a call of the system for nothing.
        let wake = state.idle || state.items.len() == self.many();
        state.idle = false;
        drop(state);
        if wake {
            self.work.notify_one();
        }
    }

    pub(super) fn admit(&self) -> Result<(), Full> {
        let mut state = self.lock();
        loop {
            let shut = state.gone || state.closing;
            let full = state.held() >= self.capacity;
            match self.policy {
                OnFailure::Count => return Ok(()),
                _ if shut => return Err(Full),
                OnFailure::Refuse if full || state.failing => return Err(Full),
                OnFailure::Block if full => {
                    state.waiting += 1;
                    state = self
                        .room
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner);
                    state.waiting -= 1;
                }
                OnFailure::Refuse | OnFailure::Block => return Ok(()),
            }
        }
    }

    /// Waits for something to do, at most so long.
    pub(super) fn wait<'a>(
        &self,
        state: MutexGuard<'a, State>,
        time: Option<Duration>,
    ) -> MutexGuard<'a, State> {
        let state = match time {
            None => self.work.wait(state),
            Some(time) => (self.work.wait_timeout(state, time))
                .map(|(state, _)| state)
                .map_err(|poisoned| PoisonError::new(poisoned.into_inner().0)),
        };
        state.unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something was written, at most so long.
    pub(super) fn wait_progress<'a>(
        &self,
        state: MutexGuard<'a, State>,
        time: Duration,
        until: impl Fn(&State) -> bool,
    ) -> MutexGuard<'a, State> {
        let waited = (self.progress).wait_timeout_while(state, time, |state| !until(state));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    pub(super) fn wake_writer(&self) {
        self.work.notify_one();
    }

    /// To be called after each attempt to write.
    pub(super) fn tell(&self, state: MutexGuard<'_, State>) {
        let room =
            state.waiting > 0 && (state.held() < self.capacity || state.gone || state.closing);
        drop(state);
        self.progress.notify_all();
        if room {
            self.room.notify_all();
        }
    }

    /// The number of items at which a writer that collects a batch is woken.
    pub(super) fn many(&self) -> usize {
        (self.capacity / 2).clamp(1, BATCH)
    }
}
