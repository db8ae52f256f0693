//! The rate in use: the configured one, or a guess of the server's limit made from its refusals.
//!
//! # The algorithm
//!
//! *Episodes* (`episode.rs`). One begins with a refusal of a request that left after the last episode was over, and is over when such a
//! request is accepted again. All refusals in between count as one event (law L6). Until it is over the rate is a little lower than
//! before it; the first one halves it (what was really sent, if that was less), or goes by what the server accepted of the flight that
//! met it, if that was enough to tell.
//!
//! *Measure* (`measure.rs`). From the end of one episode to the end of the next, a server with a limit accepts just what the limit
//! allows: a token bucket is as empty at both ends, and a window begins at both. So what was accepted in between, over the time, *is* the
//! limit. Time in which nobody waited is left out, unless more was accepted with it. The server may have opened at any time during the
//! last pause; the middle is taken, and how far that may be wrong is remembered. A measurement changes the rate the less the less it
//! rests on. The first one has no episode's end before it, and a burst in it: it is a bound only.
//!
//! *Hold, then probe* (`probe.rs`). After a measurement the rate stays a hair below it, then rises gently to a little above it (or as
//! far as the measurement is unsure), then ever faster, until the next episode. What the last episode cost, in refusals and in paused
//! time, sets how many requests that takes: in the end about one in 450 is refused, and about 2 % of the time is spent in pauses. Each step of the
//! fast part lasts four times as long as the longest pause of late, so that a window's end, which such pauses are made of, is not
//! taken by surprise. If the limit has risen since it was measured, what the last two steps say counts.
//!
//! *Moved.* If a measurement differs by more than a sixteenth from the last that left little doubt, the limit has moved: the next probes
//! are short, and become longer as requests are accepted.
//!
//! *Sharing.* A single refusal of a rate that was thought safe means that somebody else takes part of the limit: we yield a sixteenth. Short
//! probes take time, not requests, so that who has less of a shared limit tries for more as often as who has more of it.
//!
//! *Pauses.* They last as `backoff.rs` says; then one request tests the server while the others wait. A refusal that names its wait is an
//! episode only after some evidence, since the server has already said what to do.
//!
//! Only requests accepted while somebody waits advance a probe: an idle client learns nothing.
//!
//! All amounts are in requests, in round trips or relative to the measurement, so that the same constants serve one request a minute and ten
//! thousand a second. All arithmetic is in integers, so that a replay is exact. What it achieves is in `benches/pacing/results.md`.
//!
//! | state | what it is |
//! |---|---|
//! | `episode` | the refusals under way, if any, and what they cost so far |
//! | `tally` | what was accepted since the last episode |
//! | `guess` | the last measurement, what its episode cost, and the progress of the probe |
//! | `known`, `agreed`, `calm` | the last sure measurement, how many agreed with it, how long the limit has not moved |
//! | `horizon` | the longest pause of late |
//!
//! | event | what follows |
//! |---|---|
//! | refused, the first since a recovery | `begin`: the rate falls, an episode begins |
//! | refused again, before a recovery | another pause; what it costs is added up |
//! | refused or accepted, but sent before the last refusal | counted only |
//! | accepted, the first since a refusal | `learn`: the episode is over, the limit is measured, the rate is set |
//! | accepted later, while somebody waits | `Guess::advance`: the probe goes on, the rate may rise |

mod episode;
mod fresh;
mod measure;
mod probe;
mod sound;
mod tally;

use std::time::Duration;

use super::{
    answer::RateCause,
    backoff::Streak,
    config::{Adapt, Backoff},
    learned::{Adaptation, Phase},
    time::Time,
};
use episode::Episode;
use measure::{Measurement, measure};
use probe::{Guess, Pace, below};
use tally::{Tally, rate};

pub(super) use tally::scaled;

/// The rate never falls below this part of the configured one, so there is always a way back.
const FLOOR: u64 = 1024;
/// How far below the measurement the rate is held, as a part of it: little enough to waste nothing, more than its error.
const HAIR: u64 = 256;
/// How far above it the gentle part of a probe ends at least, as a part of it.
const GENTLE: u64 = 64;
/// Requests in a probe for each refusal the last episode cost, where the limit is steady: so about one in 450 is refused.
const STEADY: u64 = 450;
/// The same where the limit has moved: this part of the requests accepted since, but no fewer than go in so many round trips. Those
/// are the same for all clients of a server, so that those with a small part of its limit probe as often as those with a large one.
const CALM: u64 = 8;
const PATIENT: u32 = 32;
/// Never fewer than this.
const LEAST: u64 = 8;
/// Requests in a probe while nothing is known for sure.
const UNKNOWN: u64 = 64;
/// A measurement that differs by more than this part means that the limit has moved.
const MOVED: u64 = 16;
/// Fewer accepted requests than this are weak evidence.
const EVIDENCE: u64 = 16;
/// Each step of a probe lasts so many times as long as the longest pause: long enough to meet the end of a window, whose length is
/// not known, but more than such a pause.
const STEP: u32 = 4;
/// After some service a pause need not be longer than this part of it, as no measurement would be better for it.
const ENOUGH: u32 = 6;

#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone)]
pub(super) struct Rate {
    current: u64,
    full: u64,
    adapt: Adapt,
    streak: Streak,
    /// The last request that had left when the last refusal came.
    settled: u64,
    /// Whether a request was accepted that left after the last refusal; before the first one too.
    proved: bool,
    tally: Tally,
    /// The one that is not over yet.
    episode: Option<Episode>,
    guess: Option<Guess>,
    /// The last measurement that left little doubt, and how many in a row agreed with the one before, at most 2.
    known: Option<u64>,
    agreed: u32,
    /// Requests accepted since the limit last moved.
    calm: u64,
    /// The longest that episodes paused of late.
    horizon: Duration,
}

impl Rate {
    pub(super) const fn new(full: u64, adapt: Adapt, backoff: Backoff) -> Self {
        Self {
            current: full,
            full,
            adapt,
            streak: Streak::new(backoff, adapt),
            settled: 0,
            proved: true,
            tally: Tally::NOTHING,
            episode: None,
            guess: None,
            known: None,
            agreed: 0,
            calm: u64::MAX,
            horizon: Duration::ZERO,
        }
    }

    pub(super) const fn current(&self) -> u64 {
        self.current
    }

    /// An accepted request while no refusal was ever met: of that only the number matters. False if there is more to it.
    pub(super) const fn accepted_unchallenged(&mut self) -> bool {
        let unchallenged = self.guess.is_none() && self.proved && self.streak.is_over();
        if unchallenged {
            self.tally.count();
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

    /// A refusal. `token` is a token's credits. Returns the pause that follows, which is at least what the server names; `None` if this is
    /// no news.
    pub(super) fn refused(
        &mut self,
        now: Time,
        refusal: &Refused,
        token: i128,
    ) -> Option<Duration> {
        self.tally.pass(now, true);
        if !self.is_news(refusal.number) {
            self.charge();
            return None;
        }
        let evident = self.guess.is_some() || self.tally.served >= EVIDENCE;
        let tells = refusal.hint.is_none() || evident;
        if self.proved && refusal.ours && tells && self.adapt == Adapt::On {
            self.begin(now, refusal, token);
        }
        self.proved = false;
        self.charge();
        let wait = self.back_off(now, refusal, token);
        if let Some(episode) = &mut self.episode {
            episode.pause(wait, refusal.hint == Some(wait));
        }
        Some(wait)
    }

    /// An accepted request. Returns what it made of the rate, if anything.
    pub(super) fn accepted(
        &mut self,
        now: Time,
        number: u64,
        somebody_waits: bool,
        token: i128,
    ) -> Option<RateCause> {
        self.tally.accepted(now, somebody_waits);
        if !self.is_news(number) {
            self.accepted_under_way(number, token);
            return None;
        }
        self.streak.accepted();
        self.proved = true;
        if let Some(mut episode) = self.episode.take() {
            episode.tested = now.since(self.streak.resumed());
            self.learn(now, episode, token);
            return Some(RateCause::Measurement);
        }
        let pace = self.pace();
        let guess = self.guess.as_mut().filter(|_| somebody_waits)?;
        let rate = guess.advance(&pace, &self.tally, token);
        self.current = rate.clamp(self.floor(), self.full);
        Some(RateCause::Probe)
    }

    /// Starts from a limit learnt before.
    pub(super) fn resume(&mut self, limit: u64) {
        let limit = limit.max(self.floor());
        if self.adapt == Adapt::Off || limit >= self.full {
            return;
        }
        let measured = Measurement {
            limit,
            unsure: 0,
            weak: false,
        };
        self.current = below(limit);
        self.known = Some(limit);
        self.guess = Some(Guess::new(measured, Episode::NONE));
    }

    /// The configured quota has changed, and with it what a credit is worth: from `before` credits in a token to `after`.
    pub(super) fn rescale(&mut self, before: i128, after: i128, was: u64, full: u64) {
        let scale = |rate: u64| scaled(rate, before, after).clamp(1, full);
        let unlimited = self.current == was;
        self.current = if unlimited { full } else { scale(self.current) };
        self.full = full;
        self.known = self.known.map(scale);
        if let Some(episode) = &mut self.episode {
            episode.before = scale(episode.before);
        }
        if let Some(guess) = &mut self.guess {
            guess.rescale(scale);
        }
    }

    pub(super) fn view(&self, per_second: impl Fn(u64) -> f64, token: i128) -> Adaptation {
        let cost = (self.episode.as_ref()).or(self.guess.as_ref().map(|guess| &guess.cost));
        let phase = match &self.guess {
            _ if self.episode.is_some() => Phase::Refused,
            None => Phase::Unchallenged,
            Some(guess) if guess.is_holding(&self.pace(), token) => Phase::Holding,
            Some(_) => Phase::Probing,
        };
        Adaptation {
            phase,
            limit: self.guess.map(|guess| per_second(guess.limit)),
            unsure: self.guess.map_or(0.0, |guess| per_second(guess.unsure)),
            accepted: self.tally.served,
            refusals: cost.map_or(0, |cost| cost.refusals),
            paused: cost.map_or(Duration::ZERO, |cost| cost.paused),
        }
    }

    const fn floor(&self) -> u64 {
        let floor = self.full / FLOOR;
        if floor == 0 { 1 } else { floor }
    }

    const fn pace(&self) -> Pace {
        Pace {
            full: self.full,
            known: self.known.is_some(),
            agreed: self.agreed,
            calm: self.calm,
            horizon: self.horizon,
        }
    }

    /// One more refusal, of this episode or late from the last one.
    const fn charge(&mut self) {
        let cost = match (&mut self.episode, &mut self.guess) {
            (Some(episode), _) => episode,
            (None, Some(guess)) => &mut guess.cost,
            (None, None) => return,
        };
        cost.refusals = cost.refusals.saturating_add(1);
    }

    fn back_off(&mut self, now: Time, refusal: &Refused, token: i128) -> Duration {
        let nanos = token
            .unsigned_abs()
            .div_ceil(u128::from(self.current.max(1)));
        let interval = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let enough = (self.tally.served >= EVIDENCE).then_some(self.tally.busy / ENOUGH);
        let round_trip = now.since(refusal.sent);
        (self.streak).refused(now, refusal.hint, interval, round_trip, enough)
    }

    /// An episode begins.
    fn begin(&mut self, now: Time, refusal: &Refused, token: i128) {
        let episode = Episode::new(now, self.current, refusal, self.guess.is_none());
        let rate = match self.guess {
            None => {
                // Demand may be less than the rate.
                let sent = refusal.last_sent.saturating_sub(refusal.number);
                let met = (sent >= EVIDENCE).then(|| rate(sent, episode.round_trip, token));
                self.current.min(met.unwrap_or(u64::MAX)) / 2
            }
            Some(guess) => guess.limit.min(self.current - self.current / MOVED),
        };
        self.current = rate.max(self.floor());
        self.episode = Some(episode);
    }

    /// Request `number`, which was under way at the last refusal, was accepted.
    fn accepted_under_way(&mut self, number: u64, token: i128) {
        let floor = self.floor();
        let Some(episode) = &mut self.episode else {
            return;
        };
        episode.accepted_under_way(number);
        if let Some(rate) = episode.volley_rate(token) {
            self.current = rate.min(episode.before).max(floor);
        }
    }

    /// An episode is over.
    fn learn(&mut self, now: Time, mut episode: Episode, token: i128) {
        let mut measured = measure(now, &self.tally, &episode, self.guess.as_ref(), token);
        let limit = measured.limit.max(self.floor());
        measured.limit = limit;
        self.calm = self
            .calm
            .saturating_add(self.tally.accepted.saturating_sub(1));
        if let Some(known) = self.known {
            let apart = limit.abs_diff(known).saturating_sub(measured.unsure);
            if apart > known / MOVED {
                self.calm = 0;
                // What a move costs says nothing about what a probe will.
                episode.refusals = 1;
            } else {
                self.agreed = (self.agreed + 1).min(2);
            }
        }
        if measured.unsure == 0 {
            self.known = Some(limit);
        }
        self.current = match self.guess {
            // The first one may be of next to nothing.
            None => limit,
            Some(_) => below(limit).max(self.floor()),
        };
        self.horizon = episode.paused.max(self.horizon - self.horizon / 16);
        self.guess = Some(Guess::new(measured, episode));
        self.tally.restart(now);
    }
}

/// What is known of a refusal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refused {
    /// Which request it was, in the order in which they left, and when that was.
    pub(super) number: u64,
    pub(super) sent: Time,
    /// The last one that has left.
    pub(super) last_sent: u64,
    /// Our rate is to blame, as far as the server says.
    pub(super) ours: bool,
    /// The wait the server names.
    pub(super) hint: Option<Duration>,
}
