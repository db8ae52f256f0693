use std::{
    sync::atomic::{AtomicU8, AtomicU64, Ordering},
    time::Duration,
};

use crate::{
    audit,
    engine::{Cause, Engine, Lean, Pause, Plan, Time},
    limiter::{Shared, clock::Clock},
};

/// The pause for all keys: one place, looked at before any key lets something out, so that setting it costs the same with a million
/// keys as with one.
///
/// Its times are by the clock that the limiters of all keys share.
#[derive(Debug)]
pub(crate) struct PauseForAll {
    /// The name of the keyed limiter, for records.
    name: Box<str>,
    clock: Clock,
    /// When it ends, in nanoseconds; zero if there never was one. It only grows.
    until: AtomicU64,
    /// What set it, by its place in [`CAUSES`]. Of two that are set at once the wrong one may be named.
    cause: AtomicU8,
}

const CAUSES: [Cause; 5] = [
    Cause::Server,
    Cause::Budget,
    Cause::Backoff,
    Cause::Trial,
    Cause::Penalty,
];

impl PauseForAll {
    pub(super) const fn new(name: Box<str>, clock: Clock) -> Self {
        Self {
            name,
            clock,
            until: AtomicU64::new(0),
            cause: AtomicU8::new(0),
        }
    }

    /// When the last pause ended, or ends.
    pub(super) fn until(&self) -> Time {
        Time::from_nanos(self.until.load(Ordering::Acquire))
    }

    /// The last pause, over or not.
    pub(super) fn last(&self) -> Option<Pause> {
        let until = self.until();
        let cause = usize::from(self.cause.load(Ordering::Relaxed));
        let cause = CAUSES.get(cause).copied().unwrap_or(Cause::Server);
        (until > Time::ZERO).then_some(Pause { until, cause })
    }

    /// The pause under way.
    pub(super) fn now(&self) -> Option<(Duration, Cause)> {
        let pause = self.last()?;
        let left = pause.until.since(self.clock.now());
        (!left.is_zero()).then_some((left, pause.cause))
    }

    /// Begins or extends it, unless a longer one is under way. `asked` is what was asked for, by the server in `field`.
    pub(super) fn extend(&self, pause: Pause, asked: Option<Duration>, field: Option<&str>) {
        let until = pause.until.as_nanos();
        let before = self.until.fetch_max(until, Ordering::AcqRel);
        let now = self.clock.now();
        if before < until && pause.until > now {
            let cause = CAUSES.iter().position(|&cause| cause == pause.cause);
            self.cause
                .store(cause.unwrap_or(0) as u8, Ordering::Relaxed);
            audit::paused(&self.name, None, asked, field, pause, now);
        }
    }

    /// The instant `wait` from now.
    pub(super) fn after(&self, wait: Duration) -> Time {
        self.clock.now().after(wait)
    }

    pub(super) const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Has the limiter of a key take part. True if that is paused now, for this or another reason.
    pub(super) fn holds_back(&self, key: &Shared) -> bool {
        let Some(pause) = self.last() else {
            return false;
        };
        key.apply(|state, now| {
            state.engine.of_key().pause_until(now, pause);
            state.engine.pause().is_some()
        })
    }

    /// Has a key at rest take part. Returns what is left of the pause.
    pub(super) fn impose_on(&self, lean: &mut Lean, plan: &Plan, now: Time) -> Option<Duration> {
        let until = self.until();
        lean.pause_until(plan, until);
        let left = until.since(now);
        (!left.is_zero()).then_some(left)
    }

    /// Has the engine of a key take part.
    pub(super) fn impose(&self, engine: &mut Engine, now: Time) {
        if let Some(pause) = self.last() {
            engine.pause_until(now, pause);
        }
    }
}
