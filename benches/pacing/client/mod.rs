//! The clients: what stands between callers and the server.

mod aimd;
mod aws;
mod fixed;
mod guide;
mod line;
mod ours;

use tower_throttle::Adapt;

use crate::{
    row::Setup,
    server::{At, Reply},
};

use aimd::Aimd;
use aws::Aws;
use fixed::{Fixed, Sleep};
use guide::Guide;
use line::{Line, Pacer};
use ours::Ours;

/// One way to pace.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    make: fn(&Setup) -> Box<dyn Client>,
}

/// Ours, then the peers.
pub(crate) const KINDS: &[Kind] = &[
    kind("ours", |setup| Box::new(ours(setup, Adapt::On))),
    kind("aws-adaptive", |setup| {
        line(Aws::new(setup.ceiling(), setup.burst()))
    }),
    kind("aimd", |setup| {
        line(Aimd::new(setup.ceiling(), setup.burst()))
    }),
    kind("guide", |setup| {
        line(Guide::new(setup.ceiling(), setup.burst()))
    }),
    kind("sleep", |setup| {
        line(Sleep::new(setup.ceiling(), setup.burst()))
    }),
    kind("fixed-right", |setup| line(Fixed::new(setup.right, 1.0))),
    kind("fixed-10x", |setup| {
        line(Fixed::new(setup.ceiling(), setup.burst()))
    }),
];

/// Run only if asked for by name: ours with a rate that never changes.
pub(crate) const ADAPT_OFF: Kind = kind("adapt-off", |setup| Box::new(ours(setup, Adapt::Off)));

impl Kind {
    /// One client for each start of a row.
    pub(crate) fn make(&self, setup: &Setup) -> Vec<(At, Box<dyn Client>)> {
        let starts = setup.starts.iter();
        starts.map(|&at| (at, (self.make)(setup))).collect()
    }
}

const fn kind(name: &'static str, make: fn(&Setup) -> Box<dyn Client>) -> Kind {
    Kind { name, make }
}

fn ours(setup: &Setup, adapt: Adapt) -> Ours {
    Ours::new(setup.ceiling, setup.burst, adapt)
}

fn line(pacer: impl Pacer + 'static) -> Box<dyn Client> {
    Box::new(Line::new(pacer))
}

/// A limiter as the simulation drives it. Callers are numbers; each asks, is let go once, and asks again after its answer.
pub(crate) trait Client {
    /// A caller wants to send.
    fn ask(&mut self, now: At, caller: usize, todo: &mut Todo);

    /// The time has come that was set for `caller`.
    fn wake(&mut self, now: At, caller: usize, todo: &mut Todo);

    /// The answer to what `caller` sent.
    fn answer(&mut self, now: At, caller: usize, reply: &Reply, todo: &mut Todo);

    /// `caller` gave up waiting for its answer.
    fn give_up(&mut self, now: At, caller: usize, todo: &mut Todo);

    /// Requests a second that it would let go, for the trace.
    fn rate(&mut self, now: At) -> f64;
}

/// What a client wants done.
#[derive(Debug, Default)]
pub(crate) struct Todo {
    /// Callers whose requests leave now.
    pub(crate) sends: Vec<usize>,
    /// When to wake whom.
    pub(crate) alarms: Vec<(At, usize)>,
}
