//! From what happened to figures.

use std::time::Duration;

use crate::{
    record::{Cell, Record},
    row::{Bars, Drop, Setup},
    server::At,
};

/// The figures of one run.
#[derive(Debug, Clone)]
pub(crate) struct Score {
    /// Accepted for each allowed, unless less was wanted.
    pub(crate) share: Option<f64>,
    /// Refused for each sent.
    pub(crate) refused: f64,
    pub(crate) refusals: u32,
    /// The time that is scored.
    pub(crate) scored: Duration,
    /// When the share of the last 5 s first passed 0.9, and the refusals before that.
    pub(crate) reached: Option<(At, u32)>,
    /// Refusals before the time that is scored.
    pub(crate) early: u32,
    /// Refusals in all.
    pub(crate) all: u32,
    pub(crate) drop: Option<AfterDrop>,
    /// How many waited at all, and the longest wait, if there was a time of low demand.
    pub(crate) quiet: Option<(u64, Duration)>,
    /// The part of each client in what was accepted in the last 100 s.
    pub(crate) split: Vec<f64>,
    /// The server's remark.
    pub(crate) note: String,
}

/// How a fall and a rise were met.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AfterDrop {
    /// Time from the fall until the requests of one second are within 1.05 of the new limit.
    pub(crate) under: Option<Duration>,
    /// Refused for each sent in the 30 s after the fall.
    pub(crate) refused: f64,
    /// The share from 20 s after the rise on.
    pub(crate) share: f64,
}

/// How a run is scored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scoring {
    span: (At, At),
    end: At,
    pub(crate) bars: Bars,
}

impl Scoring {
    pub(crate) const fn of(setup: &Setup) -> Self {
        Self {
            span: setup.span,
            end: setup.world.end,
            bars: setup.bars,
        }
    }

    pub(crate) fn score(&self, record: &Record) -> Score {
        let (from, to) = self.span;
        let scored = record.sum(from, to);
        let reached = record.first(Duration::from_secs(5), At::ZERO, self.end, |start, end| {
            record.share(start, end) > 0.9
        });
        let late = self.end - Duration::from_secs(100);
        let accepted = record.sum(late, self.end).accepted;
        let parts = (0..record.cells.len()).map(|client| {
            let own = record.sum_of(client, late, self.end).accepted;
            f64::from(own) / f64::from(accepted.max(1))
        });
        Score {
            share: (!self.bars.nobody_waits).then(|| record.share(from, to)),
            refused: refused(scored),
            refusals: scored.refused,
            scored: to - from,
            reached: reached.map(|at| (at, record.sum(At::ZERO, at).refused)),
            early: record.sum(At::ZERO, from).refused,
            all: record.sum(At::ZERO, self.end).refused,
            drop: self.bars.drop.map(|drop| self.after(drop, record)),
            quiet: (record.left > 0).then_some((record.waiters, record.longest)),
            split: parts.collect(),
            note: record.note.clone(),
        }
    }

    fn after(&self, drop: Drop, record: &Record) -> AfterDrop {
        let second = Duration::from_secs(1);
        let under = record.first(second, drop.fall + second, drop.rise, |start, end| {
            f64::from(record.sum(start, end).sent()) <= 1.05 * drop.low
        });
        let soon = drop.fall + Duration::from_secs(30);
        let settled = drop.rise + Duration::from_secs(20);
        AfterDrop {
            under: under.map(|at| at - drop.fall),
            refused: refused(record.sum(drop.fall, soon)),
            share: record.share(settled, self.end),
        }
    }
}

fn refused(cell: Cell) -> f64 {
    f64::from(cell.refused) / f64::from(cell.sent().max(1))
}
