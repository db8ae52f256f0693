//! How answers change the engine, case by case.

use std::time::Duration;

use tower_throttle::{
    Adapt, Quota, Spend,
    engine::{Answer, Config, Engine, Flight, Reading, Time},
};

fn at(seconds: f64) -> Time {
    Time::ZERO.after(Duration::from_secs_f64(seconds))
}

fn engine(rate: u32, burst: u32, change: impl FnOnce(&mut Config)) -> Engine {
    let mut config = Config::new(Quota::per_second(rate).burst(burst));
    change(&mut config);
    Engine::new(config, Time::ZERO).unwrap()
}

/// Sends one request in flight at this time.
fn send(engine: &mut Engine, now: Time) -> Flight {
    let ticket = engine.join(now, 1, None).unwrap();
    match engine.send(now, ticket, true) {
        tower_throttle::engine::Departure::Sent(grant) => grant.flight,
        other => panic!("{other:?}"),
    }
}

fn budget(remaining: u64, reset: f64) -> Reading<'static> {
    Reading {
        remaining: Some(remaining),
        reset: Some(Duration::from_secs_f64(reset)),
        paces: true,
        ..Reading::default()
    }
}

fn ok<'a>(readings: &'a [Reading<'a>]) -> Answer<'a> {
    Answer {
        readings,
        ..Answer::default()
    }
}

const REFUSED: Answer<'static> = Answer {
    refused: true,
    wait: None,
    least_backoff: Duration::ZERO,
    shared: false,
    readings: &[],
};

#[test]
fn a_budget_is_spread_over_the_time_to_its_reset_and_then_forgotten() {
    let mut engine = engine(10, 1, |_| {});
    let flight = send(&mut engine, at(0.0));
    engine.answer(at(0.0), flight, &ok(&[budget(20, 10.0)]));
    assert_eq!(engine.view(at(0.0)).rate, 2.0);
    assert_eq!(engine.view(at(9.9)).rate, 2.0);
    assert_eq!(engine.view(at(10.0)).rate, 10.0);
    assert!(engine.view(at(10.0)).windows.is_empty());
}

#[test]
fn a_budget_spent_freely_gates_only_when_it_is_gone() {
    let mut engine = engine(10, 10, |config| config.spend = Spend::Freely);
    let flight = send(&mut engine, at(0.0));
    engine.answer(at(0.0), flight, &ok(&[budget(2, 10.0)]));
    assert_eq!(engine.view(at(0.0)).rate, 10.0);
    let flights = [send(&mut engine, at(0.1)), send(&mut engine, at(0.1))];
    assert!(engine.try_send(at(9.9), 1).is_err());
    for (flight, left) in flights.into_iter().zip([1, 0]) {
        engine.answer(at(9.9), flight, &ok(&[budget(left, 0.1)]));
    }
    assert!(engine.try_send(at(9.99), 1).is_err());
    assert!(engine.try_send(at(10.0), 1).is_ok());
}

#[test]
fn answers_out_of_order_keep_the_least_that_was_seen() {
    let mut engine = engine(100, 100, |_| {});
    let flights = [send(&mut engine, at(0.0)), send(&mut engine, at(0.0))];
    engine.answer(at(0.1), flights[1], &ok(&[budget(5, 9.9)]));
    engine.answer(at(0.2), flights[0], &ok(&[budget(6, 9.8)]));
    assert_eq!(engine.view(at(0.2)).windows[0].left, 5);
}

#[test]
fn a_later_reset_is_a_new_window_and_an_earlier_one_is_old_news() {
    let mut engine = engine(100, 100, |_| {});
    let flights = [
        send(&mut engine, at(0.0)),
        send(&mut engine, at(0.0)),
        send(&mut engine, at(0.0)),
    ];
    engine.answer(at(0.1), flights[0], &ok(&[budget(1, 5.0)]));
    engine.answer(at(0.2), flights[1], &ok(&[budget(50, 65.0)]));
    let window = engine.view(at(0.2)).windows[0].clone();
    assert_eq!((window.left, window.reset), (50, at(65.2)));
    engine.answer(at(0.3), flights[2], &ok(&[budget(0, 4.0)]));
    assert_eq!(engine.view(at(0.3)).windows[0].left, 50);
}

/// Whole seconds are rounded up: the end of a window is known better from all its answers than from the one that says it is spent.
#[test]
fn a_spent_budget_holds_until_the_reset_as_all_answers_have_it() {
    let mut engine = engine(100, 100, |_| {});
    let flights: Vec<_> = (0..2).map(|_| send(&mut engine, at(0.0))).collect();
    engine.answer(at(0.0), flights[0], &ok(&[budget(1, 5.0)]));
    engine.answer(at(4.9), flights[1], &ok(&[budget(0, 1.0)]));
    assert_eq!(engine.pause().unwrap().until, at(5.0));
}

/// An answer that is late by more than its window is not the first of a new one.
#[test]
fn late_news_of_a_window_that_has_ended_opens_no_new_one() {
    let mut engine = engine(100, 100, |_| {});
    let flights: Vec<_> = (0..2).map(|_| send(&mut engine, at(4.9))).collect();
    engine.answer(at(4.95), flights[0], &ok(&[budget(10, 1.0)]));
    // Written by the server at 5.9, where its window ended at 5.95.
    engine.answer(at(6.1), flights[1], &ok(&[budget(0, 1.0)]));
    assert!(engine.pause().is_none());
    assert!(engine.view(at(6.1)).windows.is_empty());
    assert_eq!(engine.view(at(6.1)).rate, 100.0);
}

#[test]
fn an_answer_without_headers_counts_as_used() {
    let mut engine = engine(100, 100, |_| {});
    let flights = [
        send(&mut engine, at(0.0)),
        send(&mut engine, at(0.0)),
        send(&mut engine, at(0.0)),
    ];
    engine.answer(at(0.1), flights[0], &ok(&[budget(5, 10.0)]));
    engine.answer(at(0.1), flights[1], &ok(&[]));
    engine.unanswered(at(0.1), flights[2]);
    assert_eq!(engine.view(at(0.1)).windows[0].left, 3);
}

#[test]
fn several_budgets_hold_by_name_and_the_tightest_counts() {
    let mut engine = engine(100, 100, |config| config.spend = Spend::Evenly);
    let flight = send(&mut engine, at(0.0));
    let minute = Reading {
        name: Some("minute"),
        ..budget(30, 60.0)
    };
    let day = Reading {
        name: Some("day"),
        ..budget(1000, 86_400.0)
    };
    engine.answer(at(0.0), flight, &ok(&[minute, day]));
    let view = engine.view(at(0.0));
    assert_eq!(view.windows.len(), 2);
    assert!(
        (view.rate - 1000.0 / 86_400.0).abs() < 1e-9,
        "{}",
        view.rate
    );
}

#[test]
fn the_number_of_budgets_is_bounded_and_the_tightest_are_kept() {
    let mut engine = engine(100, 100, |_| {});
    for index in 0..100_u64 {
        let name = format!("budget-{index}");
        let flight = send(&mut engine, at(index as f64));
        let reading = Reading {
            name: Some(&name),
            ..budget(1000 - index, 1e6)
        };
        engine.answer(at(index as f64), flight, &ok(&[reading]));
    }
    let view = engine.view(at(100.0));
    assert_eq!(view.windows.len(), 8);
    assert!(view.windows.iter().all(|window| window.left <= 1000 - 92));
}

#[test]
fn nine_refusals_of_one_flight_cut_once() {
    let mut engine = engine(10, 10, |_| {});
    let flights: Vec<_> = (0..10).map(|_| send(&mut engine, at(0.0))).collect();
    engine.answer(at(0.1), flights[0], &ok(&[]));
    for &flight in &flights[1..] {
        engine.answer(at(0.1), flight, &REFUSED);
    }
    assert_eq!(engine.view(at(0.1)).rate, 5.0);
}

#[test]
fn the_rate_has_a_floor_and_a_way_back() {
    let mut engine = engine(10, 1, |_| {});
    let mut now = Time::ZERO;
    for _ in 0..50 {
        let ticket = engine.join(now, 1, None).unwrap();
        let flight = loop {
            match engine.send(now, ticket, true) {
                tower_throttle::engine::Departure::Sent(grant) => break grant.flight,
                tower_throttle::engine::Departure::Wait(until) => now = until,
                other => panic!("{other:?}"),
            }
        };
        engine.answer(now, flight, &REFUSED);
        // At least one request goes out each longest pause.
        let pause = engine.pause().unwrap();
        assert!(pause.until.since(now) <= Duration::from_secs(60));
    }
    let floor = engine.view(now).rate;
    assert!(floor >= 10.0 / 1024.0, "{floor}");
    let mut waiting = Vec::new();
    for _ in 0..1000 {
        waiting.push(engine.join(now, 1, None).unwrap());
    }
    for ticket in waiting {
        let flight = loop {
            match engine.send(now, ticket, true) {
                tower_throttle::engine::Departure::Sent(grant) => break grant.flight,
                tower_throttle::engine::Departure::Wait(until) => now = until,
                other => panic!("{other:?}"),
            }
        };
        engine.answer(now, flight, &ok(&[]));
        assert!(engine.view(now).rate <= 10.0);
    }
    assert_eq!(engine.view(now).rate, 10.0);
}

#[test]
fn only_waiting_demand_raises_the_rate() {
    let mut engine = engine(10, 1, |_| {});
    let flight = send(&mut engine, at(0.0));
    engine.answer(at(0.0), flight, &REFUSED);
    for second in 1..100 {
        let now = at(f64::from(second));
        let flight = send(&mut engine, now);
        engine.answer(now, flight, &ok(&[]));
    }
    assert_eq!(engine.view(at(100.0)).rate, 5.0);
}

#[test]
fn backoff_is_forgotten_with_time() {
    let mut engine = engine(100, 1, |config| config.adapt = Adapt::Off);
    for (now, pause) in [(0.0, 1.0), (1.0, 2.0), (3.0, 4.0), (68.0, 1.0)] {
        let flight = send(&mut engine, at(now));
        engine.answer(at(now), flight, &REFUSED);
        assert_eq!(engine.pause().unwrap().until, at(now + pause));
    }
}

/// With the adaptive rate the first pause is two intervals of the lowered rate, at least the round trip, at most a second.
#[test]
fn the_first_backoff_follows_the_rate() {
    for (rate, round_trip, pause) in [(100, 0.01, 0.04), (100, 0.3, 0.3), (1, 0.1, 1.0)] {
        let mut engine = engine(rate, 1, |_| {});
        let flight = send(&mut engine, at(0.0));
        engine.answer(at(round_trip), flight, &REFUSED);
        assert_eq!(engine.pause().unwrap().until, at(round_trip + pause));
    }
}

/// A budget that requests without an answer used up is as spent as one the server calls so: with a pause, and its bounds.
#[test]
fn a_budget_used_up_unseen_pauses_too() {
    let mut engine = engine(10, 10, |config| config.spend = Spend::Freely);
    let flights: Vec<_> = (0..3).map(|_| send(&mut engine, at(0.0))).collect();
    let month = 30.0 * 86_400.0;
    engine.answer(at(0.0), flights[0], &ok(&[budget(2, month)]));
    let waiting = engine.join(at(0.1), 1, None).unwrap();
    engine.unanswered(at(0.2), flights[1]);
    assert!(engine.pause().is_none());
    engine.unanswered(at(0.3), flights[2]);
    assert_eq!(engine.pause().unwrap().until, at(month));
    // Longer than tolerated: those who wait and those who come are told.
    let refused = |poll| matches!(poll, tower_throttle::engine::Poll::Refused(_));
    assert!(refused(engine.poll(at(0.4), waiting)));
    assert!(engine.join(at(0.5), 1, None).is_err());
}

/// With `Retry-After` the same answer's far reset does not park anybody behind the pause.
#[test]
fn a_named_wait_ends_the_budget_it_refuses() {
    let mut engine = engine(10, 10, |_| {});
    let flight = send(&mut engine, at(0.0));
    let readings = [budget(0, 30.0 * 86_400.0)];
    let answer = Answer {
        refused: true,
        wait: Some(Duration::from_secs(5)),
        readings: &readings,
        ..Answer::default()
    };
    engine.answer(at(0.0), flight, &answer);
    assert_eq!(engine.pause().unwrap().until, at(5.0));
    assert!(engine.try_send(at(4.9), 1).is_err());
    assert!(engine.try_send(at(5.0), 1).is_ok());
}

#[test]
fn what_the_server_says_unasked_only_slows() {
    let mut engine = engine(10, 1, |_| {});
    engine.try_send(at(0.0), 1).unwrap();
    engine.reconcile(at(0.0), &REFUSED);
    engine.join(at(0.0), 1, None).unwrap();
    for _ in 0..100 {
        engine.reconcile(at(0.0), &ok(&[]));
    }
    assert_eq!(engine.view(at(0.0)).rate, 5.0);
}

/// A hundred thousand in line, parked or not: leaving from anywhere costs the same, and those behind are told.
#[test]
fn leaving_a_long_line_is_cheap() {
    let mut engine = engine(1, 1, |_| {});
    engine.try_send(Time::ZERO, 1).unwrap();
    let tickets: Vec<_> = (0..100_000)
        .map(|_| engine.join(Time::ZERO, 1, None).unwrap())
        .collect();
    for &ticket in tickets
        .iter()
        .rev()
        .step_by(2)
        .chain(tickets.iter().step_by(2))
    {
        engine.cancel(Time::ZERO, ticket).unwrap();
        let mut told = 0;
        while engine.take_woken().is_some() {
            told += 1;
        }
        assert!(told <= 16, "{told}");
    }
    assert_eq!(engine.view(Time::ZERO).queue_len, 0);
}

/// The slack is for lateness, not for those who never wait.
#[test]
fn callers_who_never_wait_find_one_burst_and_no_slack() {
    let mut engine = engine(10_000, 1, |_| {});
    for step in 0..100 {
        send(&mut engine, at(0.005 * f64::from(step)));
    }
    let now = at(0.5);
    engine.try_send(now, 1).unwrap();
    assert!(engine.try_send(now, 1).is_err());
}

/// After a wait it is for those who waited.
#[test]
fn the_slack_is_no_larger_than_what_was_waited_for() {
    let mut engine = engine(10_000, 1, |_| {});
    engine.try_send(Time::ZERO, 1).unwrap();
    let ticket = engine.join(at(0.000_05), 1, None).unwrap();
    engine.send(at(0.000_1), ticket, false);
    let now = at(0.01);
    let left = (0..)
        .take_while(|_| engine.try_send(now, 1).is_ok())
        .count();
    assert_eq!(left, 2);
}
