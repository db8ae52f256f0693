//! Several quotas are taken together or not at all; costs differ from quota to quota; debts are repaid by those who follow.

use std::time::Duration;

use tower_throttle::{
    Quota,
    engine::{Ask, Config, Costs, Departure, Engine, Priority, Refusal, Time},
};

use crate::drive::{Callers, at, of, send, wait};

fn engine(quotas: &[Quota]) -> Engine {
    let mut config = Config::new(quotas[0]);
    config.further = quotas[1..].to_vec();
    Engine::new(config, Time::ZERO).unwrap()
}

fn levels(engine: &mut Engine, now: Time) -> Vec<f64> {
    let view = engine.view(now);
    view.quotas.iter().map(|quota| quota.level).collect()
}

/// C41: a refusal by the second quota has taken nothing from the first.
#[test]
fn what_one_quota_refuses_takes_nothing_of_the_others() {
    let global = Quota::per_minute(100).burst(100);
    let key = Quota::per_second(2).burst(2);
    let mut engine = engine(&[global, key]);
    let keyed = Ask::from(Costs::each(1));
    for _ in 0..2 {
        engine.try_send_as(at(0.0), &keyed).unwrap();
    }
    let before = levels(&mut engine, at(0.0));
    for _ in 0..1000 {
        assert!(engine.try_send_as(at(0.0), &keyed).is_err());
    }
    assert_eq!(levels(&mut engine, at(0.0)), before);
    // Other keys are no cost of this one's quota.
    for _ in 0..98 {
        engine
            .try_send_as(at(0.0), &Ask::from(Costs::NONE.with(0, 1)))
            .unwrap();
    }
}

#[test]
fn a_waiter_for_one_holds_nothing_of_the_others() {
    let mut engine = engine(&[
        Quota::per_second(1).burst(10),
        Quota::per_second(1).burst(1),
        Quota::at_most(10, Duration::from_secs(60)),
    ]);
    engine.try_send(at(0.0), 1).unwrap();
    let waiter = engine.join(at(0.0), 1, None).unwrap();
    assert_eq!(wait(&mut engine, at(0.0), waiter), Some(at(1.0)));
    assert_eq!(levels(&mut engine, at(0.0)), [9.0, 0.0, 9.0]);
    // When it is admitted it takes of all at the same time.
    assert_eq!(wait(&mut engine, at(1.0), waiter), None);
    assert_eq!(levels(&mut engine, at(1.0)), [9.0, 0.0, 8.0]);
    engine.cancel(at(1.0), waiter).unwrap();
    assert_eq!(levels(&mut engine, at(1.0)), [10.0, 1.0, 9.0]);
}

#[test]
fn the_slowest_quota_sets_the_pace() {
    let mut engine = engine(&[
        Quota::per_second(10).burst(10),
        Quota::per_second(100).burst(100),
    ]);
    // A hundred and one of the second are as slow as ten and a bit of the first.
    let heavy = Ask::from(Costs::NONE.with(0, 1).with(1, 50));
    let mut callers = Callers::default();
    for index in 0..6 {
        callers.join(&mut engine, at(0.0), &heavy, index);
    }
    let left = callers.drive(&mut engine, at(10.0));
    let due = [0.0, 0.0, 0.5, 1.0, 1.5, 2.0];
    assert_eq!(left, due.map(at).into_iter().zip(0..).collect::<Vec<_>>());
}

/// C29.
#[test]
fn what_no_quota_can_ever_hold_is_refused_at_once() {
    let mut engine = engine(&[
        Quota::per_second(10).burst(10),
        Quota::per_second(10).burst(5),
    ]);
    let refused = |cost, burst| Refusal::TooExpensive { cost, burst };
    let mut ask = |costs: Costs| {
        engine
            .join_as(at(0.0), &Ask::from(costs))
            .map_err(|(_, why)| why)
    };
    assert_eq!(ask(Costs::each(11)), Err(refused(11, 10)));
    assert_eq!(ask(Costs::each(6)), Err(refused(6, 5)));
    assert_eq!(ask(Costs::each(u32::MAX)), Err(refused(u32::MAX, 10)));
    let all = ask(Costs::each(10).with(1, 5)).unwrap();
    let none = ask(Costs::NONE).unwrap();
    assert_eq!(engine.view(at(0.0)).queue_len, 0);
    send(&mut engine, at(0.0), none);
    send(&mut engine, at(0.0), all);
}

/// C30.
#[test]
fn a_large_cost_is_not_starved_by_small_ones() {
    let mut engine = engine(&[Quota::per_second(10).burst(10)]);
    engine.try_send(at(0.0), 10).unwrap();
    let mut callers = Callers::default();
    callers.join(&mut engine, at(0.0), &of(Priority::Normal, 10), 0);
    let mut left = Vec::new();
    for index in 1..=20 {
        let now = at(0.05 * f64::from(index));
        left.extend(callers.drive(&mut engine, now));
        callers.join(&mut engine, now, &of(Priority::Normal, 1), index);
    }
    left.extend(callers.drive(&mut engine, at(10.0)));
    let due = (0..=20).map(|index| (at(1.0 + 0.1 * f64::from(index)), index));
    let late = |now: Time, due: Time| now.since(due) < Duration::from_nanos(100) && now >= due;
    let fits = left.len() == 21
        && (left.iter().zip(due)).all(|(&(now, index), due)| index == due.1 && late(now, due.0));
    assert!(fits, "{left:?}");
}

/// C40.
#[test]
fn a_head_that_leaves_sets_no_need() {
    let mut engine = engine(&[Quota::per_second(1).burst(2), Quota::per_second(2).burst(2)]);
    engine.try_send(at(0.0), 2).unwrap();
    let head = engine.join(at(0.0), 2, None).unwrap();
    engine.cancel(at(0.5), head).unwrap();
    let next = engine.join(at(0.6), 1, None).unwrap();
    assert_eq!(wait(&mut engine, at(0.6), next), Some(at(1.0)));
}

/// C39: the numbers are the reporter's own.
#[test]
fn who_cannot_be_served_in_time_hears_it_at_once() {
    let mut config = Config::new(Quota::per_second(10).burst(3));
    config.max_queue = Some(5);
    let mut engine = Engine::new(config, Time::ZERO).unwrap();
    let mut callers = Callers::default();
    for index in 0..10 {
        match engine.join(at(0.0), 1, None) {
            Ok(ticket) => callers.add(at(0.0), ticket, index),
            Err((_, refusal)) => {
                assert!(
                    index >= 8 && matches!(refusal, Refusal::QueueFull(_)),
                    "{refusal:?}"
                );
            }
        }
    }
    let left = callers.drive(&mut engine, at(9.0));
    let due = [0.0, 0.0, 0.0, 0.1, 0.2, 0.3, 0.4, 0.5];
    assert_eq!(left, due.map(at).into_iter().zip(0..).collect::<Vec<_>>());

    let mut config = Config::new(Quota::per_second(1));
    config.max_wait = Some(Duration::from_secs(2));
    let mut engine = Engine::new(config, Time::ZERO).unwrap();
    let joined = (0..5).map(|_| engine.join(at(0.0), 1, None).is_ok());
    assert_eq!(joined.collect::<Vec<_>>(), [true, true, true, false, false]);
}

/// C04 (c): what is refused leaves no debt, in any quota.
#[test]
fn refusals_leave_no_debt() {
    let mut engine = engine(&[
        Quota::per_second(60).burst(3),
        Quota::per_minute(60).burst(3),
    ]);
    engine.try_send(at(0.0), 2).unwrap();
    for _ in 0..10_000 {
        assert!(engine.try_send(at(0.0), 3).is_err());
        let ticket = engine.join(at(0.0), 1, None).unwrap();
        assert_eq!(wait(&mut engine, at(0.0), ticket), None);
        engine.cancel(at(0.0), ticket).unwrap();
    }
    assert_eq!(levels(&mut engine, at(0.0)), [1.0, 1.0]);
}

#[test]
fn a_debt_is_waited_for_by_those_who_follow() {
    let mut engine = engine(&[
        Quota::per_second(10).burst(5),
        Quota::per_second(10).burst(100),
    ]);
    let borrower = engine.join(at(0.0), 1, None).unwrap();
    // It is not held again for the rest of what it costs.
    send(&mut engine, at(0.0), borrower);
    engine.charge(at(0.0), &Costs::NONE.with(0, 24));
    assert_eq!(levels(&mut engine, at(0.0)), [-20.0, 99.0]);
    let next = engine.join(at(0.0), 1, None).unwrap();
    assert_eq!(wait(&mut engine, at(0.0), next), Some(at(2.1)));
    let free = engine.join(at(0.0), 0, None).unwrap();
    assert_eq!(wait(&mut engine, at(2.0), free), Some(at(2.1)));
    send(&mut engine, at(2.1), next);
    send(&mut engine, at(2.1), free);
}

/// One that was granted before the debt was made finds no room either: it is one of those who follow.
#[test]
fn who_holds_its_tokens_already_repays_a_debt_too() {
    let mut engine = engine(&[Quota::per_second(10).burst(5)]);
    let holder = engine.join(at(0.0), 1, None).unwrap();
    engine.charge(at(0.0), &Costs::each(20));
    match engine.send(at(0.0), holder, false) {
        Departure::Wait(until) => assert!(until >= at(1.6) && until <= at(1.61), "{until:?}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_was_estimated_too_high_comes_back_but_never_above_the_burst() {
    let mut engine = engine(&[
        Quota::per_second(1).burst(5),
        Quota::per_second(10).burst(5),
    ]);
    let mut grant = engine.try_send(at(0.0), 4).unwrap();
    engine.settle_of(at(1.0), &mut grant, &Costs::each(1));
    assert_eq!(grant.costs, Costs::each(1));
    assert_eq!(levels(&mut engine, at(1.0)), [5.0, 5.0]);
    engine.settle_of(at(1.0), &mut grant, &Costs::each(3));
    assert_eq!(levels(&mut engine, at(1.0)), [3.0, 3.0]);
    engine.refund_of(at(1.0), &mut grant);
    engine.refund_of(at(1.0), &mut grant);
    assert_eq!(levels(&mut engine, at(1.0)), [5.0, 5.0]);
}

#[test]
fn the_largest_costs_are_only_numbers() {
    let slow = Quota::new(1, Duration::from_nanos(1 << 62)).burst(u32::MAX);
    let fast = Quota::new(u32::MAX, Duration::from_nanos(1)).burst(u32::MAX);
    let strict = Quota::at_most(u32::MAX, Duration::from_nanos(1 << 62));
    for quotas in [
        [slow, fast, strict],
        [strict, slow, fast],
        [fast, strict, slow],
    ] {
        let mut engine = engine(&quotas);
        let most = Costs::each(u32::MAX);
        let mut grant = engine.try_send(at(0.0), u32::MAX).unwrap();
        for _ in 0..5 {
            engine.charge(at(0.0), &most);
            engine.charge(at(0.0), &most);
        }
        assert!(engine.try_send(at(1.0), 1).is_err());
        engine.refund_of(at(1.0), &mut grant);
        for _ in 0..20 {
            engine.refund(at(1.0), &most);
        }
        engine.try_send(Time::MAX, u32::MAX).unwrap();
        engine.join(Time::MAX, u32::MAX, None).unwrap();
        engine.view(Time::MAX);
    }
}

/// A refund is of what is owed: nothing is made of a debt too large to be kept.
#[test]
fn the_largest_debt_is_kept_to_the_last_token() {
    let quota = Quota::new(1, Duration::from_nanos(1 << 62)).burst(9);
    let mut engine = engine(&[quota]);
    engine.try_send(at(0.0), 9).unwrap();
    engine.charge(at(0.0), &Costs::each(u32::MAX));
    engine.refund(at(0.0), &Costs::each(u32::MAX));
    assert_eq!(levels(&mut engine, at(0.0)), [0.0]);
}
