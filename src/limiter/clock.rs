//! The only place that reads a clock.

use std::{
    sync::OnceLock,
    time::{Duration, SystemTime},
};

use tokio::time::Instant;

use crate::engine::Time;

/// The furthest a timer is set; longer waits set it again.
const FAR: Duration = Duration::from_secs(365 * 86_400);

/// tokio's clock, counted from its first reading, so that `tokio::time::pause` works and building a limiter needs no runtime.
#[derive(Debug, Clone, Default)]
pub(crate) struct Clock {
    origin: OnceLock<Instant>,
}

impl Clock {
    /// A clock that counts from now. Its clones count from the same instant.
    pub(crate) fn started() -> Self {
        let clock = Self::default();
        clock.now();
        clock
    }

    pub(crate) fn now(&self) -> Time {
        let now = instant();
        let origin = *self.origin.get_or_init(|| now);
        Time::ZERO.after(now.saturating_duration_since(origin))
    }

    /// The engine's time at `at`; zero if that is before it began.
    pub(crate) fn time(&self, at: Instant) -> Time {
        let origin = *self.origin.get_or_init(instant);
        Time::ZERO.after(at.saturating_duration_since(origin))
    }

    /// The instant for a timer that should ring at `at`, or a year from now if that is sooner.
    pub(crate) fn alarm(&self, at: Time) -> Instant {
        let now = instant();
        let origin = *self.origin.get_or_init(|| now);
        let wait = at.since(Time::ZERO.after(now.saturating_duration_since(origin)));
        if wait > FAR {
            now + FAR
        } else {
            origin
                .checked_add(at.since(Time::ZERO))
                .unwrap_or(now + FAR)
        }
    }
}

/// The instant after so long a wait, or a year from now if that is sooner.
pub(super) fn after(wait: Duration) -> Instant {
    instant() + wait.min(FAR)
}

/// Calendar time, used only to read the absolute times in headers.
pub(crate) fn wall() -> SystemTime {
    #[expect(clippy::disallowed_methods, reason = "the one place")]
    SystemTime::now()
}

fn instant() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "the one place")]
    Instant::now()
}
