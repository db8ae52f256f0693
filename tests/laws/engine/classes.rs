//! Classes: first come, first served within one; among several, turns by weight.

use std::time::Duration;

use tower_throttle::{
    Quota,
    engine::{Ask, Config, Departure, Engine, Priority, Time},
};

use crate::drive::{Callers, at, of, send, wait};

const ALL: [Priority; 3] = [Priority::Low, Priority::Normal, Priority::High];

fn engine() -> Engine {
    let mut engine = Engine::new(Config::new(Quota::per_second(10)), Time::ZERO).unwrap();
    engine.try_send(Time::ZERO, 1).unwrap();
    engine
}

fn names(left: &[(Time, Priority)]) -> String {
    let name = |priority: Priority| match priority {
        Priority::Low => 'l',
        Priority::Normal => 'n',
        Priority::High => 'h',
    };
    left.iter().map(|&(_, priority)| name(priority)).collect()
}

fn count(left: &[(Time, Priority)], priority: Priority) -> f64 {
    left.iter().filter(|left| left.1 == priority).count() as f64
}

/// A line of so many of each class.
fn line(engine: &mut Engine, counts: [usize; 3]) -> Callers<Priority> {
    let mut callers = Callers::default();
    for (priority, count) in ALL.into_iter().zip(counts) {
        for _ in 0..count {
            callers.join(engine, at(0.0), &of(priority, 1), priority);
        }
    }
    callers
}

#[test]
fn shares_are_sixteen_to_four_to_one_under_endless_demand() {
    let mut engine = engine();
    let mut callers = line(&mut engine, [60, 200, 800]);
    let left = callers.drive(&mut engine, at(84.0));
    assert!(left.len() >= 839);
    for (priority, share) in ALL.into_iter().zip([1.0, 4.0, 16.0]) {
        let due = left.len() as f64 * share / 21.0;
        let off = count(&left, priority) - due;
        // Two in a hundred, and one that is not whole.
        assert!(
            off.abs() <= 0.02 * due + 1.0,
            "{priority:?} is off by {off}"
        );
    }
}

/// Units are shared, not requests.
#[test]
fn shares_are_of_cost() {
    let config = Config::new(Quota::per_second(10).burst(8));
    let mut engine = Engine::new(config, Time::ZERO).unwrap();
    engine.try_send(Time::ZERO, 8).unwrap();
    let mut callers = Callers::default();
    for _ in 0..300 {
        callers.join(&mut engine, at(0.0), &of(Priority::High, 8), Priority::High);
        callers.join(
            &mut engine,
            at(0.0),
            &of(Priority::Normal, 1),
            Priority::Normal,
        );
    }
    let left = callers.drive(&mut engine, at(100.0));
    let (high, normal) = (
        8.0 * count(&left, Priority::High),
        count(&left, Priority::Normal),
    );
    assert!(
        (high / normal / 4.0 - 1.0).abs() < 0.05,
        "{high} to {normal}"
    );
}

#[test]
fn a_class_alone_has_everything() {
    for priority in ALL {
        let mut engine = engine();
        let mut callers = Callers::default();
        for _ in 0..50 {
            callers.join(&mut engine, at(0.0), &of(priority, 1), priority);
        }
        assert_eq!(callers.drive(&mut engine, at(5.0)).len(), 50);
    }
}

/// Neither the time it was away nor the time it was alone counts.
#[test]
fn a_class_that_was_away_gets_its_share_and_no_more() {
    for (alone, comes, expected) in [
        (Priority::High, Priority::Low, (16.0, 1.0)),
        (Priority::Low, Priority::High, (1.0, 16.0)),
        (Priority::Normal, Priority::Low, (4.0, 1.0)),
    ] {
        let mut engine = engine();
        let mut callers = Callers::default();
        for _ in 0..400 {
            callers.join(&mut engine, at(0.0), &of(alone, 1), alone);
        }
        callers.drive(&mut engine, at(20.0));
        for _ in 0..200 {
            callers.join(&mut engine, at(20.01), &of(comes, 1), comes);
        }
        let left = callers.drive(&mut engine, at(30.21));
        assert_eq!(left.len(), 102);
        let all = expected.0 + expected.1;
        let off = count(&left, comes) - 102.0 * expected.1 / all;
        assert!(off.abs() <= 2.0, "{}", names(&left));
    }
}

#[test]
fn no_class_starves_another() {
    let mut engine = engine();
    let mut callers = line(&mut engine, [1, 1, 300]);
    let left = callers.drive(&mut engine, at(2.2));
    assert_eq!(
        (count(&left, Priority::Low), count(&left, Priority::Normal)),
        (1.0, 1.0)
    );
}

#[test]
fn within_a_class_it_is_first_come_first_served() {
    let mut engine = engine();
    let mut callers = Callers::default();
    for index in 0..90 {
        callers.join(&mut engine, at(0.0), &of(ALL[index % 3], 1), index);
    }
    let left = callers.drive(&mut engine, at(60.0));
    for class in 0..3 {
        let numbers = left.iter().map(|left| left.1);
        let numbers: Vec<_> = numbers.filter(|index| index % 3 == class).collect();
        assert_eq!(numbers, (class..90).step_by(3).collect::<Vec<_>>());
    }
}

/// A low class has patience enough for its own share, however many of a higher one wait.
#[test]
fn the_wait_that_is_foreseen_counts_only_the_share_of_others() {
    let mut engine = engine();
    let mut callers = line(&mut engine, [0, 0, 500]);
    let hurried = |priority, seconds| Ask {
        patience: Some(Duration::from_secs(seconds)),
        ..of(priority, 1)
    };
    assert!(
        engine
            .join_as(at(0.0), &hurried(Priority::High, 49))
            .is_err()
    );
    let low = hurried(Priority::Low, 2);
    callers.join(&mut engine, at(0.0), &low, Priority::Low);
    let left = callers.drive(&mut engine, at(2.0));
    assert_eq!(count(&left, Priority::Low), 1.0);
    // Its own class is ahead of it in full, with what others have in that time.
    for _ in 0..3 {
        callers.join(&mut engine, at(2.0), &of(Priority::Low, 1), Priority::Low);
    }
    assert!(engine.join_as(at(2.0), &hurried(Priority::Low, 2)).is_err());
}

/// What costs nothing now is not told to ask again at once while it is another's turn.
#[test]
fn who_could_be_served_but_for_its_turn_waits_for_the_turn() {
    let mut engine = Engine::new(Config::new(Quota::per_second(10).burst(10)), Time::ZERO).unwrap();
    engine.try_send(at(0.0), 5).unwrap();
    let first = engine.join_as(at(0.0), &of(Priority::Low, 10)).unwrap();
    // Of two classes with the same turn the higher one is first.
    let other = engine.join_as(at(0.0), &of(Priority::High, 7)).unwrap();
    let small = engine.join_as(at(0.0), &of(Priority::Normal, 1)).unwrap();
    assert_eq!(wait(&mut engine, at(0.0), other), Some(at(0.2)));
    assert_eq!(wait(&mut engine, at(0.0), first), Some(at(1.2)));
    assert_eq!(wait(&mut engine, at(0.0), small), Some(at(0.3)));
}

#[test]
fn cancelled_waiters_take_no_turns() {
    let mut engine = engine();
    let mut callers = line(&mut engine, [0, 40, 0]);
    // A hundred of the high class come and go before they are served.
    let gone: Vec<_> = (0..100)
        .map(|_| engine.join_as(at(0.0), &of(Priority::High, 1)).unwrap())
        .collect();
    for ticket in gone {
        engine.cancel(at(0.0), ticket).unwrap();
    }
    for _ in 0..40 {
        callers.join(&mut engine, at(0.0), &of(Priority::High, 1), Priority::High);
    }
    let left = callers.drive(&mut engine, at(2.0));
    assert_eq!(count(&left, Priority::High), 16.0, "{}", names(&left));
}

/// Its tokens went back, and so does its turn.
#[test]
fn who_was_granted_and_gives_up_costs_its_class_no_turn() {
    let mut engine = Engine::new(Config::new(Quota::per_second(10).burst(10)), Time::ZERO).unwrap();
    engine.try_send(at(0.0), 10).unwrap();
    let granted = engine.join_as(at(0.0), &of(Priority::Low, 10)).unwrap();
    let mut callers = Callers::default();
    for _ in 0..40 {
        callers.join(&mut engine, at(0.1), &of(Priority::Low, 1), Priority::Low);
        callers.join(
            &mut engine,
            at(0.1),
            &of(Priority::Normal, 1),
            Priority::Normal,
        );
    }
    // The low class has the first turn, by a large cost.
    let turn = wait(&mut engine, at(0.1), granted);
    assert!(turn.is_some());
    let until = at(1.9);
    let granted_at = (1..=40).map(|step| at(0.1 * f64::from(step)));
    let mut now = at(0.1);
    for step in granted_at.take_while(|&step| step <= until) {
        now = step;
        if wait(&mut engine, now, granted).is_none() {
            break;
        }
    }
    assert_eq!(wait(&mut engine, now, granted), None);
    engine.cancel(now, granted).unwrap();
    callers.wake(&mut engine, now);
    let left = callers.drive(&mut engine, now.after(Duration::from_secs(2)));
    // One in five is of the low class again, not none for ten of its turns.
    assert!(count(&left, Priority::Low) >= 4.0, "{}", names(&left));
}

#[test]
fn who_was_revoked_costs_its_class_one_turn_only() {
    let mut engine = engine();
    let low = engine.join_as(at(0.0), &of(Priority::Low, 1)).unwrap();
    assert_eq!(wait(&mut engine, at(0.1), low), None);
    let mut callers = line(&mut engine, [0, 0, 100]);
    for round in 0..10 {
        engine.halt(at(0.1 + f64::from(round) * 0.001));
        assert!(wait(&mut engine, at(0.1 + f64::from(round) * 0.001), low).is_some());
        engine.resume(at(0.1005 + f64::from(round) * 0.001));
        engine.poll(at(0.1005 + f64::from(round) * 0.001), low);
    }
    callers.wake(&mut engine, at(0.2));
    let mut others = 0;
    let mut now = at(0.2);
    while let Departure::Wait(_) = engine.send(now, low, false) {
        now = now.after(Duration::from_millis(100));
        others += callers.drive(&mut engine, now).len();
    }
    assert!(others <= 17, "{others} passed it");
}

/// L2: somebody in line asks no later than the first turn, whatever class has it.
#[test]
fn somebody_asks_at_the_first_turn() {
    let mut engine = engine();
    let mut asks = Vec::new();
    for priority in ALL {
        for _ in 0..5 {
            let ticket = engine.join_as(at(0.0), &of(priority, 1)).unwrap();
            asks.push(wait(&mut engine, at(0.0), ticket).unwrap());
        }
    }
    assert_eq!(asks.into_iter().min(), Some(at(0.1)));
    send_all(&mut engine);
}

/// The parked of one class hold up nobody of another.
fn send_all(engine: &mut Engine) {
    let last = engine.join_as(at(0.0), &of(Priority::Low, 1)).unwrap();
    assert!(wait(engine, at(1.0), last).is_some());
    assert_eq!(wait(engine, at(1.6), last), None);
    send(engine, at(1.6), last);
}
