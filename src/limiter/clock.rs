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
        self.read(instant())
    }

    /// The engine's time at `at`, if the machine does not sleep till then; zero if that is before it began.
    pub(crate) fn time(&self, at: Instant) -> Time {
        let now = instant();
        let time = self.read(now);
        match at.checked_duration_since(now) {
            Some(later) => time.after(later),
            None => Time::ZERO.after(time.since(Time::ZERO).saturating_sub(now - at)),
        }
    }

    /// The instant for a timer that should ring at `at`, or half a minute from now if that is sooner.
    pub(crate) fn alarm(&self, at: Time) -> Instant {
        let now = instant();
        now + at.since(self.read(now)).min(FAR)
    }

    /// The engine's time `now`.
    fn read(&self, now: Instant) -> Time {
        let awake = now.saturating_duration_since(*self.inner.origin.get_or_init(|| now));
        let awake = Time::ZERO.after(awake).as_nanos();
        Time::from_nanos(awake.saturating_add(self.inner.slept.by(awake)))
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
    use std::{cell::Cell, future::poll_fn, pin::pin};

    use super::*;
    use crate::limiter::alarm::Alarm;

    thread_local! {
        static ASLEEP: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    }

    fn readings() -> Option<(Duration, Duration)> {
        let awake = Duration::from_secs(1_000);
        Some((awake, awake + ASLEEP.get()))
    }

    fn clock() -> Clock {
        let inner = Inner {
            slept: Slept::reading(readings),
            ..Inner::default()
        };
        let clock = Clock {
            inner: Arc::new(inner),
        };
        assert_eq!(clock.now(), Time::ZERO);
        clock
    }

    async fn awake_for(seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    #[track_caller]
    fn assert_seconds(clock: &Clock, seconds: f64) {
        let now = clock.now().since(Time::ZERO).as_secs_f64();
        assert!((seconds..seconds + 0.02).contains(&now), "{now}");
    }

    #[tokio::test(start_paused = true)]
    async fn time_goes_on_while_the_machine_sleeps_and_is_noticed_within_a_second() {
        let clock = clock();
        awake_for(5).await;
        // What is asked of the future makes nobody look later.
        clock.time(instant() + Duration::from_secs(365 * 86_400));
        assert_seconds(&clock, 5.0);
        ASLEEP.set(Duration::from_secs(8 * 3_600));
        awake_for(1).await;
        assert_seconds(&clock, 28_806.0);
        // What goes back is not believed.
        ASLEEP.set(Duration::ZERO);
        awake_for(2).await;
        assert_seconds(&clock, 28_808.0);
    }

    #[tokio::test(start_paused = true)]
    async fn an_instant_is_as_far_away_as_it_was_before_the_machine_slept() {
        let clock = clock();
        ASLEEP.set(Duration::from_secs(100));
        awake_for(2).await;
        let (now, second) = (clock.now(), Duration::from_secs(1));
        assert_eq!(clock.time(instant() + second), now.after(second));
        assert_eq!(now.since(clock.time(instant() - second)), second);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_notices_within_half_a_minute_that_the_machine_has_slept() {
        let clock = clock();
        let at = Time::ZERO.after(Duration::from_secs(900));
        let mut alarm = pin!(Alarm::default());
        let mut ringing = pin!(poll_fn(|cx| alarm.as_mut().poll_at(&clock, at, cx)));
        let minutes = Duration::from_secs(5 * 60);
        let early = tokio::time::timeout(minutes, ringing.as_mut()).await;
        assert!(early.is_err());
        ASLEEP.set(Duration::from_secs(8 * 3_600));
        let woke = instant();
        ringing.await;
        assert!(woke.elapsed() <= Duration::from_secs(30) + Duration::from_millis(2));
    }
}
