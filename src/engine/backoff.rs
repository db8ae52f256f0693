use std::time::Duration;

use super::{
    config::{Adapt, Backoff},
    time::Time,
};

/// The pauses after refusals, while nothing is accepted; see [`Backoff`]. Those that name no wait double from the first one on; those
/// that name one are taken at their word [a few times](PATIENCE), and then grow beyond it.
///
/// With the adaptive rate those that name none do not double for ever: once a server has served us for a while they need not be longer than a part of
/// that time (see `rate/mod.rs`). Else the end of a long window would be found late by half its length.
#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone)]
pub(super) struct Streak {
    backoff: Backoff,
    adapt: Adapt,
    /// In a row, since something was accepted.
    refusals: u32,
    /// When the last pause ended.
    resumed: Time,
}

/// So many pauses in a row are as long as the server names them. A server that refuses whatever comes after them does not mean what it
/// says, and whoever believes it asks for ever, in vain, at that pace.
const PATIENCE: u32 = 3;

impl Streak {
    pub(super) const fn new(backoff: Backoff, adapt: Adapt) -> Self {
        Self {
            backoff,
            adapt,
            refusals: 0,
            resumed: Time::ZERO,
        }
    }

    /// Whether it was made for these.
    pub(super) fn is_of(&self, backoff: Backoff, adapt: Adapt) -> bool {
        self.backoff == backoff && self.adapt == adapt
    }

    pub(super) const fn is_over(&self) -> bool {
        self.refusals == 0
    }

    /// Whether it makes no difference any more: over, or so long ago that the next refusal begins anew.
    pub(super) fn is_forgotten(&self, now: Time) -> bool {
        self.refusals == 0 || now > self.resumed.after(self.backoff.cap)
    }

    /// When the last pause ended.
    pub(super) const fn resumed(&self) -> Time {
        self.resumed
    }

    /// The pause after one more refusal. `named`: what the server asks for. `interval` is the time between two requests at the rate in
    /// use, `enough` how long a pause of the adaptive rate need be at most.
    pub(super) fn refused(
        &mut self,
        now: Time,
        named: Option<Duration>,
        interval: Duration,
        round_trip: Duration,
        enough: Option<Duration>,
    ) -> Duration {
        const SECOND: Duration = Duration::from_secs(1);
        if now > self.resumed.after(self.backoff.cap) {
            self.refusals = 0;
        }
        let (base, most) = match (named, self.backoff.base, self.adapt) {
            (Some(named), ..) => (named, self.backoff.cap),
            (None, Some(base), _) => (base, self.backoff.cap),
            (None, None, Adapt::Off) => (SECOND, self.backoff.cap),
            (None, None, Adapt::On) => {
                let base = interval.saturating_mul(2).max(round_trip).min(SECOND);
                (base, enough.unwrap_or(Duration::MAX).min(self.backoff.cap))
            }
        };
        let doublings = match named {
            Some(_) => (self.refusals.saturating_add(1)).saturating_sub(PATIENCE),
            None => self.refusals,
        };
        // Past 2^32 times the base the cap has long been reached.
        let wait = base
            .saturating_mul(1_u32.checked_shl(doublings).unwrap_or(u32::MAX))
            .min(most.max(base));
        self.refusals = self.refusals.saturating_add(1);
        self.resumed = now.after(wait);
        wait
    }

    /// A request that left after the last refusal was accepted.
    pub(super) fn accepted(&mut self) {
        self.refusals = 0;
    }
}
