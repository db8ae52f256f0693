use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::{
    engine::{Cause, Engine, Lean, Pause, Plan, Time},
    limiter::{Shared, clock::Clock},
};

/// The pause for all keys: one place, looked at before any key lets something out, so that setting it costs the same with a million
/// keys as with one.
///
/// Its times are by the clock that the limiters of all keys share.
#[derive(Debug)]
pub(crate) struct PauseForAll {
    clock: Clock,
    /// When it ends, in nanoseconds; zero if there never was one. What most look at, without the lock.
    until: AtomicU64,
    pause: Mutex<Option<Pause>>,
}

impl PauseForAll {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            until: AtomicU64::new(0),
            pause: Mutex::new(None),
        }
    }

    pub(super) const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The last pause, over or not.
    pub(super) fn last(&self) -> Option<Pause> {
        if self.until.load(Ordering::Acquire) == 0 {
            return None;
        }
        *self.pause.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pause under way.
    pub(super) fn now(&self) -> Option<(Duration, Cause)> {
        let pause = self.last()?;
        let left = pause.until.since(self.clock.now());
        (!left.is_zero()).then_some((left, pause.cause))
    }

    /// Begins or extends it; true unless a longer one was under way.
    pub(super) fn extend(&self, until: Time, cause: Cause) -> bool {
        let mut pause = self.pause.lock().unwrap_or_else(PoisonError::into_inner);
        if pause.is_some_and(|pause| pause.until >= until) {
            return false;
        }
        *pause = Some(Pause { until, cause });
        self.until.store(until.as_nanos(), Ordering::Release);
        true
    }

    /// Has the limiter of a key take part. True if that is paused now, for this or another reason.
    pub(super) fn holds_back(&self, key: &Shared) -> bool {
        let Some(pause) = self.last() else {
            return false;
        };
        key.apply(|state, now| {
            state.engine.pause_until(now, pause);
            state.engine.pause().is_some()
        })
    }

    /// Has a key at rest take part. Returns what is left of the pause.
    pub(super) fn impose_on(&self, lean: &mut Lean, plan: &Plan, now: Time) -> Option<Duration> {
        let pause = self.last()?;
        lean.pause_until(plan, pause.until);
        let left = pause.until.since(now);
        (!left.is_zero()).then_some(left)
    }

    /// The same where the engine is at hand already.
    pub(super) fn impose(&self, engine: &mut Engine, now: Time) {
        if let Some(pause) = self.last() {
            engine.pause_until(now, pause);
        }
    }
}
