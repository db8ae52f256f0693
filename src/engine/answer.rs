use std::time::Duration;

use super::{learned::Adaptation, quota::Quota, time::Time, windows::Window};

/// What an answer says about limits, in the engine's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Answer<'a> {
    /// The server refused the request because of its rate.
    pub refused: bool,
    /// How long the server asks to wait. Only read on a refusal; zero says nothing.
    pub wait: Option<Duration>,
    /// At least this long a pause follows a refusal that names no usable wait.
    pub least_backoff: Duration,
    /// The refusal is about a resource shared with others: it says nothing about our own rate.
    pub shared: bool,
    /// The budgets the answer speaks of.
    pub readings: &'a [Reading<'a>],
}

/// One budget in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading<'a> {
    /// The policy's name, if it has one. Readings of one name, partition and window speak of one budget.
    pub name: Option<&'a str>,
    /// What the budget is for within its policy, as the server names it.
    pub partition: Option<&'a [u8]>,
    /// What the whole window allows.
    pub limit: Option<u64>,
    /// What is left.
    pub remaining: Option<u64>,
    /// Time until the budget is renewed.
    pub reset: Option<Duration>,
    /// The length of the window.
    pub window: Option<Duration>,
    /// Whether the unit is requests. Other units only stop us when nothing is left.
    pub paces: bool,
}

/// Identifies a request that was sent, from its departure to its answer.
///
/// Numbers follow the order of departure, which is how late answers are told from news.
#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flight {
    pub(super) number: u64,
    pub(super) sent: Time,
    /// What it takes from the budgets while it is in flight: nothing if that is not tracked.
    pub(super) cost: u32,
}

impl Flight {
    /// When it left.
    #[must_use]
    pub const fn sent(&self) -> Time {
        self.sent
    }
}

/// What made the engine hold everything back.
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// The server named a time to wait.
    Server,
    /// The server said that nothing is left until a reset.
    Budget,
    /// The server refused without naming a time, or went on refusing after the waits it named.
    Backoff,
    /// One request tests whether the server accepts again after a [`Backoff`](Self::Backoff). Ends with its answer, or after twice the
    /// time the refusal took.
    Trial,
    /// The application asked for it.
    Penalty,
}

/// A time in which nothing is sent.
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    /// The first instant at which something may be sent again.
    pub until: Time,
    /// What made it.
    pub cause: Cause,
}

/// What changed the rate.
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RateCause {
    /// The server refused a request for its rate: slower until it accepts again.
    Refusal,
    /// It accepts again: the rate is held just under what it accepted between its refusals.
    Measurement,
    /// It went on accepting: a little more is tried.
    Probe,
    /// It said what is left of a budget.
    Budget,
}

/// What an answer changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Correction {
    /// The request left before the last refusal was known: its answer is no news about the rate.
    pub stale: bool,
    /// A pause began or became longer.
    pub paused: Option<Pause>,
    /// Tokens a second before the answer.
    pub rate_before: f64,
    /// Tokens a second after it.
    pub rate_after: f64,
    /// What changed the rate, if it changed.
    pub because: Option<RateCause>,
}

/// A look at one quota.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuotaView {
    /// What is configured.
    pub quota: Quota,
    /// Units there now; negative while a debt is repaid.
    pub level: f64,
}

/// A look at the engine.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// Tokens there now; negative while a debt is repaid, zero during a pause.
    pub level: f64,
    /// Tokens a second now, with all corrections.
    pub rate: f64,
    /// All quotas, in the order in which they were given.
    pub quotas: Vec<QuotaView>,
    /// Requests that left though they would have had to wait, where nothing is enforced.
    pub would_wait: u64,
    /// How many callers wait.
    pub queue_len: usize,
    /// Cost granted to callers that have not sent yet.
    pub held: u64,
    /// Cost sent and not answered.
    pub in_flight: u64,
    /// Requests sent so far.
    pub sent: u64,
    /// The pause under way.
    pub pause: Option<Pause>,
    /// The application holds everything back; see [`Engine::halt`](super::Engine::halt).
    pub halted: bool,
    /// The budgets the server announced.
    pub windows: Vec<Window>,
    /// How the rate came about.
    pub adaptation: Adaptation,
}
