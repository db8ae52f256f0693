use std::{error::Error, fmt, time::Duration};

/// The longest period a quota may have: 2^62 ns, about 146 years. It keeps every product of the bucket's arithmetic inside 128 bits.
const MAX_PERIOD: Duration = Duration::from_nanos(1 << 62);

/// A rate and a burst: so many units each period, and how many may leave at once after a quiet time.
///
/// A quota describes a *token bucket*: it starts full with `burst` tokens (or with [fewer](Self::initial)), refills continuously at
/// `amount / period` and never holds more than `burst`. In any window of length `W` it lets through at most `burst + amount * W / period` units. So `per_minute(15)`
/// with `burst(15)` can send 29 in the first minute: choose a small burst where the server counts strictly.
///
/// The default burst is 1: requests leave evenly spaced.
///
/// Values are checked where the limiter is built, so that a quota read from a configuration file gives an error and no panic. It reads
/// and prints as people write it: `"10/s, burst 20"`; see [`FromStr`](#impl-FromStr-for-Quota). With the feature `serde` it is
/// (de)serialised so, and validated.
///
/// ```
/// use std::time::Duration;
/// use tower_throttle::Quota;
///
/// let ten_a_second = Quota::per_second(10).burst(20);
/// let one_each_two_seconds = Quota::new(1, Duration::from_secs(2));
/// assert!(ten_a_second.validate().is_ok());
/// assert!(Quota::per_second(0).validate().unwrap_err().to_string().contains("amount"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Quota {
    amount: u32,
    period: Duration,
    burst: u32,
    /// `None`: the bucket starts full.
    initial: Option<u32>,
    strict: bool,
}

impl Quota {
    /// `amount` units each `period`, burst 1.
    #[must_use]
    pub const fn new(amount: u32, period: Duration) -> Self {
        Self {
            amount,
            period,
            burst: 1,
            initial: None,
            strict: false,
        }
    }

    /// Never more than `amount` units in *any* stretch of time of length `window`, as servers count that keep a log of requests. All of
    /// it may leave at once.
    ///
    /// What left is counted in slots of a 64th of the window, each until it is surely over; so of the quota up to a 64th is not used.
    /// This is a count, not a rate: add a second quota to spread requests over the window. [`burst`](Self::burst) does not apply.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tower_throttle::{Limiter, Quota};
    ///
    /// let limiter = Limiter::builder()
    ///     .quota("second", Quota::per_second(10).burst(10))
    ///     .quota("daily", Quota::at_most(50_000, Duration::from_secs(86_400)))
    ///     .build()?;
    /// # Ok::<(), tower_throttle::ConfigError>(())
    /// ```
    #[must_use]
    pub const fn at_most(amount: u32, window: Duration) -> Self {
        Self {
            amount,
            period: window,
            burst: amount,
            initial: None,
            strict: true,
        }
    }

    /// `amount` units each second, burst 1.
    #[must_use]
    pub const fn per_second(amount: u32) -> Self {
        Self::new(amount, Duration::from_secs(1))
    }

    /// `amount` units each minute, burst 1.
    #[must_use]
    pub const fn per_minute(amount: u32) -> Self {
        Self::new(amount, Duration::from_secs(60))
    }

    /// `amount` units each hour, burst 1.
    #[must_use]
    pub const fn per_hour(amount: u32) -> Self {
        Self::new(amount, Duration::from_secs(3_600))
    }

    /// `amount` units each 24 hours, burst 1.
    #[must_use]
    pub const fn per_day(amount: u32) -> Self {
        Self::new(amount, Duration::from_secs(86_400))
    }

    /// A rate given as units per second, for values that are not whole numbers, burst 1.
    ///
    /// It becomes the simplest fraction that is not above the rate and at most a millionth of it below: 0.7 is 7 in 10 s. Rates below
    /// one unit in 146 years become that rate.
    ///
    /// # Errors
    ///
    /// If the rate is zero, negative, not a number, infinite, or more than 4,294,967,295 per second.
    ///
    /// ```
    /// use tower_throttle::Quota;
    ///
    /// assert_eq!(Quota::from_rate(60.0)?.to_string(), "60 a second");
    /// assert_eq!(Quota::from_rate(5.0 / 3.0)?.to_string(), "5 in 3 s");
    /// assert!(Quota::from_rate(f64::NAN).unwrap_err().to_string().contains("rate"));
    /// # Ok::<(), tower_throttle::ConfigError>(())
    /// ```
    pub fn from_rate(per_second: f64) -> Result<Self, ConfigError> {
        if !per_second.is_finite() || per_second <= 0.0 {
            return Err(ConfigError::new(
                "rate",
                "must be a finite number above zero",
            ));
        }
        if per_second > f64::from(u32::MAX) {
            return Err(ConfigError::new(
                "rate",
                "must be at most 4294967295 a second",
            ));
        }
        if per_second < 1.0 / MAX_PERIOD.as_secs_f64() {
            return Ok(Self::new(1, MAX_PERIOD));
        }
        // A number as near as a float can say is not above it.
        let highest = per_second * (1.0 + 4.0 * f64::EPSILON);
        let (amount, seconds) = simplest(per_second * (1.0 - 1e-6), highest, true);
        Ok(Self::new(
            (amount as u32).max(1),
            Duration::from_secs((seconds as u64).max(1)).min(MAX_PERIOD),
        ))
    }

    /// Sets how many units may leave at once after a quiet time; also the largest cost one request can have.
    #[must_use]
    pub const fn burst(mut self, burst: u32) -> Self {
        if !self.strict {
            self.burst = burst;
        }
        self
    }

    /// Sets how many units are there at the start, at most the burst; if not said, the bucket starts full.
    ///
    /// Give few, or none, to a job that is often restarted: each start with a full bucket sends a burst. No effect with
    /// [`at_most`](Self::at_most).
    ///
    /// ```
    /// use tower_throttle::{Limiter, Quota};
    ///
    /// let limiter = Limiter::new(Quota::per_second(2).burst(10).initial(0))?;
    /// assert!(limiter.try_acquire(1).is_err());
    /// # Ok::<(), tower_throttle::ConfigError>(())
    /// ```
    #[must_use]
    pub const fn initial(mut self, initial: u32) -> Self {
        if !self.strict {
            self.initial = Some(initial);
        }
        self
    }

    /// Whether it was made by [`at_most`](Self::at_most).
    #[must_use]
    pub const fn is_strict(&self) -> bool {
        self.strict
    }

    /// Units each [`period`](Self::period).
    #[must_use]
    pub const fn amount(&self) -> u32 {
        self.amount
    }

    /// The time in which [`amount`](Self::amount) units come.
    #[must_use]
    pub const fn period(&self) -> Duration {
        self.period
    }

    /// The most units that may leave at once.
    #[must_use]
    pub const fn burst_size(&self) -> u32 {
        self.burst
    }

    /// How many units are there at the start.
    #[must_use]
    pub const fn initial_size(&self) -> u32 {
        match self.initial {
            Some(initial) => initial,
            None => self.burst,
        }
    }

    /// The rate in units per second, for display.
    #[must_use]
    pub fn rate(&self) -> f64 {
        f64::from(self.amount) / self.period.as_secs_f64()
    }

    /// Checks the values; building a limiter does this too.
    ///
    /// # Errors
    ///
    /// If the amount, the period or the burst is zero, the period is longer than 146 years, or more is there at the start than the burst.
    /// The error names the field.
    pub const fn validate(&self) -> Result<(), ConfigError> {
        if self.amount == 0 {
            return Err(ConfigError::new("amount", "must be at least 1"));
        }
        if self.period.is_zero() {
            return Err(ConfigError::new("period", "must be longer than zero"));
        }
        if self.period.as_nanos() > MAX_PERIOD.as_nanos() {
            return Err(ConfigError::new("period", "must be at most 146 years"));
        }
        if self.burst == 0 {
            return Err(ConfigError::new("burst", "must be at least 1"));
        }
        if self.initial_size() > self.burst {
            return Err(ConfigError::new("initial", "must be at most the burst"));
        }
        Ok(())
    }
}

/// The fraction with the smallest denominator between `low` and `high`, which are positive, and of those the highest, or else the
/// lowest. By continued fractions: each step takes the whole part off and turns what is left over.
fn simplest(low: f64, high: f64, highest: bool) -> (f64, f64) {
    let whole = if highest { high.floor() } else { low.ceil() };
    if (low..=high).contains(&whole) {
        return (whole, 1.0);
    }
    let whole = low.floor();
    // Turned over, the highest is the lowest.
    let (amount, parts) = simplest(1.0 / (high - whole), 1.0 / (low - whole), !highest);
    (whole * amount + parts, amount)
}

/// A configuration that cannot work; says which field and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConfigError {
    field: &'static str,
    problem: &'static str,
}

impl ConfigError {
    pub(crate) const fn new(field: &'static str, problem: &'static str) -> Self {
        Self { field, problem }
    }

    /// The name of the field that is wrong: `amount`, `period`, `burst`, `initial`, `rate`, `quota`, or a builder option.
    #[must_use]
    pub const fn field(&self) -> &'static str {
        self.field
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "invalid throttle configuration: {} {}",
            self.field, self.problem
        )
    }
}

impl Error for ConfigError {}
