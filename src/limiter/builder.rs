use std::time::Duration;

use super::{handle::Limiter, shared::Shared};
#[cfg(feature = "journal")]
use crate::audit::journal::Journal;
use crate::engine::{Adapt, Backoff, Config, ConfigError, Engine, Learned, Quota, Spend, Time};

/// Builds a [`Limiter`]; made by [`Limiter::builder`].
///
/// | option | default |
/// |---|---|
/// | [`name`](Self::name) | `"default"` |
/// | [`observe_only`](Self::observe_only) | off |
/// | [`quota`](Self::quota) | none: it must be given |
/// | [`max_wait`](Self::max_wait), [`max_queue`](Self::max_queue) | no bound |
/// | [`max_pause`](Self::max_pause) | 1 hour |
/// | [`spend`](Self::spend) | [`Spend::Horizon`] of 60 s |
/// | [`adapt`](Self::adapt) | [`Adapt::On`] |
/// | [`backoff`](Self::backoff) | from the rate, at most 1 s; cap 60 s |
/// | [`learned`](Self::learned) | nothing |
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until it is built"]
pub struct LimiterBuilder {
    name: Box<str>,
    quotas: Vec<(Box<str>, Quota)>,
    config: Config,
    #[cfg(feature = "journal")]
    journal: Option<Journal>,
}

impl LimiterBuilder {
    pub(super) fn new() -> Self {
        Self {
            name: "default".into(),
            quotas: Vec::new(),
            config: Config::new(Quota::per_second(1)),
            #[cfg(feature = "journal")]
            journal: None,
        }
    }

    /// The limiter's name in audit events and snapshots.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into().into_boxed_str();
        self
    }

    /// Adds a quota. There must be one, and can be four, of different names. A request is sent when all of them have what it
    /// [costs](super::Cost), and takes it from all at the same instant; while it waits for one it holds nothing of the others.
    ///
    /// The first one is special where they count different things: it should count requests, as the server's budgets do. Its rate is the
    /// one that is learnt from refusals.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tower_throttle::{Limiter, Quota};
    ///
    /// // Riot's development keys: 20 in a second and 100 in two minutes.
    /// let limiter = Limiter::builder()
    ///     .quota("second", Quota::at_most(20, Duration::from_secs(1)))
    ///     .quota("two minutes", Quota::at_most(100, Duration::from_secs(120)))
    ///     .build()?;
    /// # Ok::<(), tower_throttle::ConfigError>(())
    /// ```
    pub fn quota(mut self, name: impl Into<String>, quota: Quota) -> Self {
        self.quotas.push((name.into().into_boxed_str(), quota));
        self
    }

    /// Decides, records and counts everything, but holds nothing back, to see what a limit would do before it is enforced. What would have
    /// had to wait takes nothing. [`set_observe_only`](Limiter::set_observe_only) ends it.
    pub const fn observe_only(mut self) -> Self {
        self.config.observe = true;
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

    /// Fixes the pause after a refusal that names no wait: `base`, doubling while nothing is accepted, up to `cap`. Waits that are named
    /// grow up to `cap`, too, once three in a row were in vain; see [`Backoff`](crate::engine::Backoff).
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

    /// Records all that the limiter is told and decides in this journal, from which it can be replayed. Needs the feature `journal`.
    ///
    /// The names of limiters that share a journal must differ.
    #[cfg(feature = "journal")]
    pub fn audit(mut self, journal: Journal) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Builds the limiter. Needs no runtime.
    ///
    /// # Errors
    ///
    /// If there is no quota, more than four, or two of one name, or a value is out of range; the error names the field.
    pub fn build(mut self) -> Result<Limiter, ConfigError> {
        let (names, quotas): (Vec<Box<str>>, Vec<Quota>) = self.quotas.into_iter().unzip();
        let mut quotas = quotas.into_iter();
        self.config.quota = quotas
            .next()
            .ok_or(ConfigError::new("quota", "is missing"))?;
        self.config.further = quotas.collect();
        let twice = (names.iter().enumerate()).any(|(index, name)| names[..index].contains(name));
        if twice {
            return Err(ConfigError::new("quota", "was given twice under one name"));
        }
        let engine = Engine::new(self.config, Time::ZERO)?;
        let shared = Shared::new(self.name, names.into_boxed_slice(), engine);
        #[cfg(feature = "journal")]
        let shared = match self.journal {
            Some(journal) => shared.recording(journal),
            None => shared,
        };
        Ok(Limiter::from_shared(shared))
    }
}
