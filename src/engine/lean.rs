//! An engine at rest in a few words.
//!
//! Most engines of a large set are at rest: nobody waits, nothing is held or under way, no pause, no budget of the server's and nothing
//! learnt. Such an engine is its configuration, which many share ([`Plan`]), and the level of its bucket ([`Lean`]). As long as tokens
//! are there it can send from these words alone, by the same arithmetic; anything else takes an [`Engine`] made from them.

use std::time::Duration;

use super::{
    answer::{Flight, Pause},
    bucket::{Bucket, slack},
    config::Config,
    correct::Trial,
    costs::Costs,
    learned::Learned,
    line::Ask,
    machine::Engine,
    outcome::{Grant, Refusal, WaitReason},
    quota::ConfigError,
    tickets::TicketId,
    time::{Time, nanos},
};

/// What engines of one configuration have in common.
#[derive(Debug)]
pub(crate) struct Plan {
    config: Config,
    token: i128,
    burst: i128,
    /// At the start.
    initial: i128,
    rate: u64,
}

/// What is left of an engine at rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lean {
    /// Credits, never below zero; in halves because a whole `u128` would make each entry of a table a multiple of 16 bytes.
    level: [u64; 2],
    updated: Time,
    /// The last number given to a caller or a request.
    seq: u64,
}

impl Plan {
    pub(crate) fn new(config: Config) -> Result<Self, ConfigError> {
        config.validate()?;
        if config.quota.is_strict() {
            return Err(ConfigError::new(
                "quota",
                "of a key cannot be one that counts in any window",
            ));
        }
        let bucket = Bucket::new(&config.quota, Time::ZERO);
        Ok(Self {
            token: bucket.token(),
            burst: bucket.burst(),
            initial: bucket.level(),
            rate: bucket.full_rate(),
            config,
        })
    }

    pub(crate) const fn config(&self) -> &Config {
        &self.config
    }

    /// Credits that `time` brings, but no more than fit.
    fn earned(&self, time: Duration) -> i128 {
        let credits = u128::from(self.rate) * u128::from(nanos(time));
        credits.min(self.burst.unsigned_abs()) as i128
    }

    fn time_for(&self, credits: i128) -> Duration {
        let nanos = u128::try_from(credits)
            .unwrap_or(0)
            .div_ceil(u128::from(self.rate));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

impl Lean {
    /// One that nobody has used since the clock began. So one that was forgotten once it was full comes back full. Its callers are
    /// numbered from the one after `seq`.
    pub(crate) fn new(plan: &Plan, now: Time, seq: u64) -> Self {
        let mut lean = Self {
            level: [0; 2],
            updated: Time::ZERO,
            seq,
        };
        lean.set_level(plan.initial);
        let level = lean.level_at(plan, now);
        lean.updated = now;
        lean.set_level(level);
        lean
    }

    pub(crate) const fn seq(&self) -> u64 {
        self.seq
    }

    /// When it was last changed, or the end of the last pause for all it took part in.
    pub(crate) const fn updated(&self) -> Time {
        self.updated
    }

    /// The number of one more caller, who is refused.
    pub(crate) const fn refuse(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }

    /// Takes part in a pause for all: as in an engine, at its end there is at most one token.
    pub(crate) fn pause_until(&mut self, plan: &Plan, until: Time) {
        if until > self.updated {
            let level = self.level_at(plan, until);
            self.updated = until;
            self.set_level(level.min(plan.token));
        }
    }

    /// Whether `cost` could leave now.
    pub(crate) fn could_send(&self, plan: &Plan, now: Time, cost: u32) -> bool {
        cost <= plan.config.quota.burst_size()
            && self.level_at(plan, now) >= plan.token * i128::from(cost)
    }

    /// As [`Engine::try_send`].
    pub(crate) fn try_send(
        &mut self,
        plan: &Plan,
        now: Time,
        cost: u32,
    ) -> Result<Grant, (u64, Refusal)> {
        if let Some(grant) = self.take(plan, now, cost) {
            return Ok(grant);
        }
        let seq = self.refuse();
        let burst = plan.config.quota.burst_size();
        if cost > burst {
            return Err((seq, Refusal::TooExpensive { cost, burst }));
        }
        let missing = plan.token * i128::from(cost) - self.level_at(plan, now);
        Err((seq, Refusal::WouldWait(plan.time_for(missing))))
    }

    /// Sends if the tokens are there. Changes nothing otherwise.
    #[inline]
    pub(crate) fn take(&mut self, plan: &Plan, now: Time, cost: u32) -> Option<Grant> {
        // The level is at most the burst, so a cost above that is never met.
        let level = self.level_at(plan, now) - plan.token * i128::from(cost);
        if level < 0 {
            return None;
        }
        self.seq += 1;
        self.updated = self.updated.max(now);
        self.set_level(level);
        Some(Grant {
            seq: self.seq,
            flight: Flight {
                number: self.seq,
                sent: self.updated,
                cost: 0,
            },
            cost,
            costs: Costs::each(cost),
            waited: Duration::ZERO,
            would_wait: Duration::ZERO,
            reason: WaitReason::None,
            level,
            token: plan.token,
            rate: plan.rate,
        })
    }

    /// When the bucket is full again, and this cannot be told from a new one.
    pub(crate) fn full_at(&self, plan: &Plan) -> Time {
        let missing = plan.burst - self.level_at(plan, self.updated);
        self.updated.after(plan.time_for(missing))
    }

    /// The engine this stands for.
    pub(crate) fn wake(&self, plan: &Plan, now: Time) -> Engine {
        // Of a pause that is not over only its share of tokens is known here.
        let updated = self.updated.min(now);
        let level = self.level_at(plan, self.updated);
        let mut engine = Engine::new(plan.config.clone(), updated)
            .expect("the configuration has been validated with the plan");
        engine.bucket = Bucket::resume(&plan.config.quota, level, updated);
        engine.now = updated;
        engine.seq = self.seq;
        engine.sent = self.seq;
        engine
    }

    fn level_at(&self, plan: &Plan, now: Time) -> i128 {
        let [high, low] = self.level.map(u128::from);
        let level = (high << 64 | low) as i128;
        let earned = plan.earned(now.since(self.updated));
        // Neither is above the burst, which is at most 2^126.
        (level + earned).min(plan.burst)
    }

    fn set_level(&mut self, level: i128) {
        let level = level.unsigned_abs();
        self.level = [(level >> 64) as u64, level as u64];
    }
}

impl Engine {
    /// What is left of this engine if it is at rest at `now`. `idle`: how long nobody has used it; what was learnt is worth nothing after
    /// [`Learned::MAX_AGE`].
    pub(crate) fn rest(&mut self, now: Time, idle: Duration) -> Option<Lean> {
        self.advance(now);
        let busy = !self.line.is_empty()
            || !self.held.is_empty()
            || !self.woken.is_empty()
            || self.in_flight > 0
            || self.now < self.busy_until;
        let told = self.pause().is_some() || !self.windows.is_clear();
        let learnt = self.trial != Trial::None || !self.rate.is_fresh(self.now);
        let learnt = learnt && idle <= Learned::MAX_AGE;
        let level = self.bucket.level();
        let plain = level >= 0 && self.bucket.room() >= level + slack(self.rate.current());
        if busy || told || learnt || self.closed || !plain {
            return None;
        }
        let mut lean = Lean {
            level: [0; 2],
            updated: self.now,
            seq: self.seq.max(self.sent),
        };
        lean.set_level(level.min(self.bucket.burst()));
        Some(lean)
    }

    /// Takes part in a pause that was set for many engines, perhaps without having been looked at since.
    pub(crate) fn pause_until(&mut self, now: Time, pause: Pause) {
        if pause.until > self.now && now >= pause.until {
            // It is over. At its end there was one token at most.
            self.advance(pause.until);
            self.bucket.clamp(self.bucket.token());
        }
        self.advance(now);
        if pause.until > self.now {
            self.hold(pause.until.since(self.now), pause.cause);
        }
    }

    /// Whether `cost` could be sent now, without a ticket.
    pub(crate) fn could_send(&mut self, now: Time, cost: u32) -> bool {
        self.advance(now);
        let ask = Ask {
            costs: Costs::each(cost),
            patience: Some(Duration::ZERO),
            ..Ask::default()
        };
        self.config.observe || (self.admit(&ask).is_ok() && self.could_let_go(&ask.costs, self.now))
    }

    /// Whether there is room for what a ticket was granted.
    pub(crate) fn has_room(&self, id: TicketId) -> bool {
        (self.tickets.get(id))
            .is_some_and(|ticket| self.could_let_go(&ticket.costs, ticket.granted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Quota;

    /// The same tries at the same times have the same outcomes, whether by an engine, by the few words, or with changes between them.
    #[test]
    fn a_lean_one_decides_as_an_engine_does() {
        let mut random = 1_u64;
        let mut next = |below: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        for (amount, period, burst) in [(1, 1_000, 10), (3, 1_000, 2), (7, 13, 5), (1_000, 1, 1)] {
            let quota = Quota::new(amount, Duration::from_millis(period)).burst(burst);
            let plan = Plan::new(Config::new(quota)).unwrap();
            let mut engine = Engine::new(Config::new(quota), Time::ZERO).unwrap();
            let mut lean = Lean::new(&plan, Time::ZERO, 0);
            let mut now = Time::ZERO;
            for _ in 0..20_000 {
                now = now.after(Duration::from_nanos(
                    next(period * 2_000_000 / u64::from(amount)) + 1,
                ));
                let cost = next(u64::from(burst) + 2) as u32;
                let mut by_engine = engine.try_send(now, cost);
                let could = lean.could_send(&plan, now, cost);
                let by_lean = lean.try_send(&plan, now, cost);
                assert_eq!(could, by_lean.is_ok());
                if let (Ok(one), Ok(other)) = (&mut by_engine, &by_lean) {
                    one.flight = other.flight;
                }
                assert_eq!(by_engine, by_lean);
                if next(10) == 0 {
                    let rest = engine.rest(now, Duration::ZERO).unwrap();
                    assert_eq!(rest.full_at(&plan).max(now), lean.full_at(&plan).max(now));
                    engine = lean.wake(&plan, now);
                    lean = engine.rest(now, Duration::ZERO).unwrap();
                }
            }
        }
    }

    #[test]
    fn a_pause_that_nobody_looked_at_leaves_one_token_at_its_end() {
        let plan = Plan::new(Config::new(Quota::per_second(1).burst(10))).unwrap();
        let mut lean = Lean::new(&plan, Time::ZERO, 0);
        let at = |seconds| Time::ZERO.after(Duration::from_secs(seconds));
        let pause = Pause {
            until: at(60),
            cause: crate::engine::Cause::Server,
        };
        let mut engine = lean.wake(&plan, Time::ZERO);
        engine.pause_until(at(62), pause);
        lean.pause_until(&plan, at(60));
        for cost in [4, 3, 1] {
            let by_engine = engine.try_send(at(62), cost).is_ok();
            assert_eq!(by_engine, cost == 3);
            assert_eq!(lean.try_send(&plan, at(62), cost).is_ok(), by_engine);
        }
    }
}
