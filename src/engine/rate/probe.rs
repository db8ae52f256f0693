use std::time::Duration;

use super::{
    CALM, GENTLE, HAIR, LEAST, PATIENT, STEADY, STEP, UNKNOWN,
    episode::Episode,
    measure::Measurement,
    tally::{Tally, tokens_in},
};

/// A pause longer than this is the server's window, not the price of a probe.
const DEAR: Duration = Duration::from_secs(1);

/// What is known of the limit, and how far the probe for more has come.
#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy)]
pub(super) struct Guess {
    pub(super) limit: u64,
    pub(super) unsure: u64,
    pub(super) weak: bool,
    /// The last episode.
    pub(super) cost: Episode,
    /// Requests accepted since then while somebody waited.
    pub(super) progress: u64,
    /// Once the probe speeds up.
    pub(super) fast: Option<Fast>,
}

/// A step of the fast part of a probe.
#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy)]
pub(super) struct Fast {
    /// How far above the limit the rate is.
    excess: u64,
    /// The progress at which it began.
    pub(super) began: u64,
    /// What had been accepted when the step before this one began, if there was one, and when this one did.
    pub(super) before: Option<Tally>,
    this: Tally,
}

/// What sets the pace of a probe, besides the guess.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// The configured rate.
    pub(super) full: u64,
    /// Whether any measurement so far left little doubt, and how many since agreed with the one before, at most 2.
    pub(super) known: bool,
    pub(super) agreed: u32,
    /// Requests accepted since the limit last moved.
    pub(super) calm: u64,
    /// The longest that episodes paused of late.
    pub(super) horizon: Duration,
}

/// What the rate is held at below a limit.
pub(super) const fn below(limit: u64) -> u64 {
    limit - limit / HAIR
}

impl Guess {
    pub(super) const fn new(measured: Measurement, cost: Episode) -> Self {
        let Measurement {
            limit,
            unsure,
            weak,
        } = measured;
        Self {
            limit,
            unsure,
            weak,
            cost,
            progress: 0,
            fast: None,
        }
    }

    /// What a credit is worth has changed.
    pub(super) fn rescale(&mut self, scale: impl Fn(u64) -> u64) {
        self.limit = scale(self.limit);
        self.unsure = if self.unsure == 0 {
            0
        } else {
            scale(self.unsure)
        };
        self.cost.before = scale(self.cost.before);
        if let Some(fast) = &mut self.fast {
            fast.excess = scale(fast.excess);
        }
    }

    /// Whether the rate still is what it was held at after the last episode.
    pub(super) fn is_holding(&self, pace: &Pace, token: i128) -> bool {
        self.progress < self.length(pace, token) / 2
    }

    /// One more request was accepted. Returns the rate from now on.
    pub(super) fn advance(&mut self, pace: &Pace, tally: &Tally, token: i128) -> u64 {
        self.progress += 1;
        let limit = self.limit;
        let low = below(limit);
        let length = self.length(pace, token);
        let half = length / 2;
        if self.progress < half {
            return low;
        }
        let gentle = (pace.full / 1024)
            .clamp(limit / GENTLE, limit / 8)
            .max(self.unsure);
        if self.progress < length {
            let rise = u128::from(limit - low) + u128::from(gentle);
            let part = rise * u128::from(self.progress - half) / u128::from(length - half);
            return low.saturating_add(u64::try_from(part).unwrap_or(u64::MAX));
        }
        let fast = self.fast.get_or_insert(Fast {
            excess: gentle,
            began: self.progress,
            before: None,
            this: *tally,
        });
        let rate = limit.saturating_add(fast.excess);
        let step = tokens_in(rate, pace.horizon.saturating_mul(STEP), token).max(4);
        // Where nothing is known the limit may be far above.
        let step = step.min(if self.weak { UNKNOWN } else { u64::MAX });
        if self.progress - fast.began >= step {
            *fast = Fast {
                excess: fast.excess.saturating_mul(2),
                began: self.progress,
                before: Some(fast.this),
                this: *tally,
            };
        }
        limit.saturating_add(fast.excess)
    }

    /// How many requests the slow part of a probe takes.
    fn length(&self, pace: &Pace, token: i128) -> u64 {
        let most = STEADY >> (2 - pace.agreed);
        let soon = tokens_in(
            self.limit,
            self.cost.round_trip.saturating_mul(PATIENT),
            token,
        )
        .clamp(LEAST, most);
        if self.unsure > 0 {
            return if pace.known { soon } else { UNKNOWN };
        }
        let each = pace.calm / CALM;
        let by_refusals = (self.cost.refusals.max(1)).saturating_mul(each.clamp(soon, most));
        let lost = tokens_in(self.limit, self.cost.paused.min(DEAR), token);
        let by_pause = lost.saturating_mul(each.clamp(soon, STEADY) / 9);
        by_refusals.max(by_pause).clamp(LEAST, 1 << 20)
    }
}
