use std::{
    fmt,
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64},
    },
    time::Duration,
};

use super::{
    core::{Core, Label},
    handle::KeyedLimiter,
    overflow::Overflow,
    pause::PauseForAll,
    plans::{Plans, QuotaFor},
    table::Table,
    wider::Wider,
};
use crate::{
    engine::{Adapt, Backoff, Config, ConfigError, Engine, Quota, Spend},
    limiter::{Limiter, Shared, clock::Clock},
};

/// Tracked keys, unless told otherwise: about 15 MB with short keys at rest.
const MAX_KEYS: usize = 100_000;

/// Builds a [`KeyedLimiter`]; made by [`KeyedLimiter::builder`].
///
/// | option | default |
/// |---|---|
/// | [`name`](Self::name) | `"default"` |
/// | [`label`](Self::label) | a number that says nothing about the key |
/// | [`quota`](Self::quota) | none: it must be given |
/// | [`quota_for`](Self::quota_for) | the same quota for all keys |
/// | [`global`](Self::global) | no limit over all keys |
/// | [`max_keys`](Self::max_keys) | 100,000 |
/// | [`overflow`](Self::overflow) | [`Overflow::Refuse`] |
/// | [`max_wait`](Self::max_wait), [`max_queue`](Self::max_queue) | no bound |
/// | [`max_pause`](Self::max_pause) | 1 hour |
/// | [`spend`](Self::spend) | [`Spend::Horizon`] of 60 s |
/// | [`adapt`](Self::adapt) | [`Adapt::On`] |
/// | [`backoff`](Self::backoff) | from the rate, at most 1 s; cap 60 s |
#[must_use = "a builder does nothing until it is built"]
pub struct KeyedBuilder<K> {
    name: Box<str>,
    label: Option<Arc<Label<K>>>,
    quota: Option<Quota>,
    quota_for: Option<Arc<QuotaFor<K>>>,
    config: Config,
    max_keys: usize,
    overflow: Overflow,
    global: Option<Limiter>,
}

impl<K> KeyedBuilder<K>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
{
    pub(super) fn new() -> Self {
        Self {
            name: "default".into(),
            label: None,
            quota: None,
            quota_for: None,
            config: Config::new(Quota::per_second(1)),
            max_keys: MAX_KEYS,
            overflow: Overflow::default(),
            global: None,
        }
    }

    /// The name in audit events and snapshots. The limiter of a key is called by this name, `#` and a number, or as
    /// [`label`](Self::label) says.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into().into_boxed_str();
        self
    }

    /// Names keys in audit events: a key's limiter is called by the [`name`](Self::name), `/` and this. Keys may be secrets, so by default
    /// nothing of them is recorded.
    pub fn label(mut self, label: impl Fn(&K) -> String + Send + Sync + 'static) -> Self {
        self.label = Some(Arc::new(label));
        self
    }

    /// The budget of each key.
    pub fn quota(mut self, quota: Quota) -> Self {
        self.quota = Some(quota);
        self
    }

    /// Asks `quota_for` for the budget of each key when it is first seen, and again when it is seen anew after having been forgotten.
    /// `None`: the quota for all keys. An invalid quota is an error for the key's callers
    /// ([`is_invalid_quota`](crate::Error::is_invalid_quota)).
    ///
    /// ```
    /// use tower_throttle::{KeyedLimiter, Quota};
    ///
    /// let limiter = KeyedLimiter::<u32>::builder()
    ///     .quota(Quota::per_second(1))
    ///     .quota_for(|&account| (account == 7).then(|| Quota::per_second(50).burst(10)))
    ///     .build()?;
    /// assert!(limiter.try_acquire(&7, 10).is_ok());
    /// assert!(limiter.try_acquire(&8, 10).is_err());
    /// # Ok::<(), tower_throttle::ConfigError>(())
    /// ```
    pub fn quota_for(
        mut self,
        quota_for: impl Fn(&K) -> Option<Quota> + Send + Sync + 'static,
    ) -> Self {
        self.quota_for = Some(Arc::new(quota_for));
        self
    }

    /// A budget above all keys: each request takes from its key's and from this one at the same instant, or from neither. It may be used
    /// elsewhere, too.
    pub fn global(mut self, limiter: Limiter) -> Self {
        self.global = Some(limiter);
        self
    }

    /// The most keys tracked at once. What happens beyond is said by [`overflow`](Self::overflow).
    pub fn max_keys(mut self, keys: usize) -> Self {
        self.max_keys = keys;
        self
    }

    /// What happens to a new key when there is no room for it.
    pub fn overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = overflow;
        self
    }

    /// Refuses a caller at once when its projected wait for its key is longer than this, and gives up with an error when the wait
    /// becomes longer after all. Waiting for the global limiter is bounded by that limiter's own option.
    pub fn max_wait(mut self, wait: Duration) -> Self {
        self.config.max_wait = Some(wait);
        self
    }

    /// Refuses a caller at once when this many already wait for its key.
    pub fn max_queue(mut self, callers: usize) -> Self {
        self.config.max_queue = Some(callers);
        self
    }

    /// While a pause of a key, or of all, has more than this left, callers get an error that says when it ends, instead of waiting.
    pub fn max_pause(mut self, pause: Duration) -> Self {
        self.config.max_pause = pause;
        self
    }

    /// How a budget the server announced for a key is spent.
    pub fn spend(mut self, spend: Spend) -> Self {
        self.config.spend = spend;
        self
    }

    /// Whether each key's rate is learnt from refusals.
    pub fn adapt(mut self, adapt: Adapt) -> Self {
        self.config.adapt = adapt;
        self
    }

    /// Fixes the pause of a key after a refusal that names no wait: `base`, doubling while nothing is accepted, up to `cap`. Waits that are named
    /// grow up to `cap`, too, once three in a row were in vain; see [`Backoff`](crate::engine::Backoff).
    pub fn backoff(mut self, base: Duration, cap: Duration) -> Self {
        self.config.backoff = Backoff {
            base: Some(base),
            cap,
        };
        self
    }

    /// Builds the limiter. Needs no runtime.
    ///
    /// # Errors
    ///
    /// If there is no quota, or a value is out of range; the error names the field.
    pub fn build(self) -> Result<KeyedLimiter<K>, ConfigError> {
        let quota = self
            .quota
            .ok_or_else(|| ConfigError::new("quota", "is missing"))?;
        if self.max_keys == 0 {
            return Err(ConfigError::new("max_keys", "must be at least 1"));
        }
        let config = Config {
            quota,
            ..self.config
        };
        let clock = Clock::started();
        let spare = match self.overflow {
            Overflow::Refuse => None,
            Overflow::Share => {
                let engine = Engine::new(config.clone(), clock.now())?;
                let name = format!("{}/overflow", self.name).into();
                Some(Arc::new(Shared::on_clock(name, engine, clock.clone(), 0)))
            }
        };
        let all = Arc::new(PauseForAll::new(self.name.clone(), clock.clone()));
        Ok(KeyedLimiter::from_core(Core {
            name: self.name,
            label: self.label,
            clock,
            table: Table::new(self.max_keys, Arc::clone(&all)),
            plans: Plans::new(config, self.quota_for)?,
            wider: Wider {
                all,
                above: self.global,
            },
            spare,
            overflowed: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        }))
    }
}

impl<K> Clone for KeyedBuilder<K> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            label: self.label.clone(),
            quota: self.quota,
            quota_for: self.quota_for.clone(),
            config: self.config.clone(),
            max_keys: self.max_keys,
            overflow: self.overflow,
            global: self.global.clone(),
        }
    }
}

impl<K> fmt::Debug for KeyedBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedBuilder")
            .field("name", &self.name)
            .field("label", &self.label.is_some())
            .field("quota", &self.quota)
            .field("quota_for", &self.quota_for.is_some())
            .field("config", &self.config)
            .field("max_keys", &self.max_keys)
            .field("overflow", &self.overflow)
            .field("global", &self.global)
            .finish()
    }
}
