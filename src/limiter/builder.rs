use std::time::Duration;

use super::{handle::Limiter, shared::Shared};
use crate::engine::{Adapt, Backoff, Config, ConfigError, Engine, Learned, Quota, Spend, Time};

/// Builds a [`Limiter`]; made by [`Limiter::builder`].
///
/// | option | default |
/// |---|---|
/// | [`name`](Self::name) | `"default"` |
/// | [`quota`](Self::quota) | none: it must be given |
/// | [`max_wait`](Self::max_wait), [`max_queue`](Self::max_queue) | no bound |
/// | [`max_pause`](Self::max_pause) | 1 hour |
/// | [`spend`](Self::spend) | [`Spend::Evenly`] |
/// | [`adapt`](Self::adapt) | [`Adapt::On`] |
/// | [`backoff`](Self::backoff) | from the rate, at most 1 s; cap 60 s |
/// | [`learned`](Self::learned) | nothing |
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until it is built"]
pub struct LimiterBuilder {
    name: Box<str>,
    quotas: usize,
    config: Config,
}

impl LimiterBuilder {
    pub(super) fn new() -> Self {
        Self {
            name: "default".into(),
            quotas: 0,
            config: Config::new(Quota::per_second(1)),
        }
    }

    /// The limiter's name in audit events and snapshots.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into().into_boxed_str();
        self
    }

    /// The budget. In this version a limiter has exactly one; its name is for the reader.
    pub fn quota(mut self, _name: impl Into<String>, quota: Quota) -> Self {
        self.quotas += 1;
        self.config.quota = quota;
        self
    }

    /// Refuses a caller at once when its projected wait is longer than this (a wait of just this length is allowed), and gives up
    /// with an error when the wait becomes longer after all.
    pub fn max_wait(mut self, wait: Duration) -> Self {
        self.config.max_wait = Some(wait);
        self
    }

    /// Refuses a caller at once when this many already wait.
    pub fn max_queue(mut self, callers: usize) -> Self {
        self.config.max_queue = Some(callers);
        self
    }

    /// While a server pause has more than this left, callers get an error that says when it ends, instead of waiting.
    pub fn max_pause(mut self, pause: Duration) -> Self {
        self.config.max_pause = pause;
        self
    }

    /// How a budget the server announced is spent.
    pub fn spend(mut self, spend: Spend) -> Self {
        self.config.spend = spend;
        self
    }

    /// Whether the rate is learnt from refusals.
    pub fn adapt(mut self, adapt: Adapt) -> Self {
        self.config.adapt = adapt;
        self
    }

    /// Fixes the pause after a refusal that names no wait: `base`, doubling while nothing is accepted, up to `cap`.
    pub fn backoff(mut self, base: Duration, cap: Duration) -> Self {
        self.config.backoff = Backoff {
            base: Some(base),
            cap,
        };
        self
    }

    /// Starts from what a limiter [learnt](Limiter::learned) before, `age` ago, instead of learning it again. Ignored if it is older than
    /// [`Learned::MAX_AGE`], not below the configured rate, or with [`Adapt::Off`].
    pub fn learned(mut self, learned: Learned, age: Duration) -> Self {
        self.config.learned = Some(learned).filter(|_| age <= Learned::MAX_AGE);
        self
    }

    /// Builds the limiter. Needs no runtime.
    ///
    /// # Errors
    ///
    /// If there is not exactly one quota, or a value is out of range; the error names the field.
    pub fn build(self) -> Result<Limiter, ConfigError> {
        match self.quotas {
            0 => return Err(ConfigError::new("quota", "is missing")),
            1 => {}
            _ => {
                return Err(ConfigError::new(
                    "quota",
                    "was given more than once, and a limiter has one",
                ));
            }
        }
        let engine = Engine::new(self.config, Time::ZERO)?;
        Ok(Limiter::from_shared(Shared::new(self.name, engine)))
    }
}
