//! The servers of the table, with what is asked of a client that meets them.

mod bars;
mod maker;

use crate::{rng::Rng, server::At, world::World};

pub(crate) use bars::{Bars, Drop};

use maker::Maker;

/// The limit of all servers but the slow ones, unless the command line names another.
pub(crate) const LIMIT: u32 = 50;

/// Runs last this long.
pub(crate) const END: At = At::from_secs(300);
/// They are scored from here on.
pub(crate) const START: At = At::from_secs(30);

/// One server.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    make: fn(&mut Maker) -> Setup,
}

/// Everything one run is made of, but the clients.
pub(crate) struct Setup {
    pub(crate) world: World,
    /// When each of the clients starts, which know nothing of each other.
    pub(crate) starts: Vec<At>,
    /// The client's own ceiling, requests a second.
    pub(crate) ceiling: u32,
    pub(crate) burst: u32,
    /// What a user who knows the server would set.
    pub(crate) right: f64,
    /// What is scored.
    pub(crate) span: (At, At),
    pub(crate) bars: Bars,
}

impl Row {
    /// `limit` is the server's, in requests a second; its burst, its window and the client's ceiling go with it.
    pub(crate) fn setup(&self, limit: u32, seed: u64) -> Setup {
        (self.make)(&mut Maker::new(limit, Rng::new(seed, self.name)))
    }
}

impl Setup {
    pub(crate) fn ceiling(&self) -> f64 {
        f64::from(self.ceiling)
    }

    pub(crate) fn burst(&self) -> f64 {
        f64::from(self.burst)
    }
}

const fn row(name: &'static str, make: fn(&mut Maker) -> Setup) -> Row {
    Row { name, make }
}

/// Those that a client must be able to deal with.
pub(crate) const ROWS: &[Row] = &[
    row("bucket", Maker::bucket),
    row("bucket+ra", Maker::bucket_telling),
    row("tight", Maker::tight),
    row("window", Maker::window),
    row("window+ra", Maker::window_telling),
    row("sliding", Maker::sliding),
    row("sliding+ra", Maker::sliding_telling),
    row("slow-window", Maker::slow_window),
    row("slow-bucket", Maker::slow_bucket),
    row("headers-counters", Maker::counters),
    row("headers-policies", Maker::policies),
    row("shared", Maker::shared),
    row("drop", Maker::drop),
    row("flaky", Maker::flaky),
    row("sparse", Maker::sparse),
];

/// Those it was not made for.
pub(crate) const ODD_ROWS: &[Row] = &[
    row("moody", Maker::moody),
    row("places", Maker::places),
    row("late-refusals", Maker::late_refusals),
    row("restless", Maker::restless),
    row("twins", Maker::twins),
    row("newcomer", Maker::newcomer),
    row("pulse", Maker::pulse),
];
