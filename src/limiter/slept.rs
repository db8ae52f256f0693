use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// How often the clocks are compared, in nanoseconds of being awake.
const OFTEN: u64 = 1_000_000_000;

/// A shorter sleep does not count.
const LEAST: Duration = Duration::from_secs(1);

/// A clock that is slewed may go faster by this part of the time.
const SLEWED: u32 = 1_000;

/// A monotonic clock that stops while the machine sleeps, and one that does not.
type Readings = fn() -> Option<(Duration, Duration)>;

/// How long the machine has slept since the first look. It may be less than it was, but never more.
///
/// On most systems the monotonic clock stands still meanwhile. Linux, Android and Apple's systems have another one that does not: what
/// that one has gained on the first, by more than a clock can be slewed, was sleep.
#[derive(Debug)]
pub(super) struct Slept {
    readings: Readings,
    nanos: AtomicU64,
    /// When to look again, in nanoseconds of being awake.
    next: AtomicU64,
    last: Mutex<Option<(Duration, Duration)>>,
}

impl Slept {
    pub(super) const fn reading(readings: Readings) -> Self {
        Self {
            readings,
            nanos: AtomicU64::new(0),
            next: AtomicU64::new(0),
            last: Mutex::new(None),
        }
    }

    /// Until `awake`, a time by the clock that stops; both in nanoseconds.
    #[inline]
    pub(super) fn by(&self, awake: u64) -> u64 {
        let next = self.next.load(Ordering::Relaxed);
        if awake >= next {
            self.look(next, awake.saturating_add(OFTEN));
        }
        self.nanos.load(Ordering::Relaxed)
    }

    #[cold]
    fn look(&self, next: u64, later: u64) {
        let order = Ordering::Relaxed;
        if (self.next.compare_exchange(next, later, order, order)).is_err() {
            // Somebody else looks; who does not goes on with what is known.
            return;
        }
        let Some((awake, all)) = (self.readings)() else {
            return;
        };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((awake_before, all_before)) = last.replace((awake, all)) {
            let awake = awake.saturating_sub(awake_before);
            let gained = (all.saturating_sub(all_before)).saturating_sub(awake + awake / SLEWED);
            if gained >= LEAST {
                let gained = u64::try_from(gained.as_nanos()).unwrap_or(u64::MAX);
                let slept = self.nanos.load(Ordering::Relaxed).saturating_add(gained);
                self.nanos.store(slept, Ordering::Relaxed);
            }
        }
    }
}

impl Default for Slept {
    fn default() -> Self {
        Self::reading(system)
    }
}

/// The clock that goes on is read first, so that what comes between the two readings makes it no sleep.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn system() -> Option<(Duration, Duration)> {
    use rustix::time::{ClockId, clock_gettime};
    let all = Duration::try_from(clock_gettime(ClockId::Boottime)).ok()?;
    let awake = Duration::try_from(clock_gettime(ClockId::Monotonic)).ok()?;
    Some((awake, all))
}

#[cfg(target_vendor = "apple")]
fn system() -> Option<(Duration, Duration)> {
    use std::{sync::OnceLock, time::Instant};

    use rustix::time::{ClockId, clock_gettime};
    static FIRST: OnceLock<Instant> = OnceLock::new();
    let all = Duration::try_from(clock_gettime(ClockId::Monotonic)).ok()?;
    #[expect(
        clippy::disallowed_methods,
        reason = "real time, also where tokio's is paused"
    )]
    let now = Instant::now();
    Some((
        now.saturating_duration_since(*FIRST.get_or_init(|| now)),
        all,
    ))
}

/// Windows' monotonic clock goes on by itself; of others nothing is known.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
const fn system() -> Option<(Duration, Duration)> {
    None
}
