//! A trial run: everything is decided as usual, but leaves at once.

use std::time::Duration;

use tower_throttle::{
    Quota,
    engine::{Answer, Config, Costs, Departure, Engine, Poll, Refusal, Time},
};

use crate::drive::{at, send, wait};

fn engine(quota: Quota, observe: bool) -> Engine {
    let mut config = Config::new(quota);
    config.observe = observe;
    Engine::new(config, Time::ZERO).unwrap()
}

/// C68: three hours at twice the rate.
#[test]
fn half_would_wait_at_twice_the_rate_and_no_debt_is_left() {
    let mut engine = engine(Quota::per_second(10).burst(10), true);
    let offered = 20 * 3 * 3600;
    let mut now = at(0.0);
    for index in 0..offered {
        now = at(f64::from(index) / 20.0);
        let ticket = engine.join(now, 1, None).unwrap();
        assert_eq!(wait(&mut engine, now, ticket), None);
        let grant = send(&mut engine, now, ticket);
        assert_eq!(grant.waited, Duration::ZERO);
    }
    let share = engine.view(now).would_wait as f64 / f64::from(offered);
    assert!((share - 0.5).abs() < 0.01, "{share}");
    now = now.after(Duration::from_millis(50));
    engine.set_observe(now, false);
    engine
        .set_quota(now, 0, Quota::per_second(30).burst(10))
        .unwrap();
    let ticket = engine.join(now, 1, None).unwrap();
    let due = wait(&mut engine, now, ticket).unwrap_or(now);
    assert!(
        due.since(now) <= Duration::from_nanos(33_333_334),
        "{:?}",
        due.since(now)
    );
    send(&mut engine, due, ticket);
    // Enforced from now on.
    let taken = (0..100).filter(|_| engine.try_send(due, 1).is_ok()).count();
    assert!(taken <= 10, "{taken}");
}

#[test]
fn nothing_is_delayed_whatever_forbids_it() {
    let mut engine = engine(Quota::per_second(1).burst(2), true);
    let held = engine.join(at(0.0), 1, None).unwrap();
    let flight = match engine.send(at(0.0), held, true) {
        Departure::Sent(grant) => grant.flight,
        other => panic!("{other:?}"),
    };
    let held = engine.join(at(0.0), 1, None).unwrap();
    let refused = Answer {
        refused: true,
        wait: Some(Duration::from_secs(7200)),
        ..Answer::default()
    };
    engine.answer(at(0.1), flight, &refused);
    // It has lost its tokens, but waits for nothing.
    let grant = send(&mut engine, at(0.2), held);
    assert_eq!(grant.would_wait, Duration::from_millis(200));
    // A pause counts as a wait, and is as long as it is.
    let grant = engine.try_send(at(0.2), 1).unwrap();
    assert!(
        grant.would_wait >= Duration::from_secs(7199),
        "{:?}",
        grant.would_wait
    );
    engine.halt(at(0.3));
    let ticket = engine.join(at(0.3), 5, None).unwrap();
    assert!(send(&mut engine, at(0.3), ticket).would_wait > Duration::ZERO);
    assert_eq!(engine.view(at(0.3)).would_wait, 3);
    engine.close(at(0.4));
    assert_eq!(engine.try_send(at(0.4), 1).unwrap_err().1, Refusal::Closed);
}

/// Tokens set aside long before find no room when they are sent: that delays nobody either.
#[test]
fn what_is_sent_late_is_not_delayed() {
    let mut engine = engine(Quota::per_second(1).burst(1), true);
    let late = engine.join(at(0.0), 1, None).unwrap();
    engine.try_send(at(1.0), 1).unwrap();
    let grant = send(&mut engine, at(1.0), late);
    assert!(grant.would_wait > Duration::ZERO);
    assert_eq!(engine.view(at(1.0)).held, 0);
}

#[test]
fn switching_on_releases_all_who_wait() {
    let mut engine = engine(Quota::per_second(1), false);
    let revoked = engine.join(at(0.0), 1, None).unwrap();
    engine.halt(at(0.0));
    engine.resume(at(0.0));
    let waiters: Vec<_> = (0..5)
        .map(|_| engine.join(at(0.0), 1, None).unwrap())
        .collect();
    for &waiter in &waiters[1..] {
        assert!(wait(&mut engine, at(0.0), waiter).is_some());
    }
    engine.halt(at(0.5));
    while engine.take_woken().is_some() {}
    engine.set_observe(at(0.5), true);
    let woken: Vec<_> = std::iter::from_fn(|| engine.take_woken()).collect();
    assert_eq!(woken.len(), 4);
    for ticket in waiters.into_iter().chain([revoked]) {
        assert_eq!(engine.poll(at(0.5), ticket), Poll::Granted);
        let grant = send(&mut engine, at(0.5), ticket);
        assert_eq!(grant.would_wait, Duration::from_millis(500));
    }
    assert_eq!(engine.view(at(0.5)).would_wait, 6);
    assert_eq!(engine.view(at(0.5)).queue_len, 0);
}

#[test]
fn one_that_came_this_very_instant_would_have_waited_too() {
    let mut engine = engine(Quota::per_second(1), false);
    engine.try_send(at(0.0), 1).unwrap();
    let waiter = engine.join(at(0.0), 1, None).unwrap();
    engine.set_observe(at(0.0), true);
    assert!(send(&mut engine, at(0.0), waiter).would_wait > Duration::ZERO);
}

#[test]
fn what_took_nothing_owes_and_gets_nothing() {
    let mut engine = engine(Quota::per_second(1).burst(4), true);
    engine.try_send(at(0.0), 4).unwrap();
    let mut passed = engine.try_send(at(0.0), 4).unwrap();
    assert!(passed.would_wait > Duration::ZERO);
    engine.settle_of(at(0.0), &mut passed, &Costs::each(1));
    assert_eq!(engine.view(at(0.0)).level, 0.0);
    engine.charge(at(0.0), &Costs::each(100));
    engine.set_observe(at(0.0), false);
    engine.settle_of(at(0.0), &mut passed, &Costs::each(1000));
    engine.refund_of(at(0.0), &mut passed);
    assert_eq!(engine.view(at(0.0)).level, 0.0);
    let next = engine.join(at(0.0), 1, None).unwrap();
    assert_eq!(wait(&mut engine, at(0.0), next), Some(at(1.0)));
}

#[test]
fn what_a_trial_did_not_charge_is_not_given_back_after_it() {
    let mut engine = engine(Quota::per_second(1).burst(4), true);
    let mut grant = engine.try_send(at(0.0), 1).unwrap();
    engine.try_send(at(0.0), 3).unwrap();
    engine.settle_of(at(0.0), &mut grant, &Costs::each(4));
    assert_eq!(grant.costs, Costs::each(1));
    engine.set_observe(at(0.0), false);
    engine.refund_of(at(0.0), &mut grant);
    assert_eq!(engine.view(at(0.0)).level, 1.0);
}
