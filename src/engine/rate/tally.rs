use std::time::Duration;

use crate::engine::time::{Time, nanos};

/// What was accepted since the last episode.
#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy)]
pub(super) struct Tally {
    /// All accepted requests, and since when.
    pub(super) served: u64,
    pub(super) since: Time,
    /// Those accepted while somebody waited, and how long somebody did.
    pub(super) accepted: u64,
    pub(super) busy: Duration,
    /// The last event, if somebody waited at it.
    last: Option<Time>,
}

impl Tally {
    pub(super) const NOTHING: Self = Self {
        served: 0,
        since: Time::ZERO,
        accepted: 0,
        busy: Duration::ZERO,
        last: None,
    };

    /// An accepted request, of which the time is not known.
    pub(super) const fn count(&mut self) {
        self.served = self.served.saturating_add(1);
    }

    pub(super) fn accepted(&mut self, now: Time, somebody_waits: bool) {
        self.count();
        if somebody_waits || self.last.is_some() {
            self.accepted = self.accepted.saturating_add(1);
        }
        self.pass(now, somebody_waits);
    }

    /// Lets time pass until an event.
    pub(super) fn pass(&mut self, now: Time, somebody_waits: bool) {
        if let Some(last) = self.last {
            self.busy = self.busy.saturating_add(now.since(last));
        }
        self.last = somebody_waits.then_some(now);
    }

    /// Begins anew with the request just accepted.
    pub(super) const fn restart(&mut self, now: Time) {
        *self = Self {
            served: 1,
            since: now,
            accepted: 1,
            busy: Duration::ZERO,
            last: self.last,
        };
    }
}

/// So many tokens in so much time, in credits a nanosecond; `token` is a token's credits.
pub(super) fn rate(tokens: u64, time: Duration, token: i128) -> u64 {
    let credits = u128::from(tokens).saturating_mul(token.unsigned_abs());
    u64::try_from(credits / u128::from(nanos(time).max(1))).unwrap_or(u64::MAX)
}

/// The same rate where a token is worth `after` credits instead of `before`.
pub(in crate::engine) fn scaled(rate: u64, before: i128, after: i128) -> u64 {
    // In floating point: both are larger than 64 bits, and a rate that is off by a 2^-50th does no harm. Every machine rounds alike.
    (rate as f64 * (after as f64 / before as f64)) as u64
}

/// How many tokens come in `time` at `rate`.
pub(super) fn tokens_in(rate: u64, time: Duration, token: i128) -> u64 {
    let credits = u128::from(rate) * u128::from(nanos(time));
    u64::try_from(credits / token.unsigned_abs().max(1)).unwrap_or(u64::MAX)
}
