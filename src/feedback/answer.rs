//! What one response said, as plain values.

use std::time::Duration;

use super::{Budget, Malformed};

/// Most budgets kept from one response; spent ones are kept first.
pub const MAX_BUDGETS: usize = 16;

/// Most entries kept in [`Feedback::malformed`]; the rest are only counted.
pub const MAX_MALFORMED: usize = 8;

/// Everything one response head said about the server's limits.
///
/// The default value means that the server said nothing. Where there are no headers to read, as with a database or a queue,
/// [`accepted`](Self::accepted) and [`refusal`](Self::refusal) say how a request went.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Feedback {
    /// The response is a refusal for rate reasons: a 429; a 403, 418, 420 or 503 with `Retry-After`, with another explicit
    /// wait, or with a spent budget; or gRPC status 8 (`RESOURCE_EXHAUSTED`) under any HTTP status.
    pub refused: bool,
    /// The wait the server asked for in so many words (`Retry-After` and its cousins).
    ///
    /// Present only on refusals and redirects: RFC 9110 section 10.2.3 gives `Retry-After` no meaning on a success, and
    /// servers do put polling hints there. `None` also when the field could not be read.
    pub hold: Option<Hold>,
    /// The counters the server showed, at most [`MAX_BUDGETS`]. A budget that came under two names is here once.
    pub budgets: Vec<Budget>,
    /// Rate fields that could not be read and were passed over, at most [`MAX_MALFORMED`].
    pub malformed: Vec<Malformed>,
    /// How many rate fields could not be read, including those beyond the list.
    pub malformed_count: u32,
    /// Whom the refusal concerns, where the server says so.
    pub scope: Scope,
    /// The response came from a cache (`Age` above zero), so its counters speak of somebody's past request and were
    /// dropped (draft-ietf-httpapi-ratelimit-headers-10, section 7.3).
    pub cached: bool,
}

/// An explicit wait, counted from the arrival of the response head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Hold {
    /// How long to send nothing. Zero when the server said "at once" or named an instant in the past: no hint, so a
    /// client should fall back on its own back-off. Values too large to hold are [`Duration::MAX`].
    pub wait: Duration,
    /// The field that set it, in lower case, such as `retry-after`; the one with the longest wait if there were several.
    /// [`Hold::APPLICATION`] if no field did. Only for records.
    pub field: &'static str,
}

/// Whom a limit concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Scope {
    /// The response does not say.
    #[default]
    Unspecified,
    /// This caller's own share of one route or resource (`X-RateLimit-Scope: user`).
    User,
    /// A resource shared with other callers: the own counters may look open (`X-RateLimit-Scope: shared`).
    Shared,
    /// Every route of the service (`X-RateLimit-Global: true` or `X-RateLimit-Scope: global`).
    Global,
}

impl Hold {
    /// Shown as the field of a wait that the application named.
    pub const APPLICATION: &'static str = "(application)";

    /// A wait that the application knows of, such as one that stands in the body of a refusal. It counts on refusals only.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tower_throttle::{Limiter, Quota, ThrottleLayer, feedback::Hold};
    ///
    /// let limiter = Limiter::new(Quota::per_second(10))?;
    /// let layer = ThrottleLayer::new(limiter).classify(|_, headers, feedback| {
    ///     if headers.contains_key("x-overloaded") {
    ///         feedback.refused = true;
    ///         feedback.hold = Some(Hold::new(Duration::from_secs(30)).field("x-overloaded"));
    ///     }
    /// });
    /// # Ok::<(), tower_throttle::ConfigError>(())
    /// ```
    #[must_use]
    pub const fn new(wait: Duration) -> Self {
        Self {
            wait,
            field: Self::APPLICATION,
        }
    }

    /// Says which field names the wait, for records.
    #[must_use]
    pub const fn field(mut self, field: &'static str) -> Self {
        self.field = field;
        self
    }
}

impl Feedback {
    /// The request was accepted, and nothing was said about limits. The default value.
    #[must_use]
    pub fn accepted() -> Self {
        Self::default()
    }

    /// The request was refused for its rate. `wait` is how long to send nothing, counted from now; without one, or if it is zero,
    /// the limiter falls back on its own back-off, which grows while nothing is accepted.
    #[must_use]
    pub fn refusal(wait: Option<Duration>) -> Self {
        Self {
            refused: true,
            hold: wait.map(Hold::new),
            ..Self::default()
        }
    }

    /// The wait this response asks for, or `None` if it asks for none.
    ///
    /// A positive [`hold`](Self::hold) counts before any reset (draft-10 section 7: `Retry-After` must win). Without one
    /// it is the largest reset among the spent budgets, whatever the status. A zero hold with nothing spent gives
    /// `Some(Duration::ZERO)`. `None` on a [`refused`](Self::refused) response means "use your own back-off".
    pub fn wait(&self) -> Option<Duration> {
        match self.hold {
            Some(hold) if !hold.wait.is_zero() => Some(hold.wait),
            Some(hold) => Some(self.spent_reset().unwrap_or(hold.wait)),
            None => self.spent_reset(),
        }
    }

    /// The reset to wait for on a refusal without a positive hold, or `None` if there is no such reset.
    ///
    /// The largest reset among the spent request budgets, else among all spent ones. If none is spent, another limit is
    /// at work than the ones shown, and the smallest positive reset is the nearest instant the server named.
    pub fn reset_on_refusal(&self) -> Option<Duration> {
        if !self.refused || self.hold.is_some_and(|hold| !hold.wait.is_zero()) {
            return None;
        }
        let spent = self
            .budgets
            .iter()
            .filter(|budget| budget.is_spent() && budget.paces_requests());
        let spent = spent.filter_map(|budget| budget.reset).max();
        spent.or_else(|| self.spent_reset()).or_else(|| {
            let resets = self.budgets.iter().filter_map(|budget| budget.reset);
            resets.filter(|reset| !reset.is_zero()).min()
        })
    }

    fn spent_reset(&self) -> Option<Duration> {
        let spent = self.budgets.iter().filter(|budget| budget.is_spent());
        spent.filter_map(|budget| budget.reset).max()
    }
}
