use std::time::Duration;

use tower_throttle::{
    Adapt, Quota,
    engine::{Answer, Config, Departure, Engine, Flight, Reading, TicketId, Time},
};

use super::{Client, Todo};
use crate::server::{At, Reply, Voice};

/// This crate's engine, driven as [`tower_throttle::Limiter`] drives it.
#[derive(Debug)]
pub(crate) struct Ours {
    engine: Engine,
    callers: Vec<Caller>,
    /// Who has the ticket in a slot.
    holders: Vec<usize>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Caller {
    ticket: Option<TicketId>,
    flight: Option<Flight>,
    /// When it will ask again; alarms for other times are out of date.
    armed: Option<At>,
}

impl Ours {
    pub(crate) fn new(ceiling: u32, burst: u32, adapt: Adapt) -> Self {
        let mut config = Config::new(Quota::per_second(ceiling).burst(burst));
        config.adapt = adapt;
        Self {
            engine: Engine::new(config, Time::ZERO).expect("the quota is valid"),
            callers: Vec::new(),
            holders: Vec::new(),
        }
    }

    fn caller(&mut self, caller: usize) -> &mut Caller {
        if self.callers.len() <= caller {
            self.callers.resize(caller + 1, Caller::default());
        }
        &mut self.callers[caller]
    }

    fn attempt(&mut self, now: At, caller: usize, todo: &mut Todo) {
        let Some(ticket) = self.callers[caller].ticket else {
            return;
        };
        match self.engine.send(time(now), ticket, true) {
            Departure::Sent(grant) => {
                self.callers[caller] = Caller {
                    flight: Some(grant.flight),
                    ..Caller::default()
                };
                todo.sends.push(caller);
            }
            Departure::Wait(until) => {
                // Never at the same instant again, or time would stand still.
                let until =
                    Duration::from_nanos(until.as_nanos()).max(now + Duration::from_nanos(1));
                if self.callers[caller].armed != Some(until) {
                    self.callers[caller].armed = Some(until);
                    todo.alarms.push((until, caller));
                }
            }
            Departure::Refused(refusal) => panic!("nothing bounds the wait, yet {refusal:?}"),
        }
    }

    /// Lets those try again whose turn may have come.
    fn settle(&mut self, now: At, todo: &mut Todo) {
        while let Some(ticket) = self.engine.take_woken() {
            let Some(&caller) = self.holders.get(ticket.slot()) else {
                continue;
            };
            if self.callers[caller].ticket == Some(ticket) {
                self.attempt(now, caller, todo);
            }
        }
    }

    fn land(&mut self, caller: usize) -> Flight {
        let flight = self.callers[caller].flight.take();
        flight.expect("only what was sent comes back")
    }
}

impl Client for Ours {
    fn ask(&mut self, now: At, caller: usize, todo: &mut Todo) {
        let joined = self.engine.join(time(now), 1, None);
        let ticket = joined.expect("nothing bounds the line");
        self.caller(caller).ticket = Some(ticket);
        if self.holders.len() <= ticket.slot() {
            self.holders.resize(ticket.slot() + 1, usize::MAX);
        }
        self.holders[ticket.slot()] = caller;
        self.attempt(now, caller, todo);
        self.settle(now, todo);
    }

    fn wake(&mut self, now: At, caller: usize, todo: &mut Todo) {
        if self.callers[caller].armed == Some(now) {
            self.callers[caller].armed = None;
            self.attempt(now, caller, todo);
            self.settle(now, todo);
        }
    }

    fn answer(&mut self, now: At, caller: usize, reply: &Reply, todo: &mut Todo) {
        let flight = self.land(caller);
        let reading = reply.budget.map(|budget| Reading {
            name: (reply.voice == Voice::Policies).then_some("default"),
            limit: Some(budget.limit),
            remaining: Some(budget.remaining),
            reset: Some(budget.reset),
            window: (reply.voice == Voice::Policies).then_some(budget.window),
            paces: true,
            ..Reading::default()
        });
        // As the limiter does: without `Retry-After` a refusal names the reset.
        let reset = reply.budget.map(|budget| budget.reset);
        let answer = Answer {
            refused: reply.refused,
            wait: reply.retry_after.or(reset).filter(|_| reply.refused),
            readings: reading.as_slice(),
            ..Answer::default()
        };
        self.engine.answer(time(now), flight, &answer);
        self.settle(now, todo);
    }

    fn give_up(&mut self, now: At, caller: usize, todo: &mut Todo) {
        let flight = self.land(caller);
        self.engine.unanswered(time(now), flight);
        self.settle(now, todo);
    }

    fn rate(&mut self, now: At) -> f64 {
        // A look lets time pass, which must not depend on whether anybody looks.
        self.engine.clone().view(time(now)).rate
    }
}

fn time(at: At) -> Time {
    Time::ZERO.after(at)
}
