//! After a pause of our own choice one request tests the server.

use std::time::Duration;

use tower_throttle::{
    Cause, Quota,
    engine::{Answer, Config, Departure, Engine, Flight, Poll, TicketId, Time},
};

const REFUSED: Answer<'static> = Answer {
    refused: true,
    wait: None,
    least_backoff: Duration::ZERO,
    shared: false,
    readings: &[],
};

fn at(seconds: f64) -> Time {
    Time::ZERO.after(Duration::from_secs_f64(seconds))
}

fn send(engine: &mut Engine, now: Time, ticket: TicketId, tracked: bool) -> Flight {
    match engine.send(now, ticket, tracked) {
        Departure::Sent(grant) => grant.flight,
        other => panic!("{other:?}"),
    }
}

/// An engine whose only request was refused at 0.1 s, which makes a pause to 0.2 s, with callers in line.
fn refused(change: impl FnOnce(&mut Config)) -> (Engine, Vec<TicketId>) {
    let mut config = Config::new(Quota::per_second(100).burst(10));
    change(&mut config);
    let mut engine = Engine::new(config, Time::ZERO).unwrap();
    let ticket = engine.join(Time::ZERO, 1, None).unwrap();
    let flight = send(&mut engine, Time::ZERO, ticket, true);
    engine.answer(at(0.1), flight, &REFUSED);
    assert_eq!(engine.pause().unwrap().until, at(0.2));
    let line = (0..5).map(|_| engine.join(at(0.1), 1, None).unwrap());
    let line = line.collect();
    (engine, line)
}

fn waits(engine: &mut Engine, now: Time, ticket: TicketId) -> Option<Time> {
    match engine.poll(now, ticket) {
        Poll::Wait(until) => Some(until),
        Poll::Granted => None,
        Poll::Refused(refusal) => panic!("{refusal:?}"),
    }
}

#[test]
fn nothing_else_leaves_before_its_answer() {
    let (mut engine, line) = refused(|_| {});
    let flight = send(&mut engine, at(0.2), line[0], true);
    assert_eq!(engine.pause().unwrap().cause, Cause::Trial);
    assert!(engine.try_send(at(0.25), 1).is_err());
    assert_eq!(waits(&mut engine, at(0.25), line[1]), Some(at(0.4)));
    engine.answer(at(0.26), flight, &Answer::default());
    assert!(engine.pause().is_none());
    send(&mut engine, at(0.26), line[1], true);
    // The others at the rate: there is no second trial.
    let next = waits(&mut engine, at(0.26), line[2]).unwrap();
    assert!(next > at(0.26) && next <= at(0.29), "{next:?}");
}

#[test]
fn its_refusal_begins_a_longer_pause() {
    let (mut engine, line) = refused(|_| {});
    let flight = send(&mut engine, at(0.2), line[0], true);
    engine.answer(at(0.3), flight, &REFUSED);
    let pause = engine.pause().unwrap();
    assert_eq!((pause.until, pause.cause), (at(0.5), Cause::Backoff));
}

#[test]
fn it_is_waited_for_no_longer_than_twice_a_round_trip() {
    let (mut engine, line) = refused(|_| {});
    send(&mut engine, at(0.2), line[0], true);
    assert!(waits(&mut engine, at(0.399), line[1]).is_some());
    send(&mut engine, at(0.4), line[1], true);
}

#[test]
fn one_that_fails_ends_it() {
    let (mut engine, line) = refused(|_| {});
    let flight = send(&mut engine, at(0.2), line[0], true);
    engine.unanswered(at(0.25), flight);
    assert!(engine.pause().is_none());
    send(&mut engine, at(0.25), line[1], true);
}

/// The server's word is never cut short by it.
#[test]
fn a_pause_the_server_names_meanwhile_is_kept() {
    let (mut engine, line) = refused(|_| {});
    let flight = send(&mut engine, at(0.2), line[0], true);
    let named = Answer {
        wait: Some(Duration::from_millis(100)),
        ..REFUSED
    };
    engine.reconcile(at(0.21), &named);
    engine.answer(at(0.22), flight, &Answer::default());
    let pause = engine.pause().unwrap();
    assert_eq!((pause.until, pause.cause), (at(0.31), Cause::Server));
    assert!(waits(&mut engine, at(0.309), line[1]).is_some());
    send(&mut engine, at(0.31), line[1], true);
}

/// Its answer may never be told.
#[test]
fn a_request_that_is_not_tracked_is_none() {
    let (mut engine, line) = refused(|_| {});
    send(&mut engine, at(0.2), line[0], false);
    assert!(engine.pause().is_none());
}

/// It does not refuse those who tolerate no pause.
#[test]
fn it_is_no_longer_than_a_pause_may_be() {
    let (mut engine, line) = refused(|config| config.max_pause = Duration::from_millis(150));
    send(&mut engine, at(0.2), line[0], true);
    assert_eq!(waits(&mut engine, at(0.2), line[1]), Some(at(0.35)));
    assert!(engine.join(at(0.2), 1, None).is_ok());
}

/// Once the server is known to accept again, a later request is not held up by a test nobody made.
#[test]
fn an_accepted_request_that_is_not_tracked_makes_it_needless() {
    let (mut engine, line) = refused(|_| {});
    let flight = send(&mut engine, at(0.2), line[0], false);
    engine.answer(at(0.25), flight, &Answer::default());
    send(&mut engine, at(0.3), line[1], true);
    assert!(engine.pause().is_none());
}

/// The clock saturates. Whoever is revoked to make way for a trial would be granted again at once, for ever.
#[test]
fn at_the_end_of_time_a_trial_holds_nobody_back() {
    let mut engine =
        Engine::new(Config::new(Quota::per_second(100).burst(10)), Time::ZERO).unwrap();
    let ticket = engine.join(Time::ZERO, 1, None).unwrap();
    let flight = send(&mut engine, Time::ZERO, ticket, true);
    engine.answer(Time::MAX, flight, &REFUSED);
    let [one, other] = [(); 2].map(|()| engine.join(Time::MAX, 1, None).unwrap());
    send(&mut engine, Time::MAX, one, true);
    assert_eq!(engine.poll(Time::MAX, other), Poll::Granted);
}
