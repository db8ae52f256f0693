//! Never more than so many in any window.

use std::time::Duration;

use proptest::prelude::*;
use tower_throttle::{
    Adapt, Quota,
    engine::{Config, Costs, Departure, Engine, Grant, Refusal, TicketId, Time},
};

use crate::{
    drive::{Callers, at, send, wait},
    ledger::Ledger,
};

/// One quota that holds in any window, after a rate that does not matter if `further`.
fn engine(most: u32, window: Duration, further: bool) -> Engine {
    let strict = Quota::at_most(most, window);
    let mut config = Config::new(strict);
    if further {
        config.quota = Quota::new(u32::MAX, Duration::from_nanos(1)).burst(u32::MAX);
        config.further = vec![strict];
    }
    config.adapt = Adapt::Off;
    Engine::new(config, Time::ZERO).unwrap()
}

/// When these leave who ask when told until `end`.
fn drive(engine: &mut Engine, tickets: Vec<TicketId>, start: Time, end: Time) -> Vec<u64> {
    let mut callers = Callers::default();
    for ticket in tickets {
        callers.add(start, ticket, ());
    }
    let left = callers.drive(engine, end).into_iter();
    left.map(|(now, ())| now.as_nanos()).collect()
}

/// C28: a server with a sliding log, a client idle for ten minutes, then sixty requests at once.
#[test]
fn a_server_that_keeps_a_log_refuses_nothing() {
    for (most, window) in [(15, 60), (6, 1)] {
        for further in [false, true] {
            let mut engine = engine(most, Duration::from_secs(window), further);
            let start = at(600.0);
            let line = (0..60).map(|_| engine.join(start, 1, None).unwrap());
            let line = line.collect();
            let left = drive(&mut engine, line, start, at(1200.0));
            assert_eq!(left.len(), 60);
            let log = |&now: &u64| {
                let within = |&&at: &&u64| at <= now && now - at <= window * 1_000_000_000;
                left.iter().filter(within).count() <= most as usize
            };
            assert!(left.iter().all(log), "{left:?}");
        }
    }
}

#[test]
fn the_quota_is_used_but_for_a_64th_under_endless_demand() {
    for (most, seconds) in [(1, 1), (15, 60), (200, 86_400)] {
        let mut engine = engine(most, Duration::from_secs(seconds), true);
        let windows = 10_u32;
        let line = (0..windows * most).map(|_| engine.join(Time::ZERO, 1, None).unwrap());
        let line = line.collect();
        let end = at((u64::from(windows) * seconds) as f64);
        let left = drive(&mut engine, line, Time::ZERO, end).len();
        let least = f64::from(windows * most) * 63.0 / 64.0;
        assert!(left as f64 >= least.floor(), "{left} of {least}");
    }
}

#[test]
fn one_that_never_sends_holds_nobody_up_for_longer_than_if_it_had() {
    let mut engine = engine(1, Duration::from_secs(64), true);
    let idle = engine.join(Time::ZERO, 1, None).unwrap();
    assert_eq!(wait(&mut engine, Time::ZERO, idle), None);
    let next = engine.join(at(1.0), 1, None).unwrap();
    assert_eq!(wait(&mut engine, at(1.0), next), Some(at(65.0)));
    send(&mut engine, at(65.0), next);
    // What it holds counts no more: it needs room like a newcomer, and comes first then.
    assert!(matches!(
        engine.send(at(65.0), idle, false),
        Departure::Wait(_)
    ));
    let last = engine.join(at(66.0), 1, None).unwrap();
    assert_eq!(wait(&mut engine, at(66.0), idle), Some(at(130.0)));
    send(&mut engine, at(130.0), idle);
    assert_eq!(wait(&mut engine, at(130.0), last), Some(at(195.0)));
}

#[test]
fn one_sent_late_counts_from_when_it_left() {
    let mut engine = engine(2, Duration::from_secs(64), true);
    let idle = engine.join(Time::ZERO, 1, None).unwrap();
    send(&mut engine, at(60.0), idle);
    let next = engine.join(at(70.0), 2, None).unwrap();
    assert_eq!(wait(&mut engine, at(70.0), next), Some(at(125.0)));
}

#[test]
fn a_refund_gives_back_the_request_it_is_for() {
    let mut engine = engine(2, Duration::from_secs(64), true);
    let mut first = engine.try_send(at(0.0), 1).unwrap();
    engine.try_send(at(60.0), 1).unwrap();
    engine.refund_of(at(61.0), &mut first);
    engine.try_send(at(61.0), 1).unwrap();
    // Both that count are recent.
    assert!(engine.try_send(at(70.0), 1).is_err());
    // One that does not count any more gives nothing back; nor does it twice.
    engine.refund_of(at(70.0), &mut first);
    assert!(engine.try_send(at(70.0), 1).is_err());
    let mut old = engine.try_send(at(126.0), 1).unwrap();
    engine.try_send(at(126.0), 1).unwrap();
    engine.try_send(at(200.0), 2).unwrap();
    engine.refund_of(at(201.0), &mut old);
    assert!(engine.try_send(at(201.0), 1).is_err());
}

/// It is not known which request it is for.
#[test]
fn a_refund_of_costs_alone_gives_nothing_back() {
    let mut engine = engine(1, Duration::from_secs(1), true);
    engine.try_send(at(0.0), 1).unwrap();
    engine.refund(at(0.1), &Costs::each(1));
    assert!(engine.try_send(at(0.2), 1).is_err());
}

#[test]
fn a_debt_is_repaid_by_those_who_follow() {
    let mut engine = engine(4, Duration::from_secs(64), true);
    engine.try_send(at(0.0), 1).unwrap();
    engine.charge(at(10.0), &Costs::NONE.with(1, 6));
    let next = engine.join(at(11.0), 1, None).unwrap();
    assert_eq!(wait(&mut engine, at(11.0), next), Some(at(75.0)));
    send(&mut engine, at(75.0), next);
}

#[test]
fn another_amount_holds_at_once_and_what_left_still_counts() {
    let mut engine = engine(4, Duration::from_secs(64), true);
    let held = engine.join(at(0.0), 2, None).unwrap();
    engine.try_send(at(0.0), 2).unwrap();
    let lower = Quota::at_most(2, Duration::from_secs(64));
    engine.set_quota(at(1.0), 1, lower).unwrap();
    assert!(matches!(
        engine.send(at(1.0), held, false),
        Departure::Wait(_)
    ));
    let higher = Quota::at_most(5, Duration::from_secs(64));
    engine.set_quota(at(2.0), 1, higher).unwrap();
    send(&mut engine, at(2.0), held);
    assert!(engine.try_send(at(3.0), 2).is_err());
    engine.try_send(at(3.0), 1).unwrap();
    // Another window, or another kind, is another quota.
    let wider = Quota::at_most(5, Duration::from_secs(65));
    assert!(engine.set_quota(at(3.0), 1, wider).is_err());
    assert!(engine.set_quota(at(3.0), 1, Quota::per_second(1)).is_err());
}

#[test]
fn more_than_a_window_allows_is_refused() {
    let mut engine = engine(3, Duration::from_secs(1), true);
    let refused = engine.try_send(at(0.0), 4).unwrap_err().1;
    assert_eq!(refused, Refusal::TooExpensive { cost: 4, burst: 3 });
    engine.try_send(at(0.0), 3).unwrap();
}

#[test]
fn at_the_end_of_time_nothing_comes_back() {
    let mut engine = engine(1, Duration::from_nanos(1), true);
    let end = Time::MAX;
    engine.try_send(end, 1).unwrap();
    assert!(engine.try_send(end, 1).is_err());
}

/// Whoever needs more than somebody else is not told to ask earlier.
#[test]
fn the_turn_is_the_later_the_more_goes_before_it() {
    let mut engine = engine(4, Duration::from_millis(100), true);
    engine.try_send(at(0.0), 2).unwrap();
    let due = |cost| {
        let mut engine = engine.clone();
        let first = engine.join(at(0.0), 3, None).unwrap();
        let second = engine.join(at(0.0), cost, None).unwrap();
        let first = wait(&mut engine, at(0.0), first).unwrap();
        (first, wait(&mut engine, at(0.0), second).unwrap())
    };
    for cost in 0..=4 {
        let (first, second) = due(cost);
        assert!(second >= first, "{second:?} after {first:?}");
    }
}

#[derive(Debug, Clone)]
enum Op {
    Join(u32),
    Send(usize),
    Cancel(usize),
    Try(u32),
    /// In windows, and nanoseconds besides.
    Advance(f64, u64),
    Settle(usize, u32),
}

fn check(most: u32, window: u64, further: bool, ops: &[Op]) {
    let window = Duration::from_nanos(window);
    let mut engine = engine(most, window, further);
    let mut ledger = Ledger::new(Quota::at_most(most, window));
    let mut now = Time::ZERO;
    let mut tickets = Vec::new();
    let mut sent: Vec<Grant> = Vec::new();
    for op in ops {
        match *op {
            Op::Join(cost) => tickets.extend(engine.join(now, cost, None)),
            Op::Send(index) if index < tickets.len() => {
                match engine.send(now, tickets[index], false) {
                    Departure::Sent(grant) => {
                        ledger.left(now.as_nanos(), grant.cost);
                        sent.push(grant);
                        tickets.swap_remove(index);
                    }
                    Departure::Wait(until) => assert!(until > now, "told to ask again at once"),
                    Departure::Refused(refusal) => panic!("{refusal:?}"),
                }
            }
            Op::Cancel(index) if index < tickets.len() => {
                engine.cancel(now, tickets.swap_remove(index));
            }
            Op::Try(cost) => {
                if let Ok(grant) = engine.try_send(now, cost) {
                    ledger.left(now.as_nanos(), cost);
                    sent.push(grant);
                }
            }
            Op::Advance(windows, nanos) => {
                now = now
                    .after(window.mul_f64(windows))
                    .after(Duration::from_nanos(nanos));
                if now == Time::MAX {
                    // All patience ends there.
                    return;
                }
            }
            Op::Settle(index, real) if index < sent.len() => {
                let grant = &mut sent[index];
                let back = grant.cost.saturating_sub(real);
                ledger.returned(now.as_nanos(), grant.flight.sent().as_nanos(), back);
                engine.settle_of(now, grant, &Costs::each(real));
            }
            _ => {}
        }
        while engine.take_woken().is_some() {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases(), ..ProptestConfig::default() })]

    #[test]
    fn never_more_in_any_window(
        most in prop_oneof![3 => 1..10_u32, 1 => 1..=u32::MAX],
        window in prop_oneof![
            1 => 1..200_u64,
            2 => 1_000_000..100_000_000_000_u64,
            1 => 1..=1_000_000_000_000_000_000_u64,
        ],
        further in any::<bool>(),
        ops in prop::collection::vec(prop_oneof![
            4 => (0..6_u32).prop_map(Op::Join),
            6 => (0..12_usize).prop_map(Op::Send),
            1 => (0..12_usize).prop_map(Op::Cancel),
            2 => (0..6_u32).prop_map(Op::Try),
            4 => (0.0..0.4, 0..3_u64).prop_map(|(windows, nanos)| Op::Advance(windows, nanos)),
            2 => (0.9..1.1, 0..3_u64).prop_map(|(windows, nanos)| Op::Advance(windows, nanos)),
            1 => (0..20_usize, 0..8_u32).prop_map(|(index, real)| Op::Settle(index, real)),
        ], 1..100),
    ) {
        check(most, window, further, &ops);
    }
}
