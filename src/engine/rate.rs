//! The rate in use: the configured one, or a guess of the server's limit made from its refusals.
//!
//! # The algorithm
//!
//! Refusals come in *episodes*: one begins with a refusal of a request that left after the last episode was over, and is over when
//! such a request is accepted again. All refusals in between count as one event (law L6).
//!
//! *Measure.* From the end of one episode to the end of the next, a server with a limit accepts just what the limit allows: a token
//! bucket is as empty at both ends, and a window begins at both. So what was accepted in between, over the time, *is* the limit. Time in
//! which nobody waited is left out, as it says nothing. The first episode has no end before it, and much of a burst in it: it at
//! most halves the rate and may go lower only on good evidence. Until an episode is over the rate is a little lower than before it.
//!
//! *Hold, then probe.* After a measurement the rate stays a hair below it, then rises gently to a little above it, then ever faster,
//! until the next episode. What the last episode cost, in refusals and in paused time, sets how many requests that takes: in the end
//! about one in 450 is refused, and about 2 % of the time is spent in pauses. Where episodes cost much (a window's wall meets all that is
//! in flight) the probe also speeds up more slowly.
//!
//! *Moved.* If a measurement differs from the one before, the limit has moved: the next probes are short. If the probe had been
//! speeding up, the limit has risen since it was measured, and only what was accepted since then counts.
//!
//! Only requests accepted while somebody waits advance a probe: an idle client learns nothing. A refusal that names its wait pauses, and
//! is an episode only after some evidence, since the server has already said what to do.
//!
//! All amounts are in requests or relative to the measurement, so that the same constants serve one request a minute and ten thousand
//! a second. All arithmetic is in integers.

use std::time::Duration;

use super::{
    backoff::Streak,
    config::{Adapt, Backoff},
    time::{Time, nanos},
};

/// The rate never falls below this part of the configured one, so there is always a way back.
const FLOOR: u64 = 1024;
/// How far below the measurement the rate is held, as a part of it: little enough to waste nothing, more than its error.
const HAIR: u64 = 256;
/// How far above it the gentle part of a probe ends, as a part of it.
const GENTLE: u64 = 64;
/// Requests in a probe for each refusal the last episode cost: where the limit is steady, and where it has just moved.
const STEADY: u64 = 450;
const MOVING: u64 = 64;
/// A measurement that differs by more than this part means that the limit has moved.
const MOVED: u64 = 16;
/// Fewer accepted requests than this are weak evidence.
const EVIDENCE: u64 = 16;
/// An episode that costs more refusals than this met a wall. More than [`WALL_MOST`] are not remembered: they came of a rate that was
/// far too high.
const WALL: u64 = 3;
const WALL_MOST: u64 = 8;
/// A pause longer than this is the server's window, not the price of a probe.
const DEAR: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub(super) struct Rate {
    current: u64,
    full: u64,
    adapt: Adapt,
    streak: Streak,
    /// The last request that had left when the last refusal came.
    settled: u64,
    guess: Option<Guess>,
    /// The episode that is not over yet: the rate before it.
    episode: Option<u64>,
    /// Whether a request was accepted that left after the last refusal; before the first one too.
    proved: bool,
    since: Since,
    /// What the last episode cost.
    refusals: u64,
    paused: Duration,
    /// The last pause of it: how much later than the server opened it may have ended.
    late: Duration,
    /// What episodes cost of late.
    wall: u64,
}

/// What is known from measurements.
#[derive(Debug, Clone, Copy)]
struct Guess {
    /// In credits a nanosecond.
    limit: u64,
    /// It was made of next to nothing.
    weak: bool,
    /// Measurements in a row that agree.
    steady: u32,
    /// Requests accepted since the last episode.
    progress: u64,
    /// What had been accepted since the measurement when the probe began to speed up.
    fast: Option<Since>,
}

/// Accepted requests and time while somebody waited.
#[derive(Debug, Clone, Copy)]
struct Since {
    accepted: u64,
    busy: Duration,
    /// The last event, if somebody waited at it.
    last: Option<Time>,
}

impl Rate {
    pub(super) const fn new(full: u64, adapt: Adapt, backoff: Backoff) -> Self {
        Self {
            current: full,
            full,
            adapt,
            streak: Streak::new(backoff, adapt),
            settled: 0,
            guess: None,
            episode: None,
            proved: true,
            since: Since::NOTHING,
            refusals: 0,
            paused: Duration::ZERO,
            late: Duration::ZERO,
            wall: 0,
        }
    }

    pub(super) const fn current(&self) -> u64 {
        self.current
    }

    /// An accepted request while no refusal was ever met: of that only the number matters. False if there is more to it.
    pub(super) const fn accepted_unchallenged(&mut self) -> bool {
        let unchallenged = self.guess.is_none() && self.proved && self.streak.is_over();
        if unchallenged {
            self.since.accepted = self.since.accepted.saturating_add(1);
        }
        unchallenged
    }

    /// Whether request `number` left after the last refusal was known.
    pub(super) const fn is_news(&self, number: u64) -> bool {
        number > self.settled
    }

    /// Requests up to `last_sent` left before the refusal that has just come.
    pub(super) const fn settle(&mut self, last_sent: u64) {
        self.settled = last_sent;
    }

    /// A refusal. `hint` is the wait the server names, `ours` whether our rate is to blame, `token` a token's credits. Returns the pause
    /// that follows if the server names none.
    pub(super) fn refused(
        &mut self,
        now: Time,
        refusal: &Refused,
        token: i128,
    ) -> Option<Duration> {
        self.since.pass(now, true, false);
        if !refusal.news {
            self.refusals += 1;
            return None;
        }
        let evident = self.guess.is_some() || self.since.accepted >= EVIDENCE;
        let tells = refusal.hint.is_none() || evident;
        if self.proved && refusal.ours && tells && self.adapt == Adapt::On {
            self.begin();
        }
        self.proved = false;
        self.refusals += 1;
        let wait = match refusal.hint {
            Some(wait) => {
                self.late = self.late.max(wait.min(DEAR));
                wait
            }
            None => {
                let nanos = token
                    .unsigned_abs()
                    .div_ceil(u128::from(self.current.max(1)));
                let interval = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
                let wait = self.streak.refused(now, interval, refusal.round_trip);
                self.late = wait;
                wait
            }
        };
        self.paused = self.paused.saturating_add(wait);
        refusal.hint.is_none().then_some(wait)
    }

    /// An accepted request. True if the rate rose.
    pub(super) fn accepted(
        &mut self,
        now: Time,
        news: bool,
        somebody_waits: bool,
        token: i128,
    ) -> bool {
        self.since.pass(now, somebody_waits, true);
        if !news {
            return false;
        }
        self.streak.accepted();
        self.proved = true;
        let before = self.current;
        if let Some(rate) = self.episode.take() {
            self.measure(rate, token);
        } else if somebody_waits {
            self.probe(token);
        }
        self.current > before
    }

    fn floor(&self) -> u64 {
        (self.full / FLOOR).max(1)
    }

    /// An episode begins.
    fn begin(&mut self) {
        let floor = self.floor();
        self.episode = Some(self.current);
        self.current = match self.guess {
            None => self.current / 2,
            Some(guess) => guess.limit.min(self.current - self.current / MOVED),
        }
        .max(floor);
        self.wall = self.refusals.min(WALL_MOST).max(self.wall * 3 / 4);
        self.refusals = 0;
        self.paused = Duration::ZERO;
        self.late = Duration::ZERO;
    }

    /// An episode is over; `before` was the rate when it began.
    fn measure(&mut self, before: u64, token: i128) {
        // The request that ends it belongs to the time after.
        let accepted = self.since.accepted.saturating_sub(1);
        let busy = self.since.busy.saturating_sub(self.late / 2);
        let mut limit = rate(accepted, busy, token);
        if accepted < EVIDENCE {
            // One more or less makes a difference.
            limit = limit.saturating_add(limit / accepted.max(1));
        }
        if let Some(fast) = self.guess.and_then(|guess| guess.fast) {
            let accepted = accepted.saturating_sub(fast.accepted);
            limit = limit.max(rate(accepted, busy.saturating_sub(fast.busy), token));
        }
        let most = match self.guess {
            None => before / 2,
            Some(_) => before - before / HAIR,
        };
        let least = before / if accepted < EVIDENCE { 2 } else { 8 };
        let floor = self.floor();
        let limit = limit.min(most).max(least).max(floor);
        let steady = self.guess.map_or(0, |old| {
            if limit.abs_diff(old.limit) > old.limit / MOVED {
                0
            } else {
                old.steady.saturating_add(1)
            }
        });
        self.current = match self.guess {
            None => limit,
            Some(_) => (limit - limit / HAIR).max(floor),
        };
        self.guess = Some(Guess {
            limit,
            weak: self.guess.is_none() && accepted < EVIDENCE,
            steady,
            progress: 0,
            fast: None,
        });
        self.since = Since {
            accepted: 1,
            busy: Duration::ZERO,
            last: self.since.last,
        };
    }

    /// One more request was accepted in a probe.
    fn probe(&mut self, token: i128) {
        let Some(mut guess) = self.guess else { return };
        guess.progress += 1;
        let rate = self.planned(&guess, token).clamp(self.floor(), self.full);
        if guess.fast.is_none() && rate > guess.limit + guess.limit / (GENTLE / 2) {
            guess.fast = Some(self.since);
        }
        self.current = rate;
        self.guess = Some(guess);
    }

    /// The rate at this point of a probe.
    fn planned(&self, guess: &Guess, token: i128) -> u64 {
        let Guess {
            limit, progress, ..
        } = *guess;
        let length = self.length(guess, token);
        let half = length / 2;
        let low = limit - limit / HAIR;
        if progress < half {
            return low;
        }
        if progress < length {
            let rise = u128::from(limit / HAIR + limit / GENTLE);
            let part = rise * u128::from(progress - half) / u128::from(length - half);
            return low.saturating_add(u64::try_from(part).unwrap_or(u64::MAX));
        }
        let step = if self.cost(guess).max(self.wall) <= WALL {
            length / 16
        } else {
            length
        };
        let doublings = u32::try_from((progress - length) / step.max(4)).unwrap_or(u32::MAX);
        let excess = u128::from(limit / GENTLE) << doublings.min(64);
        let excess = u64::try_from(excess).unwrap_or(u64::MAX);
        limit.saturating_add(excess)
    }

    /// What the last episode cost, in refusals. A flight that was refused before anything was known cost as much by chance.
    fn cost(&self, guess: &Guess) -> u64 {
        self.refusals
            .clamp(1, if guess.weak { WALL } else { u64::MAX })
    }

    /// How many requests the slow part of a probe takes.
    fn length(&self, guess: &Guess, token: i128) -> u64 {
        let moving = guess.steady == 0;
        let by_refusals = self
            .cost(guess)
            .saturating_mul(if moving { MOVING } else { STEADY });
        let paused = u128::from(nanos(self.paused.min(DEAR)));
        let lost = u128::from(guess.limit) * paused / token.unsigned_abs().max(1);
        let by_pause = lost * if moving { 6 } else { 50 };
        by_refusals
            .max(u64::try_from(by_pause).unwrap_or(u64::MAX))
            .clamp(32, 1 << 20)
    }
}

/// What is known of a refusal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refused {
    /// Its request left after the last refusal was known.
    pub(super) news: bool,
    /// Our rate is to blame, as far as the server says.
    pub(super) ours: bool,
    /// The wait the server names.
    pub(super) hint: Option<Duration>,
    pub(super) round_trip: Duration,
}

impl Since {
    const NOTHING: Self = Self {
        accepted: 0,
        busy: Duration::ZERO,
        last: None,
    };

    fn pass(&mut self, now: Time, waits: bool, accepted: bool) {
        if let Some(last) = self.last {
            self.busy = self.busy.saturating_add(now.since(last));
        }
        if waits || self.last.is_some() {
            self.accepted += u64::from(accepted);
        }
        self.last = waits.then_some(now);
    }
}

/// So many tokens in so much time, in credits a nanosecond.
fn rate(tokens: u64, time: Duration, token: i128) -> u64 {
    let credits = u128::from(tokens) * token.unsigned_abs();
    u64::try_from(credits / u128::from(nanos(time).max(1))).unwrap_or(u64::MAX)
}
