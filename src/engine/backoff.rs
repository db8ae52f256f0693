use std::time::Duration;

use super::{
    config::{Adapt, Backoff},
    time::Time,
};

/// The pauses after refusals that name no wait; see [`Backoff`].
#[derive(Debug, Clone)]
pub(super) struct Streak {
    backoff: Backoff,
    adapt: Adapt,
    refusals: u32,
    /// When the last pause ended.
    resumed: Time,
}

impl Streak {
    pub(super) const fn new(backoff: Backoff, adapt: Adapt) -> Self {
        Self {
            backoff,
            adapt,
            refusals: 0,
            resumed: Time::ZERO,
        }
    }

    pub(super) const fn is_over(&self) -> bool {
        self.refusals == 0
    }

    /// The pause after one more refusal. `interval` is the time between two requests at the rate in use.
    pub(super) fn refused(
        &mut self,
        now: Time,
        interval: Duration,
        round_trip: Duration,
    ) -> Duration {
        const SECOND: Duration = Duration::from_secs(1);
        if now > self.resumed.after(self.backoff.cap) {
            self.refusals = 0;
        }
        let base = self.backoff.base.unwrap_or_else(|| match self.adapt {
            Adapt::On => interval.saturating_mul(2).max(round_trip).min(SECOND),
            Adapt::Off => SECOND,
        });
        // Past 2^32 times the base the cap has long been reached.
        let wait = base
            .saturating_mul(1_u32.checked_shl(self.refusals).unwrap_or(u32::MAX))
            .min(self.backoff.cap);
        self.refusals = self.refusals.saturating_add(1);
        self.resumed = now.after(wait);
        wait
    }

    /// A request that left after the last refusal was accepted.
    pub(super) fn accepted(&mut self) {
        self.refusals = 0;
    }
}
