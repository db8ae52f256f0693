//! The laws over random traces with answers of all kinds, late polls, idle reservations and steps of the clock.

use std::time::Duration;

use proptest::prelude::*;
use tower_throttle::{
    Adapt, Quota, Spend,
    engine::{
        Answer, Cause, Config, Costs, Departure, Engine, Flight, Poll, Reading, TicketId, Time,
    },
};

const SLACK: u64 = 10_000_000;

#[derive(Debug, Clone)]
enum Op {
    Join {
        cost: u32,
        patience: Option<u64>,
    },
    Poll(usize),
    Send(usize),
    Cancel(usize),
    Advance(u64),
    /// The clock is read late, or stepped back: an older time is handed in.
    Back(u64),
    Try(u32),
    Answer {
        flight: usize,
        refused: bool,
        wait: Option<u64>,
        budget: Option<(u64, u64)>,
    },
    Lost(usize),
    Pause(u64),
    Refund,
    Look,
}

fn op() -> impl Strategy<Value = Op> {
    let wild = prop_oneof![
        8 => 0..5_000_000_000_u64,
        1 => Just(u64::MAX),
        1 => any::<u64>(),
    ];
    prop_oneof![
        6 => (0..8_u32, prop::option::weighted(0.2, 0..3_000_000_000_u64))
            .prop_map(|(cost, patience)| Op::Join { cost, patience }),
        6 => (0..20_usize).prop_map(Op::Poll),
        8 => (0..20_usize).prop_map(Op::Send),
        2 => (0..20_usize).prop_map(Op::Cancel),
        6 => (0..2_000_000_000_u64).prop_map(Op::Advance),
        1 => (0..2_000_000_000_u64).prop_map(Op::Back),
        2 => (0..8_u32).prop_map(Op::Try),
        6 => (
            0..20_usize,
            any::<bool>(),
            prop::option::weighted(0.3, wild.clone()),
            prop::option::weighted(0.5, (0..20_u64, wild.clone())),
        )
            .prop_map(|(flight, refused, wait, budget)| Op::Answer { flight, refused, wait, budget }),
        1 => (0..20_usize).prop_map(Op::Lost),
        1 => wild.prop_map(Op::Pause),
        1 => Just(Op::Refund),
        1 => Just(Op::Look),
    ]
}

/// What left: when, and how much.
struct Trace {
    engine: Engine,
    now: u64,
    tickets: Vec<TicketId>,
    flights: Vec<Flight>,
    left: Vec<(u64, u32)>,
    /// Nothing may leave before this.
    pause: u64,
}

impl Trace {
    fn sent(&mut self, at: u64, cost: u32, flight: Flight) -> Result<(), TestCaseError> {
        prop_assert!(
            at >= self.pause,
            "sent at {at}, paused until {}",
            self.pause
        );
        self.left.push((at, cost));
        self.flights.push(flight);
        Ok(())
    }

    fn step(&mut self, op: &Op) -> Result<(), TestCaseError> {
        let now = Time::from_nanos(self.now);
        let pick = |list: &[TicketId], index: usize| list.get(index % list.len().max(1)).copied();
        match *op {
            Op::Join { cost, patience } => {
                let patience = patience.map(Duration::from_nanos);
                if let Ok(ticket) = self.engine.join(now, cost, patience) {
                    self.tickets.push(ticket);
                }
            }
            Op::Poll(index) => {
                if let Some(ticket) = pick(&self.tickets, index) {
                    match self.engine.poll(now, ticket) {
                        Poll::Wait(at) => prop_assert!(at > now, "told to ask again at once"),
                        Poll::Granted => {}
                        Poll::Refused(_) => self.tickets.retain(|&other| other != ticket),
                    }
                }
            }
            Op::Send(index) => {
                if let Some(ticket) = pick(&self.tickets, index) {
                    match self.engine.send(now, ticket, true) {
                        Departure::Sent(grant) => {
                            self.tickets.retain(|&other| other != ticket);
                            self.sent(self.now, grant.cost, grant.flight)?;
                        }
                        Departure::Wait(at) => prop_assert!(at > now, "told to ask again at once"),
                        Departure::Refused(_) => self.tickets.retain(|&other| other != ticket),
                    }
                }
            }
            Op::Cancel(index) => {
                if let Some(ticket) = pick(&self.tickets, index) {
                    self.engine.cancel(now, ticket);
                    self.tickets.retain(|&other| other != ticket);
                    prop_assert!(self.engine.cancel(now, ticket).is_none(), "cancelled twice");
                }
            }
            Op::Advance(by) => self.now += by,
            Op::Back(by) => {
                let before = self.engine.view(now);
                let after = self
                    .engine
                    .view(Time::from_nanos(self.now.saturating_sub(by)));
                prop_assert_eq!(before, after, "going back changed something");
            }
            Op::Try(cost) => {
                if let Ok(grant) = self.engine.try_send(now, cost) {
                    self.sent(self.now, cost, grant.flight)?;
                }
            }
            Op::Answer {
                flight,
                refused,
                wait,
                budget,
            } => {
                if !self.flights.is_empty() {
                    let flight = self.flights.swap_remove(flight % self.flights.len());
                    let reading = budget.map(|(remaining, reset)| Reading {
                        remaining: Some(remaining),
                        reset: Some(Duration::from_nanos(reset)),
                        paces: true,
                        ..Reading::default()
                    });
                    // A trial may end early.
                    let before = self.engine.view(now).pause;
                    let before = before.filter(|pause| pause.cause != Cause::Trial);
                    let correction = self.engine.answer(
                        now,
                        flight,
                        &Answer {
                            refused,
                            wait: wait.map(Duration::from_nanos),
                            readings: reading.as_slice(),
                            ..Answer::default()
                        },
                    );
                    prop_assert!(correction.rate_after > 0.0);
                    if refused && let Some(wait) = wait.filter(|&wait| wait > 0) {
                        self.pause = self.pause.max(self.now.saturating_add(wait));
                    }
                    let after = self.engine.pause();
                    if let Some(pause) = after.filter(|pause| pause.cause != Cause::Trial) {
                        self.pause = self.pause.max(pause.until.as_nanos());
                    }
                    prop_assert!(
                        before.map(|pause| pause.until) <= after.map(|pause| pause.until),
                        "a pause became shorter"
                    );
                }
            }
            Op::Lost(index) => {
                if !self.flights.is_empty() {
                    let flight = self.flights.swap_remove(index % self.flights.len());
                    self.engine.unanswered(now, flight);
                }
            }
            Op::Pause(wait) => {
                self.engine.penalize(now, Duration::from_nanos(wait));
                self.pause = self.pause.max(self.now.saturating_add(wait));
            }
            // The server did not count the last one: nor do we.
            Op::Refund => {
                if let Some((_, cost)) = self.left.pop() {
                    self.engine.refund(now, &Costs::each(cost));
                }
            }
            Op::Look => {
                let view = self.engine.view(now);
                prop_assert!(view.rate <= self.engine.config().quota.rate() * (1.0 + 1e-9));
                prop_assert!(view.level.is_finite());
            }
        }
        while self.engine.take_woken().is_some() {}
        Ok(())
    }
}

impl Trace {
    /// Everybody who is left asks when told, and is served in reasonable time.
    fn end(&mut self) -> Result<(), TestCaseError> {
        for flight in std::mem::take(&mut self.flights) {
            self.engine.unanswered(Time::from_nanos(self.now), flight);
        }
        let now = Time::from_nanos(self.now);
        let view = self.engine.view(now);
        let opens = (view.windows.iter().map(|window| window.reset))
            .chain(view.pause.map(|pause| pause.until))
            .fold(now, Time::max);
        // At the slowest the rate is a 1024th of the quota's.
        let quota = self.engine.config().quota;
        let cost = self.tickets.len() as f64 * f64::from(quota.burst_size()) + 1.0;
        let longest = opens.since(now).as_secs_f64() + cost / quota.rate() * 1100.0 + 1.0;
        if longest > 1e9 {
            return Ok(());
        }
        let last = now.after(Duration::from_secs_f64(longest));
        let mut asks: Vec<(Time, TicketId)> =
            self.tickets.drain(..).map(|ticket| (now, ticket)).collect();
        for _ in 0..100_000 {
            let Some(index) = (0..asks.len()).min_by_key(|&index| asks[index].0) else {
                return Ok(());
            };
            let (at, ticket) = asks[index];
            prop_assert!(
                at <= last,
                "told to ask at {at:?}, should be served by {last:?}"
            );
            self.now = self.now.max(at.as_nanos());
            let at = Time::from_nanos(self.now);
            match self.engine.send(at, ticket, false) {
                Departure::Sent(grant) => {
                    self.left.push((self.now, grant.cost));
                    asks.swap_remove(index);
                }
                Departure::Refused(_) => {
                    asks.swap_remove(index);
                }
                Departure::Wait(until) => asks[index].0 = until,
            }
            while let Some(woken) = self.engine.take_woken() {
                for ask in asks.iter_mut().filter(|(_, ticket)| *ticket == woken) {
                    ask.0 = at;
                }
            }
        }
        prop_assert!(false, "asked a hundred thousand times in vain");
        Ok(())
    }
}

fn check(quota: Quota, spend: Spend, adapt: Adapt, ops: &[Op]) -> Result<(), TestCaseError> {
    let mut config = Config::new(quota);
    config.spend = spend;
    config.adapt = adapt;
    let mut trace = Trace {
        engine: Engine::new(config, Time::ZERO).unwrap(),
        now: 0,
        tickets: Vec::new(),
        flights: Vec::new(),
        left: Vec::new(),
        pause: 0,
    };
    for op in ops {
        trace.step(op)?;
    }
    let (amount, period) = (
        i128::from(quota.amount()),
        quota.period().as_nanos() as i128,
    );
    for (first, &(from, _)) in trace.left.iter().enumerate() {
        let mut sum = 0;
        for &(to, cost) in &trace.left[first..] {
            sum += i128::from(cost) * period;
            let allowed = i128::from(quota.burst_size()) * period
                + amount * (i128::from(to - from) + i128::from(SLACK));
            prop_assert!(
                sum <= allowed,
                "the ceiling is broken between {from} and {to}"
            );
        }
    }
    trace.end()?;
    // All that is set aside goes back, and nothing is left behind.
    let now = Time::from_nanos(trace.now);
    for ticket in std::mem::take(&mut trace.tickets) {
        trace.engine.cancel(now, ticket);
    }
    for flight in std::mem::take(&mut trace.flights) {
        trace.engine.unanswered(now, flight);
    }
    let view = trace.engine.view(now);
    prop_assert_eq!((view.queue_len, view.held), (0, 0));
    prop_assert!(view.level <= f64::from(quota.burst_size()) + quota.rate() * 0.0101);
    Ok(())
}

fn quota() -> impl Strategy<Value = Quota> {
    prop_oneof![
        4 => (1..50_u32, 1_000_000..5_000_000_000_u64, 1..8_u32),
        1 => (1..=u32::MAX, 1..=1_u64 << 62, 1..=u32::MAX),
    ]
    .prop_map(|(amount, period, burst)| {
        Quota::new(amount, Duration::from_nanos(period)).burst(burst)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases(), ..ProptestConfig::default() })]

    #[test]
    fn ceiling_pauses_and_conservation_hold(
        quota in quota(),
        spend in prop_oneof![Just(Spend::Evenly), Just(Spend::Freely)],
        adapt in prop_oneof![Just(Adapt::On), Just(Adapt::Off)],
        ops in prop::collection::vec(op(), 1..120),
    ) {
        check(quota, spend, adapt, &ops)?;
    }
}
