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

/// What had been accepted when the step of a probe before this one began, and when this one did.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fast {
    doublings: u32,
    pub(super) before: Tally,
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

    /// Whether the rate still is what it was held at after the last episode.
    pub(super) fn is_holding(&self, pace: &Pace, token: i128) -> bool {
        self.progress < self.length(pace, token) / 2
    }

    /// One more request was accepted. Returns the rate from now on.
    pub(super) fn advance(&mut self, pace: &Pace, tally: &Tally, token: i128) -> u64 {
        self.progress += 1;
        let (rate, doublings) = self.planned(pace, token);
        if doublings > self.fast.map_or(0, |fast| fast.doublings) {
            self.fast = Some(Fast {
                doublings,
                before: self.fast.map_or(*tally, |fast| fast.this),
                this: *tally,
            });
        }
        rate
    }

    /// The rate at this point of a probe, and how often its excess has been doubled.
    fn planned(&self, pace: &Pace, token: i128) -> (u64, u32) {
        let (limit, progress) = (self.limit, self.progress);
        let length = self.length(pace, token);
        let half = length / 2;
        let low = below(limit);
        if progress < half {
            return (low, 0);
        }
        let gentle = (pace.full / 1024)
            .clamp(limit / GENTLE, limit / 8)
            .max(self.unsure);
        if progress < length {
            let rise = u128::from(limit - low) + u128::from(gentle);
            let part = rise * u128::from(progress - half) / u128::from(length - half);
            let rate = low.saturating_add(u64::try_from(part).unwrap_or(u64::MAX));
            return (rate, 0);
        }
        let step = tokens_in(limit, pace.horizon.saturating_mul(STEP), token).max(4);
        // Where nothing is known the limit may be far above.
        let step = step.min(if self.weak { UNKNOWN } else { u64::MAX });
        let doublings = u32::try_from((progress - length) / step).unwrap_or(u32::MAX);
        let excess = u128::from(gentle) << doublings.min(64);
        let excess = u64::try_from(excess).unwrap_or(u64::MAX);
        (limit.saturating_add(excess), doublings)
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
