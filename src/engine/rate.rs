//! The rate that is used: the configured one, lowered by refusals that name no wait.
//!
//! Additive increase, multiplicative decrease, in units of the rate itself: a refusal halves the rate, each accepted request raises it
//! by 1/64 while somebody waits. All requests that were under way at a cut share that one cut (law L6): only a request that left after
//! it can cause another, or prove that things are well.

use std::time::Duration;

use super::{
    config::{Adapt, Backoff},
    time::Time,
};

/// The rate never falls below this part of the configured one, so there is always a way back.
const FLOOR: u64 = 1024;
const RAISE: u64 = 64;

#[derive(Debug, Clone)]
pub(super) struct Rate {
    current: u64,
    full: u64,
    adapt: Adapt,
    backoff: Backoff,
    /// The last request that had left when the last refusal came.
    settled: u64,
    /// Refusals without a wait in a row.
    streak: u32,
    /// When the last such pause ended.
    resumed: Time,
}

impl Rate {
    pub(super) const fn new(full: u64, adapt: Adapt, backoff: Backoff) -> Self {
        Self {
            current: full,
            full,
            adapt,
            backoff,
            settled: 0,
            streak: 0,
            resumed: Time::ZERO,
        }
    }

    pub(super) const fn current(&self) -> u64 {
        self.current
    }

    /// Whether no refusal is left to recover from.
    pub(super) const fn is_settled(&self) -> bool {
        self.current == self.full && self.streak == 0
    }

    /// Whether request `number` left after the last refusal was known.
    pub(super) const fn is_news(&self, number: u64) -> bool {
        number > self.settled
    }

    /// Requests up to `last_sent` left before the refusal that has just come.
    pub(super) const fn settle(&mut self, last_sent: u64) {
        self.settled = last_sent;
    }

    /// A refusal that names no wait, to a request that is news. Returns the pause that follows. `cut`: our rate is to blame.
    /// `interval` is the time between two tokens at a given rate.
    pub(super) fn refused(
        &mut self,
        now: Time,
        cut: bool,
        round_trip: Duration,
        interval: impl Fn(u64) -> Duration,
    ) -> Duration {
        if cut && self.adapt == Adapt::On {
            self.current = (self.current / 2).max(self.full / FLOOR).max(1);
        }
        if now > self.resumed.after(self.backoff.cap) {
            self.streak = 0;
        }
        const SECOND: Duration = Duration::from_secs(1);
        let base = self.backoff.base.unwrap_or_else(|| match self.adapt {
            Adapt::On => interval(self.current)
                .saturating_mul(2)
                .max(round_trip)
                .min(SECOND),
            Adapt::Off => SECOND,
        });
        // Past 2^32 times the base the cap has long been reached.
        let wait = base
            .saturating_mul(1_u32.checked_shl(self.streak).unwrap_or(u32::MAX))
            .min(self.backoff.cap);
        self.streak = self.streak.saturating_add(1);
        self.resumed = now.after(wait);
        wait
    }

    /// An accepted request that is news. True if the rate rose.
    pub(super) fn accepted(&mut self, somebody_waits: bool) -> bool {
        self.streak = 0;
        if self.current == self.full || !somebody_waits {
            return false;
        }
        self.current = self
            .current
            .saturating_add((self.current / RAISE).max(1))
            .min(self.full);
        true
    }
}
