use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use crate::engine::{Config, ConfigError, Plan, Quota};

/// Asks the application for the quota of one key.
pub(super) type QuotaFor<K> = dyn Fn(&K) -> Option<Quota> + Send + Sync;

/// The configurations of keys. Keys with equal quotas share one.
pub(super) struct Plans<K> {
    usual: Arc<Plan>,
    quota_for: Option<Arc<QuotaFor<K>>>,
    others: Mutex<Others>,
}

struct Others {
    plans: HashMap<Quota, Arc<Plan>>,
    /// Those that no key uses any more are dropped when there are this many.
    purge: usize,
}

const PURGE: usize = 64;

impl<K> Plans<K> {
    pub(super) fn new(
        config: Config,
        quota_for: Option<Arc<QuotaFor<K>>>,
    ) -> Result<Self, ConfigError> {
        Ok(Self {
            usual: Arc::new(Plan::new(config)?),
            quota_for,
            others: Mutex::new(Others {
                plans: HashMap::new(),
                purge: PURGE,
            }),
        })
    }

    /// The one for `key`. Calls the application, so no lock must be held.
    pub(super) fn plan_for(&self, key: &K) -> Result<Arc<Plan>, ConfigError> {
        let own = (self.quota_for.as_ref()).and_then(|quota_for| quota_for(key));
        let Some(quota) = own.filter(|&quota| quota != self.usual.config().quota) else {
            return Ok(Arc::clone(&self.usual));
        };
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = others.plans.get(&quota) {
            return Ok(Arc::clone(plan));
        }
        let config = Config {
            quota,
            ..self.usual.config().clone()
        };
        let plan = Arc::new(Plan::new(config)?);
        if others.plans.len() >= others.purge {
            others.plans.retain(|_, plan| Arc::strong_count(plan) > 1);
            others.purge = PURGE.max(others.plans.len() * 2);
        }
        others.plans.insert(quota, Arc::clone(&plan));
        Ok(plan)
    }
}

impl<K> fmt::Debug for Plans<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plans")
            .field("usual", self.usual.config())
            .field("quota_for", &self.quota_for.is_some())
            .finish_non_exhaustive()
    }
}
