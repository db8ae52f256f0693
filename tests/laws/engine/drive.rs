//! Callers who ask when they are told, in virtual time.

use std::time::Duration;

use tower_throttle::engine::{
    Ask, Costs, Departure, Engine, Grant, Poll, Priority, TicketId, Time,
};

pub(crate) fn at(seconds: f64) -> Time {
    Time::ZERO.after(Duration::from_secs_f64(seconds))
}

pub(crate) fn send(engine: &mut Engine, now: Time, ticket: TicketId) -> Grant {
    match engine.send(now, ticket, false) {
        Departure::Sent(grant) => grant,
        other => panic!("{other:?}"),
    }
}

/// When the caller should ask again, if it is not granted.
pub(crate) fn wait(engine: &mut Engine, now: Time, ticket: TicketId) -> Option<Time> {
    match engine.poll(now, ticket) {
        Poll::Wait(until) => Some(until),
        Poll::Granted => None,
        Poll::Refused(refusal) => panic!("{refusal:?}"),
    }
}

pub(crate) fn of(priority: Priority, cost: u32) -> Ask {
    Ask {
        costs: Costs::each(cost),
        priority,
        ..Ask::default()
    }
}

/// Callers in line, each with a name of the test's own.
#[derive(Debug, Default)]
pub(crate) struct Callers<T> {
    asks: Vec<(Time, TicketId, T)>,
}

impl<T: Copy> Callers<T> {
    pub(crate) fn add(&mut self, now: Time, ticket: TicketId, name: T) {
        self.asks.push((now, ticket, name));
    }

    pub(crate) fn join(&mut self, engine: &mut Engine, now: Time, ask: &Ask, name: T) {
        let ticket = engine.join_as(now, ask).unwrap();
        self.add(now, ticket, name);
    }

    /// Sends whoever may leave until `end`; returns who left and when, in order. Whoever is refused is gone.
    pub(crate) fn drive(&mut self, engine: &mut Engine, end: Time) -> Vec<(Time, T)> {
        let mut left = Vec::new();
        loop {
            let next = (0..self.asks.len()).min_by_key(|&index| self.asks[index].0);
            let Some(index) = next.filter(|&index| self.asks[index].0 <= end) else {
                return left;
            };
            let (now, ticket, name) = self.asks[index];
            match engine.send(now, ticket, false) {
                Departure::Sent(_) => {
                    left.push((now, name));
                    self.asks.remove(index);
                }
                Departure::Refused(_) => {
                    self.asks.remove(index);
                }
                Departure::Wait(until) => self.asks[index].0 = until,
            }
            self.wake(engine, now);
        }
    }

    /// Whom the engine names asks now.
    pub(crate) fn wake(&mut self, engine: &mut Engine, now: Time) {
        while let Some(woken) = engine.take_woken() {
            for ask in self.asks.iter_mut().filter(|ask| ask.1 == woken) {
                ask.0 = now;
            }
        }
    }
}
