//! The simulation: virtual time, events in order, no clock.

use std::{cmp::Reverse, collections::BinaryHeap, time::Duration};

use crate::{
    client::{Client, Todo},
    record::Record,
    rng::Rng,
    server::{At, Reply, Server},
};

/// The round trip without jitter.
const ROUND_TRIP: Duration = Duration::from_millis(60);
/// The most jitter there is on top.
const JITTER: f64 = 0.020;
/// After this long a caller gives up waiting for its answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How late late answers are.
const LATE: Duration = Duration::from_secs(2);

/// How many callers there are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Demand {
    /// So many, each of which asks again as soon as it is answered.
    Endless(usize),
    /// They come at random, so many a second, and stay until they are accepted.
    Random(f64),
    /// Endless, but from `from` to `to` each stays away for a while after each answer, so that there are about `rate` a second.
    Break {
        callers: usize,
        from: At,
        to: At,
        rate: f64,
    },
}

/// What waited before demand ended needs some time to leave.
const REST: Duration = Duration::from_secs(10);

/// The way between clients and server.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Net {
    /// The part of answers that never arrives.
    pub(crate) lost: f64,
    /// The part of answers that is late.
    pub(crate) late: f64,
}

/// What a run needs besides the clients.
pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) demand: Demand,
    pub(crate) net: Net,
    pub(crate) end: At,
    pub(crate) rng: Rng,
}

/// How long one request and its answer are under way, half of it each.
pub(crate) fn round_trip(rng: &mut Rng) -> Duration {
    ROUND_TRIP + Duration::from_secs_f64(JITTER * rng.unit())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A request reaches the server.
    Arrive(Name),
    /// An answer reaches the client.
    Answer(Name),
    /// No answer came.
    GiveUp(Name),
    /// A caller comes back.
    Ask(Name),
    /// A client starts.
    Start(usize),
    /// A client asked for this.
    Wake(Name),
    /// The next of the callers who come at random.
    Come,
    /// Once a second.
    Look,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    client: usize,
    caller: usize,
}

#[derive(Debug, Clone, Copy)]
struct Caller {
    asked: At,
    /// Half of the round trip under way.
    half: Duration,
    reply: Option<Reply>,
}

struct Run {
    world: World,
    clients: Vec<Box<dyn Client>>,
    callers: Vec<Vec<Caller>>,
    /// Callers who are gone, to be used again.
    gone: Vec<usize>,
    events: BinaryHeap<Reverse<(At, u64, Event)>>,
    count: u64,
    now: At,
    record: Record,
}

impl World {
    /// Runs to the end. Several clients share the server and know nothing of each other; each has its start.
    pub(crate) fn run(self, clients: Vec<(At, Box<dyn Client>)>) -> Record {
        let (starts, clients): (Vec<At>, Vec<_>) = clients.into_iter().unzip();
        let mut run = Run {
            record: Record::new(clients.len(), self.end),
            callers: vec![Vec::new(); clients.len()],
            gone: Vec::new(),
            events: BinaryHeap::new(),
            count: 0,
            now: At::ZERO,
            world: self,
            clients,
        };
        for (client, at) in starts.into_iter().enumerate() {
            run.put(at, Event::Start(client));
        }
        run.put(At::ZERO, Event::Look);
        while let Some(Reverse((at, _, event))) = run.events.pop() {
            if at >= run.world.end {
                break;
            }
            run.now = at;
            run.handle(event);
        }
        run.record.close(run.world.server.rule);
        run.record
    }
}

impl Run {
    fn start(&mut self, client: usize) {
        match self.world.demand {
            Demand::Endless(callers) | Demand::Break { callers, .. } => {
                for _ in 0..callers / self.clients.len() {
                    self.newcomer(client);
                }
            }
            Demand::Random(_) => self.put(self.now, Event::Come),
        }
    }

    fn put(&mut self, at: At, event: Event) {
        self.count += 1;
        self.events.push(Reverse((at, self.count, event)));
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrive(name) => self.arrive(name),
            Event::Answer(name) => {
                let reply = self.callers[name.client][name.caller].reply.take();
                let reply = reply.expect("the server answered");
                self.act(name.client, |client, now, todo| {
                    client.answer(now, name.caller, &reply, todo);
                });
                self.go_on(name, reply.refused);
            }
            Event::GiveUp(name) => {
                self.act(name.client, |client, now, todo| {
                    client.give_up(now, name.caller, todo);
                });
                self.go_on(name, true);
            }
            Event::Ask(name) => self.ask(name),
            Event::Start(client) => self.start(client),
            Event::Wake(name) => self.act(name.client, |client, now, todo| {
                client.wake(now, name.caller, todo);
            }),
            Event::Come => {
                let caller = self.gone.pop();
                match caller {
                    Some(caller) => self.ask(Name { client: 0, caller }),
                    None => self.newcomer(0),
                }
                if let Demand::Random(rate) = self.world.demand {
                    let gap = Duration::from_secs_f64(self.world.rng.gap(rate));
                    self.put(self.now + gap, Event::Come);
                }
            }
            Event::Look => {
                for (client, rates) in self.clients.iter_mut().zip(&mut self.record.rates) {
                    rates.push(client.rate(self.now));
                }
                self.put(self.now + Duration::from_secs(1), Event::Look);
            }
        }
    }

    /// What a caller does after its answer.
    fn go_on(&mut self, name: Name, again: bool) {
        match self.world.demand {
            Demand::Random(_) if !again => self.gone.push(name.caller),
            Demand::Break {
                callers,
                from,
                to,
                rate,
            } if !again && (from..to).contains(&self.now) => {
                let gap = self.world.rng.gap(rate / callers as f64);
                let back = (self.now + Duration::from_secs_f64(gap)).min(to);
                self.put(back, Event::Ask(name));
            }
            _ => self.ask(name),
        }
    }

    /// Whether demand is so low that nobody should wait.
    fn is_quiet(&self) -> bool {
        match self.world.demand {
            Demand::Endless(_) => false,
            Demand::Random(_) => true,
            Demand::Break { from, to, .. } => (from + REST..to).contains(&self.now),
        }
    }

    fn newcomer(&mut self, client: usize) {
        let caller = self.callers[client].len();
        self.callers[client].push(Caller {
            asked: self.now,
            half: Duration::ZERO,
            reply: None,
        });
        self.ask(Name { client, caller });
    }

    fn ask(&mut self, name: Name) {
        self.callers[name.client][name.caller].asked = self.now;
        self.act(name.client, |client, now, todo| {
            client.ask(now, name.caller, todo);
        });
    }

    /// Lets a client do something, and does what it wants done.
    fn act(&mut self, client: usize, step: impl FnOnce(&mut dyn Client, At, &mut Todo)) {
        let mut todo = Todo::default();
        step(&mut *self.clients[client], self.now, &mut todo);
        for (at, caller) in todo.alarms {
            self.put(at, Event::Wake(Name { client, caller }));
        }
        for caller in todo.sends {
            let half = round_trip(&mut self.world.rng) / 2;
            let slot = &mut self.callers[client][caller];
            slot.half = half;
            let asked = slot.asked;
            if self.is_quiet() {
                self.record.waited(self.now - asked);
            }
            self.put(self.now + half, Event::Arrive(Name { client, caller }));
        }
    }

    /// The server decides when the request arrives; what becomes of the answer is the net's.
    fn arrive(&mut self, name: Name) {
        let reply = self.world.server.decide(self.now);
        self.record.arrived(name.client, self.now, !reply.refused);
        let slot = &mut self.callers[name.client][name.caller];
        let (half, net) = (slot.half, self.world.net);
        if self.world.rng.chance(net.lost) {
            return self.put(self.now - half + PATIENCE, Event::GiveUp(name));
        }
        slot.reply = Some(reply);
        let late = self.world.rng.chance(net.late);
        let late = if late { LATE } else { Duration::ZERO };
        let back = self.now + half + reply.service + late;
        self.put(back, Event::Answer(name));
    }
}
