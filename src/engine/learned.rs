use std::time::Duration;

/// A server's limit as it was learnt from refusals, to be kept over a restart.
///
/// It is one number: store it as you like, with the time.
///
/// ```
/// use std::time::Duration;
/// use tower_throttle::{Learned, Limiter, Quota};
///
/// # fn main() -> Result<(), tower_throttle::ConfigError> {
/// # let (stored, age) = ("48.7", Duration::from_secs(60));
/// let limiter = Limiter::builder()
///     .quota("api", Quota::per_second(500).burst(50))
///     .learned(Learned::from_per_second(stored.parse().unwrap()), age)
///     .build()?;
/// let learned = limiter.learned().expect("it is what was given");
/// assert!((learned.per_second() - 48.7).abs() < 1e-6);
/// # Ok(())
/// # }
/// ```
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Learned {
    #[cfg_attr(feature = "serde", serde(with = "exact"))]
    per_second: f64,
}

impl Learned {
    /// What is older than this is not believed: a day.
    pub const MAX_AGE: Duration = Duration::from_secs(86_400);

    /// A limit of so many units a second.
    #[must_use]
    pub const fn from_per_second(per_second: f64) -> Self {
        Self { per_second }
    }

    /// Units a second.
    #[must_use]
    pub const fn per_second(self) -> f64 {
        self.per_second
    }
}

/// How the rate came about that is in use.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Adaptation {
    /// What the rate is doing now.
    pub phase: Phase,
    /// The server's limit as measured last, in units a second.
    pub limit: Option<f64>,
    /// How much higher it may be, in units a second; zero if the measurement leaves little doubt.
    pub unsure: f64,
    /// Requests accepted since the server last refused and accepted again.
    pub accepted: u64,
    /// What that cost: refusals, and time in pauses.
    pub refusals: u64,
    /// See [`refusals`](Self::refusals).
    pub paused: Duration,
}

/// What the rate in use is doing.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// No refusal has told anything: the configured rate holds.
    Unchallenged,
    /// The server refuses.
    Refused,
    /// The rate is held just under the limit.
    Holding,
    /// A little more is tried.
    Probing,
}

/// A number with a fraction that is read back to the bit, whatever reads it: as text in formats that people read, since some of their
/// readers are off by a little unless a feature is on that would be on for the user's whole program.
#[cfg(feature = "serde")]
mod exact {
    use std::fmt;

    use serde::{
        Deserialize, Deserializer, Serialize, Serializer,
        de::{Error, Visitor},
    };

    pub(super) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            // The shortest decimal that no other number is nearer to.
            serializer.collect_str(&format_args!("{value:?}"))
        } else {
            value.serialize(serializer)
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
        if from.is_human_readable() {
            from.deserialize_any(Text)
        } else {
            f64::deserialize(from)
        }
    }

    struct Text;

    impl Visitor<'_> for Text {
        type Value = f64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number, or one as text")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<f64, E> {
            text.parse().map_err(E::custom)
        }

        // As people write them, and as they were written once.
        fn visit_f64<E: Error>(self, value: f64) -> Result<f64, E> {
            Ok(value)
        }

        fn visit_u64<E: Error>(self, value: u64) -> Result<f64, E> {
            Ok(value as f64)
        }

        fn visit_i64<E: Error>(self, value: i64) -> Result<f64, E> {
            Ok(value as f64)
        }
    }
}
