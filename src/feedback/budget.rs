//! One counter as the server showed it.

use std::time::Duration;

/// The longest window, and the farthest reset, that is believed: a year and a bit, as no server is known to have a longer
/// one. Beyond it lie values in a wrong unit and dates cut short, which would hold a caller for years; such a value is no
/// information ([`Fault::Implausible`](super::Fault::Implausible)). An explicit wait such as `Retry-After` has no such bound.
pub const MAX_WINDOW: Duration = Duration::from_secs(400 * 86_400);

/// One budget of the server: how much there is, how much is left, and when it comes back.
///
/// Every number is a snapshot and advice: servers with several back ends send counters that jump, and a positive
/// `remaining` is no promise (draft-ietf-httpapi-ratelimit-headers-10, section 4.1.1).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Budget {
    /// The policy, bucket or resource named in a value; else what the field name says is counted (`tokens`, `minute`,
    /// `app`); else `None`. Cut at 64 bytes.
    pub name: Option<Box<str>>,
    /// The partition key (`pk`, draft-10 section 3.1.4) that tells two budgets of one name apart, as raw bytes.
    pub partition: Option<Box<[u8]>>,
    /// The whole quota, in [`unit`](Self::unit)s.
    pub limit: Option<u64>,
    /// What is left. Fractions are cut and values below zero are 0; the sentinel -1 is `None`.
    pub remaining: Option<u64>,
    /// What is used, where the server says so.
    pub used: Option<u64>,
    /// Time until the quota comes back, wholly or in part, counted from the response; rounded up, zero if past, at most
    /// [`MAX_WINDOW`].
    pub reset: Option<Duration>,
    /// The length of the window, only where the response says it, at most [`MAX_WINDOW`]. `None` for a calendar month,
    /// which has no fixed length.
    pub window: Option<Duration>,
    /// What is counted.
    pub unit: Unit,
}

/// What a [`Budget`] counts. Only [`Unit::Requests`] can pace requests one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Unit {
    /// Requests, or nothing was said (draft-10 section 3.1.2: the default).
    #[default]
    Requests,
    /// Tokens of a language model.
    Tokens,
    /// Bytes of content (`qu="content-bytes"`).
    Bytes,
    /// A share of the quota; the limit is 100.
    Percent,
    /// Requests under way at one time (`qu="concurrent-requests"`).
    Concurrency,
    /// Seconds of execution time.
    Time,
    /// Anything else: points, cost, images, messages.
    Other,
}

impl Budget {
    /// Nothing is left.
    pub fn is_spent(&self) -> bool {
        self.remaining == Some(0)
    }

    /// The budget counts requests, so it can pace them.
    pub fn paces_requests(&self) -> bool {
        self.unit == Unit::Requests
    }
}
