//! What is changed while it runs.

use std::time::Duration;

use proptest::prelude::*;
use tower_throttle::{
    Cause, Quota,
    engine::{Answer, Ask, Config, Costs, Departure, Engine, Phase, Poll, Priority, Refusal, Time},
};

use crate::{
    drive::{Callers, at, of, send, wait},
    ledger::Ledger,
};

fn engine(quota: Quota) -> Engine {
    Engine::new(Config::new(quota), Time::ZERO).unwrap()
}

fn slow() -> Quota {
    Quota::new(1, Duration::from_nanos(1 << 62)).burst(u32::MAX)
}

fn fast() -> Quota {
    Quota::new(u32::MAX, Duration::from_nanos(1)).burst(u32::MAX)
}

#[test]
fn as_many_tokens_are_there_as_before_but_no_more_than_the_new_burst() {
    let mut engine = engine(Quota::per_minute(60).burst(10));
    engine.try_send(at(0.0), 7).unwrap();
    engine
        .set_quota(at(0.5), 0, Quota::per_second(1).burst(20))
        .unwrap();
    assert_eq!(engine.view(at(0.5)).level, 3.5);
    engine
        .set_quota(at(0.5), 0, Quota::per_hour(7).burst(3))
        .unwrap();
    assert_eq!(engine.view(at(0.5)).level, 3.0);
    engine
        .set_quota(at(0.5), 0, Quota::per_second(100).burst(100))
        .unwrap();
    assert_eq!(engine.view(at(0.5)).level, 3.0);
    assert!(engine.set_quota(at(0.5), 1, Quota::per_second(1)).is_err());
    assert!(
        engine
            .set_quota(at(0.5), usize::MAX, Quota::per_second(1))
            .is_err()
    );
    assert!(engine.set_quota(at(0.5), 0, Quota::per_second(0)).is_err());
}

#[test]
fn a_debt_stays_a_debt() {
    let mut engine = engine(Quota::per_second(1).burst(5));
    engine.charge(at(0.0), &Costs::each(15));
    engine
        .set_quota(at(0.0), 0, Quota::per_minute(600).burst(50))
        .unwrap();
    assert_eq!(engine.view(at(0.0)).level, -10.0);
    let next = engine.join(at(0.0), 1, None).unwrap();
    assert_eq!(wait(&mut engine, at(0.0), next), Some(at(1.1)));
}

#[test]
fn those_who_wait_are_timed_anew_at_once() {
    let mut engine = engine(Quota::per_minute(1));
    engine.try_send(at(0.0), 1).unwrap();
    let mut callers = Callers::default();
    for index in 0..100 {
        callers.join(&mut engine, at(0.0), &of(Priority::Normal, 1), index);
    }
    assert_eq!(callers.drive(&mut engine, at(5.9)), []);
    engine.set_quota(at(6.0), 0, Quota::per_second(10)).unwrap();
    callers.wake(&mut engine, at(6.0));
    // A tenth of a token had come.
    let left = callers.drive(&mut engine, at(20.0));
    let due = (0..100).map(|index| (at(6.09 + 0.1 * f64::from(index)), index));
    let near = |one: Time, other: Time| one.since(other).max(other.since(one)).as_nanos() < 1000;
    assert!(
        left.len() == 100
            && left
                .iter()
                .zip(due)
                .all(|(one, other)| near(one.0, other.0))
    );
}

#[test]
fn a_lower_rate_is_told_when_they_ask() {
    let mut engine = engine(Quota::per_second(10));
    engine.try_send(at(0.0), 1).unwrap();
    let ticket = engine.join(at(0.0), 1, None).unwrap();
    assert_eq!(wait(&mut engine, at(0.0), ticket), Some(at(0.1)));
    engine.set_quota(at(0.05), 0, Quota::per_second(1)).unwrap();
    assert_eq!(wait(&mut engine, at(0.1), ticket), Some(at(0.55)));
    send(&mut engine, at(0.55), ticket);
}

#[test]
fn who_costs_more_than_the_new_burst_is_told() {
    let mut engine = engine(Quota::per_second(1).burst(9));
    let held = engine.join(at(0.0), 9, None).unwrap();
    let waiter = engine.join(at(0.0), 5, None).unwrap();
    let small = engine.join(at(0.0), 4, None).unwrap();
    assert!(wait(&mut engine, at(0.0), waiter).is_some());
    assert!(wait(&mut engine, at(0.0), small).is_some());
    engine
        .set_quota(at(0.1), 0, Quota::per_second(1).burst(4))
        .unwrap();
    let too_expensive = |cost| Refusal::TooExpensive { cost, burst: 4 };
    let woken: Vec<_> = std::iter::from_fn(|| engine.take_woken()).collect();
    assert!(woken.contains(&waiter), "{woken:?}");
    assert_eq!(
        engine.poll(at(0.1), waiter),
        Poll::Refused(too_expensive(5))
    );
    assert_eq!(engine.view(at(0.1)).queue_len, 1);
    // What is set aside is too much now, and there will never be room for it.
    assert_eq!(
        engine.send(at(0.1), held, false),
        Departure::Refused(too_expensive(9))
    );
    let due = wait(&mut engine, at(0.1), small).unwrap_or(at(0.1));
    assert!(due <= at(4.0), "{due:?}");
    send(&mut engine, due, small);
}

/// So does one whose tokens a pause took before the burst was lowered.
#[test]
fn who_comes_back_with_too_large_a_cost_is_told() {
    let mut engine = engine(Quota::per_second(1).burst(9));
    let held = engine.join(at(0.0), 9, None).unwrap();
    engine.penalize(at(0.0), Duration::from_secs(1));
    engine
        .set_quota(at(0.1), 0, Quota::per_second(1).burst(4))
        .unwrap();
    let refused = Refusal::TooExpensive { cost: 9, burst: 4 };
    assert_eq!(engine.poll(at(0.2), held), Poll::Refused(refused));
    engine.try_send(at(1.0), 1).unwrap();
}

/// An engine that learnt that the server allows five a second.
fn taught() -> (Engine, Time) {
    let mut engine = engine(Quota::per_minute(600).burst(5));
    let mut tokens = 5.0_f64;
    let mut now = at(0.0);
    let mut last = now;
    for _ in 0..600 {
        let other = engine.join(now, 1, None).unwrap();
        let ticket = engine.join(now, 1, None).unwrap();
        engine.cancel(now, other).unwrap();
        while let Some(until) = wait(&mut engine, now, ticket) {
            now = until;
        }
        let Departure::Sent(grant) = engine.send(now, ticket, true) else {
            continue;
        };
        tokens = (tokens + now.since(last).as_secs_f64() * 5.0).min(5.0);
        last = now;
        let refused = tokens < 1.0;
        if !refused {
            tokens -= 1.0;
        }
        let waiter = engine.join(now, 1, None).unwrap();
        let answer = Answer {
            refused,
            ..Answer::default()
        };
        engine.answer(now, grant.flight, &answer);
        engine.cancel(now, waiter).unwrap();
    }
    (engine, now)
}

#[test]
fn a_learnt_rate_survives_a_change_of_the_period() {
    let (mut engine, now) = taught();
    let before = engine.view(now);
    assert_ne!(before.adaptation.phase, Phase::Unchallenged);
    assert!(before.rate < 7.0, "{}", before.rate);
    engine
        .set_quota(now, 0, Quota::per_second(10).burst(5))
        .unwrap();
    let after = engine.view(now);
    assert!(
        (after.rate / before.rate - 1.0).abs() < 1e-6,
        "{} to {}",
        before.rate,
        after.rate
    );
    assert_eq!(after.adaptation.phase, before.adaptation.phase);
    let limits = (
        before.adaptation.limit.unwrap(),
        after.adaptation.limit.unwrap(),
    );
    assert!((limits.1 / limits.0 - 1.0).abs() < 1e-6, "{limits:?}");
    // A higher ceiling changes nothing, a lower one holds.
    engine
        .set_quota(now, 0, Quota::per_second(1000).burst(5))
        .unwrap();
    assert!((engine.view(now).rate / before.rate - 1.0).abs() < 1e-6);
    engine
        .set_quota(now, 0, Quota::per_second(2).burst(5))
        .unwrap();
    assert_eq!(engine.view(now).rate, 2.0);
}

#[test]
fn a_change_in_a_pause_leaves_the_pause_and_one_token_at_its_end() {
    let mut engine = engine(Quota::per_second(1).burst(10));
    engine.penalize(at(0.0), Duration::from_secs(10));
    engine
        .set_quota(at(5.0), 0, Quota::per_second(100).burst(1000))
        .unwrap();
    let first = engine.join(at(5.0), 1, None).unwrap();
    let second = engine.join(at(5.0), 1, None).unwrap();
    assert_eq!(wait(&mut engine, at(5.0), first), Some(at(10.0)));
    assert_eq!(engine.pause().unwrap().until, at(10.0));
    send(&mut engine, at(10.0), first);
    assert_eq!(wait(&mut engine, at(10.0), second), Some(at(10.01)));
}

#[test]
fn a_halt_and_a_pause_hold_whichever_came_first_and_the_longer_one_last() {
    for halt_first in [true, false] {
        for (resumed, due) in [(3.0, 5.0), (7.0, 7.0)] {
            let mut engine = engine(Quota::per_second(10).burst(10));
            let held = engine.join(at(0.0), 1, None).unwrap();
            if halt_first {
                engine.halt(at(0.5));
                engine.penalize(at(1.0), Duration::from_secs(4));
            } else {
                engine.penalize(at(0.5), Duration::from_millis(4500));
                engine.halt(at(1.0));
            }
            assert_eq!(engine.pause().unwrap().cause, Cause::Penalty);
            assert_eq!(wait(&mut engine, at(1.0), held), Some(Time::MAX));
            assert!(engine.try_send(at(6.0_f64.min(resumed)), 0).is_err());
            engine.resume(at(resumed));
            // Woken, if its turn is earlier than it knows.
            assert!(due == resumed || wait(&mut engine, at(resumed), held) == Some(at(due)));
            send(&mut engine, at(due), held);
            // No volley.
            assert!(engine.try_send(at(due), 1).is_err());
        }
    }
}

#[test]
fn a_halt_holds_back_what_was_granted_and_nothing_is_lost() {
    let mut engine = engine(Quota::per_second(10).burst(3));
    let tickets: Vec<_> = (0..5)
        .map(|_| engine.join(at(0.0), 1, None).unwrap())
        .collect();
    engine.halt(at(0.0));
    engine.halt(at(0.0));
    let mut callers = Callers::default();
    for (index, ticket) in tickets.into_iter().enumerate() {
        assert_eq!(wait(&mut engine, at(100.0), ticket), Some(Time::MAX));
        callers.add(Time::MAX, ticket, index);
    }
    assert_eq!(engine.view(at(200.0)).held, 0);
    engine.resume(at(200.0));
    engine.resume(at(200.0));
    callers.wake(&mut engine, at(200.0));
    let left = callers.drive(&mut engine, at(300.0));
    let due = [200.0, 200.1, 200.2, 200.3, 200.4].map(at);
    assert_eq!(left, due.into_iter().zip(0..).collect::<Vec<_>>());
}

#[test]
fn closing_refuses_all_but_what_is_granted() {
    let mut engine = engine(Quota::per_second(1));
    let held = engine.join(at(0.0), 1, None).unwrap();
    let waiter = engine.join(at(0.0), 1, None).unwrap();
    engine.close(at(0.1));
    assert_eq!(engine.take_woken(), Some(waiter));
    assert_eq!(engine.poll(at(0.1), waiter), Poll::Refused(Refusal::Closed));
    assert_eq!(
        engine.join(at(0.1), 1, None).unwrap_err().1,
        Refusal::Closed
    );
    send(&mut engine, at(0.1), held);
    // Nor does a trial run let anybody in, nor does one that lost its tokens come back.
    let mut engine = self::engine(Quota::per_second(1));
    let held = engine.join(at(0.0), 1, None).unwrap();
    engine.halt(at(0.0));
    engine.close(at(0.0));
    engine.set_observe(at(0.0), true);
    assert_eq!(engine.poll(at(0.1), held), Poll::Refused(Refusal::Closed));
    assert_eq!(engine.try_send(at(0.1), 1).unwrap_err().1, Refusal::Closed);
}

#[test]
fn patience_holds_for_newcomers_and_a_pause_too_long_for_all() {
    let mut engine = engine(Quota::per_second(1));
    engine.try_send(at(0.0), 1).unwrap();
    let waiters: Vec<_> = (0..3)
        .map(|_| engine.join(at(0.0), 1, None).unwrap())
        .collect();
    let hour = Duration::from_secs(3600);
    engine.set_patience(at(0.0), Some(Duration::from_secs(1)), Some(9), hour);
    assert!(matches!(
        engine.join(at(0.0), 1, None),
        Err((_, Refusal::WouldWait(_)))
    ));
    engine.set_patience(at(0.0), None, Some(3), hour);
    assert!(matches!(
        engine.join(at(0.0), 1, None),
        Err((_, Refusal::QueueFull(_)))
    ));
    assert_eq!(wait(&mut engine, at(0.0), waiters[2]), Some(at(3.0)));
    engine.penalize(at(0.5), Duration::from_secs(60));
    engine.set_patience(at(1.0), None, None, Duration::from_secs(10));
    for waiter in waiters {
        let left = Duration::from_millis(59_500);
        assert_eq!(
            engine.poll(at(1.0), waiter),
            Poll::Refused(Refusal::Paused(left))
        );
    }
    assert_eq!(engine.view(at(1.0)).queue_len, 0);
}

#[test]
fn from_the_slowest_quota_to_the_fastest_and_back() {
    let mut engine = engine(slow());
    let mut grant = engine.try_send(at(0.0), u32::MAX).unwrap();
    let waiter = engine.join(at(0.0), 1, None).unwrap();
    for step in 1..2000 {
        let now = Time::from_nanos(step / 4);
        let quota = if step % 2 == 0 { slow() } else { fast() };
        engine.set_quota(now, 0, quota).unwrap();
        engine.charge(now, &Costs::each(u32::MAX));
        engine.settle_of(now, &mut grant, &Costs::each(step as u32 % 7));
        let view = engine.view(now);
        assert!(view.level.is_finite() && view.rate > 0.0);
        engine.poll(now, waiter);
    }
}

fn quota() -> impl Strategy<Value = Quota> {
    let wild = (1..=u32::MAX, 1..=1_u64 << 62, 1..=u32::MAX);
    prop_oneof![
        4 => (1..100_u32, 1_000_000..10_000_000_000_u64, 1..20_u32),
        1 => wild,
    ]
    .prop_map(|(amount, period, burst)| {
        Quota::new(amount, Duration::from_nanos(period)).burst(burst)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases(), ..ProptestConfig::default() })]

    /// Neither the ceiling nor the level rises by changing back and forth.
    #[test]
    fn changes_make_no_tokens(
        first in quota(),
        steps in prop::collection::vec((quota(), 0..2_000_000_000_u64, 0..12_u32), 1..60),
    ) {
        let mut engine = engine(first);
        let mut ledger = Ledger::new(first);
        let mut now = 0;
        for (quota, by, cost) in steps {
            now += by;
            let time = Time::from_nanos(now);
            while engine.try_send_as(time, &Ask::from(Costs::each(cost))).is_ok() {
                ledger.left(now, cost);
                if cost == 0 || quota.rate() > 1e9 {
                    break;
                }
                if engine.view(time).level > 1e4 {
                    break;
                }
            }
            let before = engine.view(time).level;
            engine.set_quota(time, 0, quota).unwrap();
            ledger.change(now, quota);
            let after = engine.view(time).level;
            prop_assert!(after <= before * (1.0 + 1e-9) + 1e-9, "{} became {}", before, after);
            // Nor are they lost, but for what is above the burst and a rounding.
            let kept = before.min(f64::from(quota.burst_size()));
            prop_assert!(after >= kept * (1.0 - 1e-9) - 1e-9, "{} became {}", before, after);
        }
    }
}

/// As one that came with that patience.
#[test]
fn whoever_was_hurried_is_told_of_a_pause_that_outlasts_it() {
    let mut engine = Engine::new(Config::new(Quota::per_second(1)), Time::ZERO).unwrap();
    engine.try_send(Time::ZERO, 1).unwrap();
    let ticket = engine.join(Time::ZERO, 1, None).unwrap();
    assert_eq!(engine.hurry(Time::ZERO, ticket, at(20.0)), None);
    engine.penalize(at(0.5), Duration::from_secs(60));
    assert_eq!(engine.take_woken(), Some(ticket));
    let refused = engine.poll(at(0.5), ticket);
    let wait = Duration::from_secs(60);
    assert_eq!(refused, Poll::Refused(Refusal::WouldWait(wait)));
}
