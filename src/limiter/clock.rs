//! The only place that reads a clock.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime},
};

use tokio::time::Instant;

use super::slept::Slept;
use crate::engine::Time;

/// The furthest a timer is set; longer waits set it again. A timer stands still while the machine sleeps, so this is also how late a
/// waiting task may notice that it has slept.
const FAR: Duration = Duration::from_secs(30);

/// tokio's clock, counted from its first reading, so that `tokio::time::pause` works and building a limiter needs no runtime; and the time
/// the machine has slept since, which that clock leaves out. Clones are the same clock.
#[derive(Debug, Clone, Default)]
pub(crate) struct Clock {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    origin: OnceLock<Instant>,
    slept: Slept,
}

impl Clock {
    /// A clock that counts from now.
    pub(crate) fn started() -> Self {
        let clock = Self::default();
        clock.now();
        clock
    }

    pub(crate) fn now(&self) -> Time {
        self.time(instant())
    }

    /// The engine's time at `at`, if the machine does not sleep till then; zero if that is before it began.
    pub(crate) fn time(&self, at: Instant) -> Time {
        let origin = *self.inner.origin.get_or_init(instant);
        let awake = at.saturating_duration_since(origin);
        Time::ZERO.after(awake).after(self.inner.slept.by(awake))
    }

    /// The instant for a timer that should ring at `at`, or half a minute from now if that is sooner.
    pub(crate) fn alarm(&self, at: Time) -> Instant {
        let now = instant();
        now + at.since(self.time(now)).min(FAR)
    }
}

/// The instant after so long a wait, or a year from now if that is sooner.
pub(super) fn after(wait: Duration) -> Instant {
    instant() + wait.min(Duration::from_secs(365 * 86_400))
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static ASLEEP: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }

    fn readings() -> Option<(Duration, Duration)> {
        let awake = Duration::from_secs(1_000);
        Some((awake, awake + ASLEEP.get()))
    }

    #[tokio::test(start_paused = true)]
    async fn time_goes_on_while_the_machine_sleeps_and_is_noticed_within_a_second() {
        let inner = Inner {
            slept: Slept::reading(readings),
            ..Inner::default()
        };
        let clock = Clock {
            inner: Arc::new(inner),
        };
        let seconds = |clock: &Clock| clock.now().since(Time::ZERO).as_secs_f64();
        assert_eq!(seconds(&clock), 0.0);
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!((5.0..5.01).contains(&seconds(&clock)));
        ASLEEP.set(Duration::from_secs(8 * 3_600));
        tokio::time::sleep(Duration::from_secs(1)).await;
        let after = seconds(&clock);
        assert!((28_806.0 - 1.0..28_806.01).contains(&after), "{after}");
        // What goes back is not believed.
        ASLEEP.set(Duration::ZERO);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!((after + 1.99..after + 2.02).contains(&seconds(&clock)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_is_set_again_at_least_twice_a_minute() {
        let clock = Clock::started();
        let alarm = clock.alarm(Time::MAX);
        assert!(alarm <= instant() + Duration::from_secs(30));
    }
}
