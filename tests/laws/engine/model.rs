//! The engine against a model that is too simple to be wrong: a number, a list, and every event taken at its own time.
//!
//! Some callers are parked (polled once and then never again) and some hold what they are granted without sending. The model knows
//! nothing of that: for it everybody is prompt. Whoever is prompt must be served when the model says, whatever the others do.

use std::time::Duration;

use proptest::prelude::*;
use tower_throttle::{
    Quota,
    engine::{Config, Departure, Engine, Poll, TicketId, Time},
};

const SLACK: u64 = 10_000_000;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Prompt,
    Parked,
    Holder,
}

#[derive(Debug, Clone)]
enum Op {
    Join(u32, Kind),
    Cancel(usize),
    Pause(u64),
    Advance(u64),
    Try(u32),
}

/// Level in units of 1 / period token, so that each nanosecond brings `amount`.
struct Model {
    now: u64,
    amount: i128,
    period: i128,
    burst: i128,
    level: i128,
    /// What really left is taken from here; what goes back to the level is at most this.
    room: i128,
    /// Something went back to the level.
    returned: bool,
    paused_until: u64,
    queue: Vec<(usize, u32, Kind)>,
    granted: Vec<(usize, u64)>,
    held: Vec<(usize, u32)>,
}

impl Model {
    fn step_to(&mut self, at: u64) {
        self.room = (self.room + self.amount * i128::from(at - self.now)).min(self.burst);
        // A pause holds one token at most.
        if self.now < self.paused_until {
            let stop = at.min(self.paused_until);
            self.level += self.amount * i128::from(stop - self.now);
            self.level = self.level.min(self.period);
            self.now = stop;
        }
        self.level += self.amount * i128::from(at - self.now);
        self.now = at;
        if self.queue.is_empty() {
            self.level = self.level.min(self.burst);
        }
    }

    fn next_grant(&self) -> Option<u64> {
        let &(_, cost, _) = self.queue.first()?;
        let need = i128::from(cost) * self.period;
        let (mut at, mut level) = (self.now, self.level);
        if at < self.paused_until {
            level = (level + self.amount * i128::from(self.paused_until - at)).min(self.period);
            at = self.paused_until;
        }
        let missing = (need - level).max(0);
        let wait = (missing + self.amount - 1) / self.amount;
        Some(at + u64::try_from(wait).unwrap())
    }

    fn advance(&mut self, to: u64) {
        while let Some(at) = self.next_grant().filter(|&at| at <= to) {
            self.step_to(at);
            let (caller, cost, kind) = self.queue.remove(0);
            self.level -= i128::from(cost) * self.period;
            self.granted.push((caller, at));
            if kind == Kind::Prompt {
                self.room -= i128::from(cost) * self.period;
            } else {
                self.held.push((caller, cost));
            }
        }
        self.step_to(to);
    }

    fn pause(&mut self, wait: u64) {
        if self.now + wait > self.paused_until.max(self.now) {
            self.paused_until = self.now + wait;
            let held: i128 = self.held.drain(..).map(|(_, cost)| i128::from(cost)).sum();
            self.give_back(held);
            self.level = self.level.min(self.period);
        }
    }

    fn give_back(&mut self, cost: i128) {
        self.returned |= cost > 0;
        let level = self.level + cost * self.period;
        self.level = level.min(self.room.max(self.level));
    }

    fn cancel(&mut self, caller: usize) {
        self.queue.retain(|&(queued, ..)| queued != caller);
        if let Some(index) = self.held.iter().position(|&(held, _)| held == caller) {
            let (_, cost) = self.held.remove(index);
            self.give_back(i128::from(cost));
        }
        self.advance(self.now);
    }
}

struct Caller {
    kind: Kind,
    ticket: Option<TicketId>,
    armed: u64,
    holds: bool,
    sent: Option<u64>,
}

struct Run {
    engine: Engine,
    now: u64,
    callers: Vec<Caller>,
    /// Cost and time of all that left, in order.
    left: Vec<(u64, u32)>,
}

impl Run {
    fn poll(&mut self, index: usize) {
        let now = Time::from_nanos(self.now);
        let caller = &mut self.callers[index];
        let Some(ticket) = caller.ticket else { return };
        match self.engine.poll(now, ticket) {
            Poll::Wait(at) => {
                assert!(at > now, "told to ask again at once");
                caller.armed = at.as_nanos();
            }
            Poll::Granted if caller.kind == Kind::Prompt => {
                match self.engine.send(now, ticket, false) {
                    Departure::Sent(grant) => {
                        caller.ticket = None;
                        caller.sent = Some(self.now);
                        self.left.push((self.now, grant.cost));
                    }
                    Departure::Wait(at) => caller.armed = at.as_nanos(),
                    Departure::Refused(refusal) => panic!("{refusal:?}"),
                }
            }
            Poll::Granted => {
                caller.holds = true;
                caller.armed = u64::MAX;
            }
            Poll::Refused(refusal) => panic!("{refusal:?}"),
        }
    }

    /// Polls whom the engine names, as their tasks would.
    fn wake(&mut self) {
        while let Some(ticket) = self.engine.take_woken() {
            let index = self.callers.iter().position(|caller| {
                caller.ticket == Some(ticket) && caller.kind != Kind::Parked && !caller.holds
            });
            if let Some(index) = index {
                self.poll(index);
            }
        }
    }

    fn advance(&mut self, to: u64) {
        loop {
            let next = (0..self.callers.len())
                .filter(|&index| {
                    let caller = &self.callers[index];
                    caller.ticket.is_some() && caller.kind != Kind::Parked && !caller.holds
                })
                .min_by_key(|&index| self.callers[index].armed);
            match next {
                Some(index) if self.callers[index].armed <= to => {
                    self.now = self.now.max(self.callers[index].armed);
                    self.poll(index);
                    self.wake();
                }
                _ => break,
            }
        }
        self.now = to;
    }
}

fn check(amount: u32, period: u64, burst: u32, ops: &[Op]) -> Result<(), TestCaseError> {
    let quota = Quota::new(amount, Duration::from_nanos(period)).burst(burst);
    let mut config = Config::new(quota);
    config.max_pause = Duration::MAX;
    let mut run = Run {
        engine: Engine::new(config, Time::ZERO).unwrap(),
        now: 0,
        callers: Vec::new(),
        left: Vec::new(),
    };
    let mut model = Model {
        now: 0,
        amount: amount.into(),
        period: period.into(),
        burst: i128::from(burst) * i128::from(period),
        level: i128::from(burst) * i128::from(period),
        room: i128::from(burst) * i128::from(period),
        returned: false,
        paused_until: 0,
        queue: Vec::new(),
        granted: Vec::new(),
        held: Vec::new(),
    };
    for op in ops {
        let now = Time::from_nanos(run.now);
        match *op {
            Op::Join(cost, kind) => {
                let cost = cost.min(burst);
                let index = run.callers.len();
                let ticket = run.engine.join(now, cost, None).unwrap();
                run.callers.push(Caller {
                    kind,
                    ticket: Some(ticket),
                    armed: u64::MAX,
                    holds: false,
                    sent: None,
                });
                model.queue.push((index, cost, kind));
                run.poll(index);
                run.wake();
            }
            Op::Cancel(index) if index < run.callers.len() => {
                if let Some(ticket) = run.callers[index].ticket.take() {
                    run.engine.cancel(now, ticket).unwrap();
                    model.cancel(index);
                    run.wake();
                }
            }
            Op::Cancel(_) => {}
            Op::Pause(wait) => {
                run.engine.penalize(now, Duration::from_nanos(wait));
                model.pause(wait);
                run.wake();
            }
            Op::Advance(by) => {
                run.advance(run.now + by);
                model.advance(run.now);
            }
            Op::Try(cost) => {
                let cost = cost.min(burst);
                let line = run.engine.view(now).queue_len;
                let taken = run.engine.try_send(now, cost).is_ok();
                run.wake();
                if taken {
                    prop_assert_eq!(line, 0, "passed the line");
                    prop_assert!(run.now >= model.paused_until, "sent in a pause");
                    run.left.push((run.now, cost));
                    model.level -= i128::from(cost) * model.period;
                    model.room -= i128::from(cost) * model.period;
                }
            }
        }
        model.advance(run.now);
    }
    // Time for everybody that is left.
    let end = run.now + 10 * period * u64::from(burst) * (run.callers.len() as u64 + 1) + SLACK;
    run.advance(end);
    model.advance(end);

    let burst_and_slack = |window: u64| {
        i128::from(burst) * i128::from(period)
            + i128::from(amount) * (i128::from(window) + i128::from(SLACK))
    };
    for (first, &(from, _)) in run.left.iter().enumerate() {
        let mut sum = 0;
        for &(to, cost) in &run.left[first..] {
            sum += i128::from(cost) * i128::from(period);
            prop_assert!(
                sum <= burst_and_slack(to - from),
                "the ceiling is broken between {from} and {to}"
            );
        }
    }
    let paused = ops.iter().any(|op| matches!(op, Op::Pause(_)));
    for &(index, due) in &model.granted {
        let caller = &run.callers[index];
        if caller.kind == Kind::Prompt && (caller.ticket.is_some() || caller.sent.is_some()) {
            let sent = caller.sent;
            prop_assert!(sent.is_some(), "caller {index} is never served, due {due}");
            let sent = sent.unwrap_or_default();
            // What went back is given out again without the slack.
            let grain = if model.returned { SLACK } else { 0 };
            prop_assert!(
                sent <= due + grain,
                "caller {index} left at {sent}, was due at {due}"
            );
            // Earlier by the slack at most; but a pause may come in between. Due times round up, by a nanosecond a caller at most.
            prop_assert!(
                paused || sent + SLACK + 100 >= due,
                "caller {index} left at {sent}, was due at {due}"
            );
        }
    }
    let order: Vec<_> = (run.callers.iter())
        .filter(|caller| caller.kind == Kind::Prompt)
        .filter_map(|caller| caller.sent)
        .collect();
    prop_assert!(order.is_sorted(), "not in order of arrival: {order:?}");
    Ok(())
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        4 => Just(Kind::Prompt),
        1 => Just(Kind::Parked),
        1 => Just(Kind::Holder),
    ]
}

fn op(period: u64) -> impl Strategy<Value = Op> {
    prop_oneof![
        5 => (0..6_u32, kind()).prop_map(|(cost, kind)| Op::Join(cost, kind)),
        2 => (0..12_usize).prop_map(Op::Cancel),
        1 => (0..4 * period).prop_map(Op::Pause),
        5 => (0..3 * period).prop_map(Op::Advance),
        2 => (0..4_u32).prop_map(Op::Try),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases(), ..ProptestConfig::default() })]

    #[test]
    fn the_prompt_are_served_on_time_whatever_others_do(
        // Slow enough for the slack to be a small part of a token.
        (amount, period, burst, ops) in (1..20_u32, 1_000_000_000..20_000_000_000_u64, 1..6_u32)
            .prop_flat_map(|(amount, period, burst)| {
                let ops = prop::collection::vec(op(period), 1..40);
                (Just(amount), Just(period), Just(burst), ops)
            })
    ) {
        check(amount, period, burst, &ops)?;
    }
}
