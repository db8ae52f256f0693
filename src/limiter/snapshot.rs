use std::time::Duration;

use crate::engine::{Adaptation, Cause, Quota, View};

/// What a limiter looks like at one instant.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Snapshot {
    /// The limiter's name.
    pub name: String,
    /// Tokens there now. Zero during a pause.
    pub level: f64,
    /// The rate in use, in units a second: the configured one, or lower by what the server said.
    pub rate: f64,
    /// The configured rate, in units a second. This and the level, the rate and the burst are of the first quota.
    pub configured_rate: f64,
    /// The configured burst.
    pub burst: u32,
    /// All quotas, in the order in which they were given.
    pub quotas: Vec<QuotaState>,
    /// How many callers wait in line.
    pub queue_len: usize,
    /// Cost granted to callers that have not sent yet.
    pub held: u64,
    /// Cost of the requests sent through a layer and not answered yet.
    pub in_flight: u64,
    /// What is left of the pause under way, and what set it.
    pub pause: Option<(Duration, Cause)>,
    /// The budgets the server announced that still run.
    pub windows: Vec<Budget>,
    /// How the rate came about.
    pub adaptation: Adaptation,
    /// All of this in one word.
    pub regime: Regime,
    /// What happened since the limiter was made.
    pub counters: Counters,
    /// The header fields that could not be read, and how often. At most 32 of them.
    pub unreadable: Vec<(String, u64)>,
}

/// One of a limiter's quotas.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct QuotaState {
    /// Its name.
    pub name: String,
    /// What is configured.
    pub quota: Quota,
    /// Units there now; negative while a debt is repaid.
    pub level: f64,
}

/// A budget the server announced.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Budget {
    /// The policy's name, if the server gave one.
    pub name: Option<String>,
    /// What the server allows in the whole window.
    pub limit: Option<u64>,
    /// The length of the window, if the server said it.
    pub window: Option<Duration>,
    /// What is left of it, as far as is known. `None`: only the limit is.
    pub left: Option<u64>,
    /// Time until it is renewed.
    pub reset: Duration,
}

/// What a limiter is doing.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Regime {
    /// The bucket is full and nobody waits.
    Idle,
    /// Requests leave as they come.
    Pacing,
    /// Callers wait in line.
    Queueing,
    /// Nothing is sent: the server, or the application, asked for a pause.
    Paused,
}

/// Events counted since the limiter was made.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Requests and permits let through.
    pub sent: u64,
    /// Callers told no.
    pub refused: u64,
    /// Callers that left before their turn.
    pub cancelled: u64,
    /// Requests the server refused because of their rate.
    pub throttled: u64,
    /// Pauses begun or extended.
    pub pauses: u64,
    /// Header fields that could not be read.
    pub malformed: u64,
    /// Requests sent in a trial run though they would have had to wait.
    pub would_wait: u64,
}

impl Snapshot {
    pub(super) fn new(
        name: &str,
        quotas: &[Box<str>],
        view: View,
        now: crate::engine::Time,
        counters: Counters,
        unreadable: Vec<(String, u64)>,
    ) -> Self {
        let counters = Counters {
            sent: view.sent,
            would_wait: view.would_wait,
            ..counters
        };
        let first = view.quotas.first();
        let configured_rate = first.map_or(0.0, |first| first.quota.rate());
        let burst = first.map_or(0, |first| first.quota.burst_size());
        let pause = view
            .pause
            .map(|pause| (pause.until.since(now), pause.cause));
        let regime = match () {
            () if pause.is_some() || view.halted => Regime::Paused,
            () if view.queue_len > 0 => Regime::Queueing,
            () if view.level < f64::from(burst) => Regime::Pacing,
            () => Regime::Idle,
        };
        Self {
            name: name.to_owned(),
            level: view.level,
            rate: view.rate,
            configured_rate,
            burst,
            quotas: (quotas.iter().zip(&view.quotas))
                .map(|(name, view)| QuotaState {
                    name: name.to_string(),
                    quota: view.quota,
                    level: view.level,
                })
                .collect(),
            queue_len: view.queue_len,
            held: view.held,
            in_flight: view.in_flight,
            pause,
            windows: (view.windows.into_iter())
                .map(|window| Budget {
                    reset: window.reset.since(now),
                    left: (!window.is_shape()).then_some(window.left),
                    name: window.name.map(String::from),
                    limit: window.limit,
                    window: window.window,
                })
                .collect(),
            adaptation: view.adaptation,
            regime,
            counters,
            unreadable,
        }
    }
}
