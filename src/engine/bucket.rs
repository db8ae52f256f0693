//! The token bucket's arithmetic: exact, in integers, without a division where tokens are taken.
//!
//! Levels are kept in *credits*. One token is `period_ns << 32` credits and a nanosecond at the full rate brings `amount << 32`, so the
//! configured rate is represented exactly, whatever the quota: no remainder has to be carried and nothing drifts. The 32 extra bits
//! are the resolution of a *lowered* rate, which is a whole number of credits each nanosecond and is rounded down. Due times are
//! rounded up to the next nanosecond. With the bounds of [`Quota::validate`] no product exceeds 2^126.

use std::time::Duration;

use super::{
    quota::Quota,
    sound::{Unsound, holds},
    time::{Time, nanos},
};

/// Timers have a grain and machines wake late: this much lateness is not lost.
pub(super) const SLACK: Duration = Duration::from_millis(10);

/// No bound on the level.
pub(super) const UNBOUNDED: i128 = i128::MAX / 4;

/// No debt is larger. It holds the largest charge to the slowest quota; a refund of more than is owed would make tokens.
const DEEPEST: i128 = i128::MIN / 4 * 3;

const SCALE: u32 = 32;

/// Tokens, in credits, at a point in time.
///
/// There are two levels. From `level` tokens are set aside for callers in line, each at the time it is due; it is what callers see and
/// wait for. `room` counts what really leaves: it holds at most the burst and the [`SLACK`], and a request leaves only if it has room.
/// So whatever becomes of tokens set aside (collected late, never, or all at once after a stall), the ceiling holds.
#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    #[cfg_attr(feature = "journal", serde(with = "super::record::text"))]
    level: i128,
    #[cfg_attr(feature = "journal", serde(with = "super::record::text"))]
    room: i128,
    updated: Time,
    #[cfg_attr(feature = "journal", serde(with = "super::record::text"))]
    token: i128,
    full_rate: u64,
    #[cfg_attr(feature = "journal", serde(with = "super::record::text"))]
    burst: i128,
}

/// A stretch of time in which tokens come at one rate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    pub(super) end: Time,
    pub(super) rate: u64,
    /// The most `level` may become.
    pub(super) cap: i128,
    /// What is there above `cap` stays.
    pub(super) soft: bool,
    /// Tokens may come but none may go: the server asked for a pause.
    pub(super) closed: bool,
}

impl Bucket {
    /// A bucket at its start. The quota has been validated.
    pub(super) fn new(quota: &Quota, now: Time) -> Self {
        let token = i128::from(nanos(quota.period())) << SCALE;
        let burst = token * i128::from(quota.burst_size());
        let level = token * i128::from(quota.initial_size());
        let full_rate = u64::from(quota.amount()) << SCALE;
        Self {
            level,
            room: level + slack(full_rate),
            updated: now,
            token,
            full_rate,
            burst,
        }
    }

    /// A bucket that last held `level` at `updated`, where nobody has waited since.
    pub(super) fn resume(quota: &Quota, level: i128, updated: Time) -> Self {
        let new = Self::new(quota, updated);
        Self {
            level,
            room: level + slack(new.full_rate),
            ..new
        }
    }

    /// Whether it is one that this quota's bucket can become by `now`.
    pub(super) fn check(&self, quota: &Quota, now: Time) -> Result<(), Unsound> {
        let new = Self::new(quota, self.updated);
        let shape = |bucket: &Self| (bucket.token, bucket.full_rate, bucket.burst);
        holds(shape(self) == shape(&new), "a bucket is that of its quota")?;
        let most = new.burst + slack(new.full_rate);
        let levels = DEEPEST..=most.max(UNBOUNDED);
        holds(
            levels.contains(&self.level) && (DEEPEST..=most).contains(&self.room),
            "a bucket holds no more than it can, and owes no more",
        )?;
        holds(self.updated <= now, "a bucket was filled in the past")
    }

    /// Credits in `cost` tokens.
    pub(super) fn credits(&self, cost: u64) -> i128 {
        match cost {
            // Nearly all requests, and multiplication with saturation is slow in 128 bits.
            0 => 0,
            1 => self.token,
            _ => self.token.saturating_mul(i128::from(cost)),
        }
    }

    pub(super) const fn token(&self) -> i128 {
        self.token
    }

    pub(super) const fn level(&self) -> i128 {
        self.level
    }

    /// What may really leave; see [`Bucket`].
    pub(super) const fn room(&self) -> i128 {
        self.room
    }

    pub(super) const fn burst(&self) -> i128 {
        self.burst
    }

    pub(super) const fn full_rate(&self) -> u64 {
        self.full_rate
    }

    pub(super) const fn updated(&self) -> Time {
        self.updated
    }

    /// Tokens a second at `rate` credits a nanosecond.
    pub(super) fn per_second(&self, rate: u64) -> f64 {
        rate as f64 * 1e9 / self.token as f64
    }

    /// Credits a nanosecond at so many tokens a second.
    pub(super) fn rate_of(&self, per_second: f64) -> u64 {
        // Saturates where it does not fit.
        (per_second * self.token as f64 / 1e9) as u64
    }

    /// Sets tokens aside.
    pub(super) fn take(&mut self, credits: i128) {
        self.level -= credits;
    }

    /// Whether so much may leave.
    pub(super) const fn has_room(&self, credits: i128) -> bool {
        self.room >= credits
    }

    /// Lets tokens that were set aside leave; there is room. `idle`: they were set aside for longer than the slack.
    ///
    /// What came meanwhile cannot be used on top of them, so the level is at most what there is room for.
    pub(super) fn depart(&mut self, credits: i128, idle: bool, rate: u64) {
        self.room -= credits;
        let room = if idle {
            (self.room - slack(rate)).max(0)
        } else {
            self.room
        };
        self.clamp(room);
    }

    /// Takes tokens that leave without having been set aside: those who follow wait for them.
    pub(super) fn borrow(&mut self, credits: i128) {
        self.level = self.level.saturating_sub(credits).max(DEEPEST);
        self.room = self.room.saturating_sub(credits).max(DEEPEST);
    }

    /// Another quota from now on. It has been validated. As many tokens are there as before, but no more than the new burst; a debt stays.
    pub(super) fn retune(&mut self, quota: &Quota) {
        let old = self.token;
        let new = Self::new(quota, self.updated);
        let convert = |credits: i128| {
            // Whole tokens, and the rest to the 2^-31st, rounded down.
            let part = credits.rem_euclid(old) / (old >> 31).max(1);
            let whole = credits.div_euclid(old).saturating_mul(new.token);
            whole.saturating_add(part * (new.token >> 31)).max(DEEPEST)
        };
        let (level, room) = (convert(self.level), convert(self.room));
        self.level = level.min(new.burst);
        self.room = room.min(new.burst + slack(new.full_rate));
        (self.token, self.full_rate, self.burst) = (new.token, new.full_rate, new.burst);
    }

    /// Takes back tokens there was no room for: they come again when there is.
    pub(super) fn put_off(&mut self, credits: i128, rate: u64) {
        // A debt leaves no room even for what costs nothing.
        let room = (self.room - slack(rate)).max(self.room.min(0));
        self.level = (self.level + credits).min(room);
    }

    /// Takes back tokens that were set aside, as far as they could still leave: never above the burst, nor above what there is room for.
    pub(super) fn give_back(&mut self, credits: i128, rate: u64) {
        let most = self.burst.min(self.room - slack(rate));
        self.level = (self.level + credits).min(most.max(self.level));
    }

    /// Undoes a departure.
    pub(super) fn refund(&mut self, credits: i128, rate: u64) {
        let most = self.burst + slack(rate);
        self.room = (self.room + credits).min(most.max(self.room));
        self.give_back(credits, rate);
    }

    /// Discards what is above `cap`.
    pub(super) fn clamp(&mut self, cap: i128) {
        self.level = self.level.min(cap);
    }

    /// Lets time pass to `stop`, which lies in `segment`.
    pub(super) fn accrue(&mut self, stop: Time, segment: &Segment) {
        let earned = earned(segment.rate, stop.since(self.updated));
        let cap = if segment.soft {
            segment.cap.max(self.level)
        } else {
            segment.cap
        };
        self.level = self.level.saturating_add(earned).min(cap);
        let most = self.burst + slack(segment.rate);
        self.room = self.room.saturating_add(earned).min(most);
        self.updated = self.updated.max(stop);
    }

    /// When the level will reach `need` if nothing is taken before. Clamping is left out on purpose: those ahead take what comes.
    pub(super) fn due(&self, need: i128, mut segment_at: impl FnMut(Time) -> Segment) -> Time {
        let mut at = self.updated;
        let mut level = self.level;
        loop {
            let segment = segment_at(at);
            if !segment.closed {
                if level >= need {
                    return at;
                }
                let missing = need.saturating_sub(level).unsigned_abs();
                let wait = missing.div_ceil(u128::from(segment.rate.max(1)));
                let reached = at.after_nanos(wait);
                if reached <= segment.end {
                    return reached;
                }
            }
            if segment.end == Time::MAX {
                return Time::MAX;
            }
            level = level.saturating_add(earned(segment.rate, segment.end.since(at)));
            if segment.closed {
                level = level.min(segment.cap);
            }
            at = segment.end;
        }
    }
}

impl Time {
    fn after_nanos(self, nanos: u128) -> Self {
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
        Self::from_nanos(self.as_nanos().saturating_add(nanos))
    }
}

/// What may be there above the burst: [`SLACK`] at `rate`.
pub(super) fn slack(rate: u64) -> i128 {
    i128::from(rate) * i128::from(nanos(SLACK))
}

/// Credits that `elapsed` brings at `rate`.
fn earned(rate: u64, elapsed: Duration) -> i128 {
    let credits = u128::from(rate) * u128::from(nanos(elapsed));
    i128::try_from(credits).unwrap_or(i128::MAX)
}
