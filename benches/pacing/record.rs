//! What happened in a run, counted at the server.

use std::time::Duration;

use crate::server::{At, Rule};

/// The length of a cell.
const CELL: Duration = Duration::from_millis(100);

/// One run.
pub(crate) struct Record {
    /// For each client, what arrived in each tenth of a second.
    pub(crate) cells: Vec<Vec<Cell>>,
    /// For each client, its own idea of its rate, each second.
    pub(crate) rates: Vec<Vec<f64>>,
    /// What the server allowed in each tenth of a second.
    pub(crate) allowed: Vec<f64>,
    /// Requests that left while demand was low.
    pub(crate) left: u64,
    /// Those of them that had to wait at all.
    pub(crate) waiters: u64,
    /// The longest wait of those.
    pub(crate) longest: Duration,
    /// The server's remark.
    pub(crate) note: String,
}

/// Requests by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) accepted: u32,
    pub(crate) refused: u32,
}

impl Cell {
    pub(crate) const fn sent(self) -> u32 {
        self.accepted + self.refused
    }
}

impl Record {
    pub(crate) fn new(clients: usize, end: At) -> Self {
        let cells = end.as_millis().div_ceil(CELL.as_millis()) as usize;
        Self {
            cells: vec![vec![Cell::default(); cells]; clients],
            rates: vec![Vec::new(); clients],
            allowed: vec![0.0; cells],
            left: 0,
            waiters: 0,
            longest: Duration::ZERO,
            note: String::new(),
        }
    }

    pub(crate) fn arrived(&mut self, client: usize, at: At, accepted: bool) {
        let cell = &mut self.cells[client][index(at)];
        if accepted {
            cell.accepted += 1;
        } else {
            cell.refused += 1;
        }
    }

    pub(crate) fn waited(&mut self, wait: Duration) {
        self.left += 1;
        self.waiters += u64::from(!wait.is_zero());
        self.longest = self.longest.max(wait);
    }

    pub(crate) fn close(&mut self, rule: Box<dyn Rule>) {
        for (cell, allowed) in self.allowed.iter_mut().enumerate() {
            let from = CELL * cell as u32;
            *allowed = rule.allowed(from, from + CELL);
        }
        self.note = rule.note();
    }

    /// All clients together, from `from` to `to`.
    pub(crate) fn sum(&self, from: At, to: At) -> Cell {
        (0..self.cells.len())
            .map(|client| self.sum_of(client, from, to))
            .fold(Cell::default(), Cell::plus)
    }

    /// One client, from `from` to `to`.
    pub(crate) fn sum_of(&self, client: usize, from: At, to: At) -> Cell {
        let cells = &self.cells[client];
        let range = index(from)..index(to).min(cells.len());
        cells[range]
            .iter()
            .copied()
            .fold(Cell::default(), Cell::plus)
    }

    /// The part of what was allowed that was accepted.
    pub(crate) fn share(&self, from: At, to: At) -> f64 {
        let range = index(from)..index(to).min(self.allowed.len());
        let allowed: f64 = self.allowed[range].iter().sum();
        f64::from(self.sum(from, to).accepted) / allowed
    }

    /// The end of the first `length` that `good` is true of, which ends at `from` at the earliest and before `to`.
    pub(crate) fn first(
        &self,
        length: Duration,
        from: At,
        to: At,
        good: impl Fn(At, At) -> bool,
    ) -> Option<At> {
        let ends = (index(from.max(length))..=index(to)).map(|cell| CELL * cell as u32);
        ends.into_iter().find(|&end| good(end - length, end))
    }
}

impl Cell {
    const fn plus(self, other: Self) -> Self {
        Self {
            accepted: self.accepted + other.accepted,
            refused: self.refused + other.refused,
        }
    }
}

fn index(at: At) -> usize {
    (at.as_millis() / CELL.as_millis()) as usize
}
