use std::time::Duration;

use super::{EVIDENCE, Refused, tally::rate};
use crate::engine::time::Time;

/// A wait the server names is a whole number of these, so it may end that much later than the server opens.
const GRAIN: Duration = Duration::from_secs(1);

/// A refusal and all that follow from it, until a request that left afterwards is accepted.
#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy)]
pub(super) struct Episode {
    /// The rate when it began.
    pub(super) before: u64,
    pub(super) round_trip: Duration,
    /// What it cost.
    pub(super) refusals: u64,
    pub(super) paused: Duration,
    /// How many pauses of our own choice it took.
    pub(super) tries: u32,
    /// How much later than the server opened the last pause may have ended.
    pub(super) late: Duration,
    /// The server named the last pause.
    pub(super) told: bool,
    /// From the end of the last pause to the answer of the one request that tested it.
    pub(super) tested: Duration,
    /// Kept while nothing is known: what the first flight that met a refusal says.
    volley: Option<Volley>,
}

/// The requests that were under way when the first refusal came, and had left after the refused one.
#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy)]
struct Volley {
    first: u64,
    span: Duration,
    accepted: u64,
}

impl Episode {
    pub(super) fn new(now: Time, before: u64, refusal: &Refused, first: bool) -> Self {
        let round_trip = now.since(refusal.sent);
        Self {
            before,
            round_trip,
            volley: first.then_some(Volley {
                first: refusal.number,
                span: round_trip,
                accepted: 0,
            }),
            ..Self::NONE
        }
    }

    /// One that cost nothing.
    pub(super) const NONE: Self = Self {
        before: 0,
        round_trip: Duration::ZERO,
        refusals: 0,
        paused: Duration::ZERO,
        tries: 0,
        late: Duration::ZERO,
        told: false,
        tested: Duration::ZERO,
        volley: None,
    };

    /// One more pause of it. `told`: the server named it.
    pub(super) fn pause(&mut self, wait: Duration, told: bool) {
        self.told = told;
        self.paused = self.paused.saturating_add(wait);
        if told {
            self.late = self.late.max(wait.min(GRAIN));
        } else {
            self.late = wait;
            self.tries = self.tries.saturating_add(1);
        }
    }

    /// Request `number`, under way at the last refusal, was accepted.
    pub(super) const fn accepted_under_way(&mut self, number: u64) {
        if let Some(volley) = &mut self.volley
            && number >= volley.first
        {
            volley.accepted += 1;
        }
    }

    /// How many of those were accepted, if that is counted.
    pub(super) fn accepted(&self) -> u64 {
        self.volley.map_or(0, |volley| volley.accepted)
    }

    /// At what rate the server accepted while it refused, if enough was under way to tell.
    pub(super) fn volley_rate(&self, token: i128) -> Option<u64> {
        let volley = self.volley.filter(|volley| volley.accepted >= EVIDENCE)?;
        Some(rate(volley.accepted, volley.span, token))
    }
}
