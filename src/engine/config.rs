use std::time::Duration;

use super::{
    costs::QUOTAS,
    learned::Learned,
    quota::{ConfigError, Quota},
};

/// What an engine is built from.
#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The ceiling: no header and no learning ever raises the rate above it. What is learnt from refusals is the rate of this one, and the
    /// server's budgets are counted in its units.
    pub quota: Quota,
    /// Further quotas, at most three, each with a cost of its own; a request is sent when all allow it.
    pub further: Vec<Quota>,
    /// Decide as usual, but let everything leave at once.
    pub observe: bool,
    /// Refuse a caller at once when its projected wait is longer. `None`: wait as long as it takes.
    pub max_wait: Option<Duration>,
    /// Refuse a caller when this many already wait. `None`: no limit.
    pub max_queue: Option<usize>,
    /// A server pause longer than this refuses callers instead of parking them.
    pub max_pause: Duration,
    /// How a budget the server announced is spent.
    pub spend: Spend,
    /// Whether the rate is learnt from refusals.
    pub adapt: Adapt,
    /// The pauses after refusals; see [`Backoff`].
    pub backoff: Backoff,
    /// What an earlier limiter learnt, to start from.
    pub learned: Option<Learned>,
}

impl Config {
    /// The defaults: wait without limit, pauses up to one hour, spend over a minute, adapt.
    #[must_use]
    pub const fn new(quota: Quota) -> Self {
        Self {
            quota,
            further: Vec::new(),
            observe: false,
            max_wait: None,
            max_queue: None,
            max_pause: Duration::from_secs(3_600),
            spend: Spend::Horizon(Spend::HORIZON),
            adapt: Adapt::On,
            backoff: Backoff {
                base: None,
                cap: Duration::from_secs(60),
            },
            learned: None,
        }
    }

    /// The quota at this position, in the order in which they were given.
    #[must_use]
    pub fn quota_at(&self, index: usize) -> Option<Quota> {
        match index {
            0 => Some(self.quota),
            _ => self.further.get(index - 1).copied(),
        }
    }

    /// Checks the values.
    ///
    /// # Errors
    ///
    /// If a quota is invalid or there are more than four, a back-off is zero or has a base above its cap, or what was learnt is not a positive number.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.quota.validate()?;
        if self.further.len() >= QUOTAS {
            return Err(ConfigError::new("quota", "was given more than four times"));
        }
        for quota in &self.further {
            quota.validate()?;
        }
        let learned = self.learned.map_or(1.0, Learned::per_second);
        if !learned.is_finite() || learned <= 0.0 {
            return Err(ConfigError::new("learned", "is not a positive number"));
        }
        if self.backoff.cap.is_zero() {
            return Err(ConfigError::new("backoff", "needs a cap longer than zero"));
        }
        match self.backoff.base {
            Some(base) if base.is_zero() => {
                Err(ConfigError::new("backoff", "needs a base longer than zero"))
            }
            Some(base) if base > self.backoff.cap => {
                Err(ConfigError::new("backoff", "has a base above its cap"))
            }
            _ => Ok(()),
        }
    }
}

/// How a budget the server announced (so much left until a reset) is spent.
///
/// Whatever is chosen, nothing leaves once nothing is left, until the reset.
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Spend {
    /// Spread over the time to the reset, or over this horizon if it is shorter: the rate is at most `remaining / min(time to reset,
    /// horizon)`, taken anew at each answer. So no request is held back longer than the horizon to make a budget last, and the last of
    /// a budget go slowly. The default, with [60 s](Self::HORIZON).
    Horizon(#[cfg_attr(feature = "serde", serde(with = "super::words::length_form"))] Duration),
    /// Spread over the time to the reset, however far that is: a budget of a month lasts a month.
    Evenly,
    /// At the configured rate.
    Freely,
}

impl Spend {
    /// The horizon of the default: a minute.
    pub const HORIZON: Duration = Duration::from_secs(60);

    /// Over which time a budget is spread whose reset is so far away, if it is.
    pub(super) fn over(self, reset: Duration) -> Option<Duration> {
        match self {
            Self::Horizon(horizon) => Some(reset.min(horizon)),
            Self::Evenly => Some(reset),
            Self::Freely => None,
        }
    }
}

impl Default for Spend {
    fn default() -> Self {
        Self::Horizon(Self::HORIZON)
    }
}

/// Whether refusals change the rate.
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Adapt {
    /// Refusals tell the server's limit: the rate settles just under what was accepted between them, once for all requests under way,
    /// and probes now and then whether more is accepted, up to the configured rate. The algorithm is in `engine/rate/mod.rs`.
    #[default]
    On,
    /// The rate stays as configured; refusals only pause.
    Off,
}

/// The pause after a refusal that names no wait, and how far a named wait may grow.
///
/// A server that names a wait is taken at its word three times in a row. If it refuses what comes after the third, too, the next pause is
/// twice the wait it names, and doubles up to `cap`, until something is accepted; a wait longer than `cap` stays as it is named.
///
/// Where none is named the pause doubles while nothing is accepted, up to `cap`, and starts again from `base` after an accepted request, or when no refusal has
/// come for the length of `cap` after a pause. With [`Adapt::On`] and no `base` given, a pause is not longer than a sixth of the time since
/// the server last accepted again, pauses included, if it accepted at least 16 requests in it.
///
/// After such a pause one request goes ahead of all others. They wait for its answer, but no longer than twice the time the refusal
/// took to come. (Requests sent with a bare permit, whose answers may never be told, are not waited for.)
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Backoff {
    /// The first pause. `None`: with [`Adapt::On`] two intervals of the lowered rate, at least the round trip just seen and at most
    /// one second; with [`Adapt::Off`] one second.
    #[cfg_attr(
        feature = "serde",
        serde(default, with = "super::words::optional_length_form")
    )]
    pub base: Option<Duration>,
    /// The longest pause.
    #[cfg_attr(feature = "serde", serde(with = "super::words::length_form"))]
    pub cap: Duration,
}
