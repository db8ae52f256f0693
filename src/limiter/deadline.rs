use std::time::Duration;

use tokio::time::Instant;

/// When a request has to be sent at the latest. Put it into the request's extensions.
///
/// A request whose turn comes later is refused as soon as that is known, at the latest at that time
/// ([`is_wait_too_long`](crate::Error::is_wait_too_long), [`is_timeout`](crate::Error::is_timeout)), and takes nothing.
///
/// With [`ThrottleLayer`](crate::ThrottleLayer) the wait in line is over before the request is known: a request with a deadline of 500 ms
/// behind a wait of 5 s is refused after 5 s. What is seen is whether the time has passed, and any wait after that. Bound the wait in
/// line by [`max_wait`](crate::ThrottleLayer::max_wait).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Deadline(Instant);

impl Deadline {
    /// So long from now, by tokio's clock. A time beyond what the clock can tell is a year from now.
    #[must_use]
    pub fn after(wait: Duration) -> Self {
        Self(super::clock::after(wait))
    }

    pub(crate) const fn instant(self) -> Instant {
        self.0
    }
}

impl From<Instant> for Deadline {
    fn from(at: Instant) -> Self {
        Self(at)
    }
}

impl From<std::time::Instant> for Deadline {
    fn from(at: std::time::Instant) -> Self {
        Self(Instant::from_std(at))
    }
}
