use std::{
    fmt,
    hash::Hash,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use super::{
    acquire::KeyedAcquire, builder::KeyedBuilder, core::Core, permit::KeyedPermit,
    snapshot::KeyedSnapshot,
};
use crate::{
    engine::{Cause, ConfigError, Pause, Quota},
    error::Error,
    feedback::{Feedback, Scope},
    limiter::{Limiter, Snapshot, says_nothing},
};

/// One budget for each key, and perhaps one above them all; shared by all its clones.
///
/// See the [module](super) for what that means. Cloning is cheap.
///
/// ```
/// use tower_throttle::{KeyedLimiter, Quota};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = KeyedLimiter::new(Quota::per_second(2).burst(2))?;
/// limiter.acquire(&"a.example", 1).await?;
/// limiter.try_acquire(&"b.example", 2)?;
/// assert_eq!(limiter.len(), 2);
/// # Ok(())
/// # }
/// ```
pub struct KeyedLimiter<K> {
    core: Arc<Core<K>>,
}

impl<K> KeyedLimiter<K>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
{
    /// A limiter with this quota for each key and the defaults of [`builder`](Self::builder).
    ///
    /// # Errors
    ///
    /// If the quota is invalid; see [`Quota::validate`].
    pub fn new(quota: Quota) -> Result<Self, ConfigError> {
        Self::builder().quota(quota).build()
    }

    /// Starts building a limiter.
    pub fn builder() -> KeyedBuilder<K> {
        KeyedBuilder::new()
    }

    pub(super) fn from_core(core: Core<K>) -> Self {
        Self {
            core: Arc::new(core),
        }
    }

    pub(crate) fn core(&self) -> &Core<K> {
        &self.core
    }

    /// Waits in the key's line for `cost` units, then for as much of the global budget if there is one, and takes both at the same
    /// instant. Callers with other keys are not waited for, nor do they wait.
    ///
    /// A cost of zero takes nothing but waits its turn, and for the end of a pause.
    ///
    /// # Errors
    ///
    /// As [`Limiter::acquire`], by the key's limiter or the global one. Besides, if there is no room for the key
    /// ([`is_too_many_keys`](Error::is_too_many_keys)), or the quota the application has for it is invalid.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future at any point takes nothing, from neither.
    ///
    /// # Panics
    ///
    /// Waiting outside a tokio runtime with time enabled panics, as tokio's timers do.
    pub fn acquire(&self, key: &K, cost: u32) -> KeyedAcquire<K> {
        KeyedAcquire::new(self.clone(), key.clone(), cost, None)
    }

    /// As [`acquire`](Self::acquire), but waits at most `timeout` in all, and is refused at once if the projected wait in either line is
    /// longer.
    ///
    /// The time counts from the first poll. Like `acquire` this is cancel safe.
    pub fn acquire_timeout(&self, key: &K, cost: u32, timeout: Duration) -> KeyedAcquire<K> {
        KeyedAcquire::new(self.clone(), key.clone(), cost, Some(timeout))
    }

    /// Takes `cost` units of the key's budget and of the global one, now or not at all. Never passes those who wait, in either line.
    ///
    /// # Errors
    ///
    /// If it would have to wait, or can never be met, or as said for [`acquire`](Self::acquire). Nothing is taken from either.
    pub fn try_acquire(&self, key: &K, cost: u32) -> Result<KeyedPermit, Error> {
        self.core.try_acquire(key, cost)
    }

    /// Takes in the answer to the request that `permit` was for, for clients that are not behind a
    /// [`KeyedThrottleLayer`](crate::KeyedThrottleLayer). If the server says that it concerns everybody ([`Scope::Global`]), all keys
    /// pause and the global limiter learns from it; otherwise it only concerns `key`.
    ///
    /// If there is no room for the key, only what concerns everybody is applied.
    pub fn answered(&self, key: &K, permit: &KeyedPermit, feedback: &Feedback) {
        let limiter = match self.core.limiter_in_use(key) {
            Some(limiter) => limiter,
            None if says_nothing(feedback) => return,
            None => match self.core.limiter(key) {
                Ok(limiter) => limiter,
                Err(_) => return self.concerns_all(feedback),
            },
        };
        let grant = permit.grant();
        let (seq, flight) = (Some(grant.seq), Some(grant.flight));
        (self.core.wider).observe(&limiter, seq, flight, permit.above(), feedback);
    }

    /// Takes in what a server said outside any request of ours, or where the permit is not at hand, as [`Limiter::reconcile`]; for all
    /// keys if the server says so ([`Scope::Global`]).
    pub fn reconcile(&self, key: &K, feedback: &Feedback) {
        match self.core.limiter(key) {
            Ok(limiter) => {
                (self.core.wider).observe(&limiter, None, None, None, feedback);
            }
            Err(_) => self.concerns_all(feedback),
        }
    }

    /// Holds one key back for `wait` from now, as [`Limiter::penalize`] does. Other keys are not touched.
    ///
    /// # Errors
    ///
    /// If there is no room for the key, or its quota is invalid.
    pub fn penalize(&self, key: &K, wait: Duration) -> Result<(), Error> {
        Limiter::over(self.core.limiter(key)?).penalize(wait);
        Ok(())
    }

    /// Holds all keys back for `wait` from now, those to come included. A pause under way is extended, never shortened. At its end each
    /// key sends one request, alone, and the rest follow at its rate.
    ///
    /// This costs the same however many keys there are. Callers that wait already notice when their turn comes.
    pub fn penalize_all(&self, wait: Duration) {
        let all = &self.core.wider.all;
        let pause = Pause {
            until: all.after(wait),
            cause: Cause::Penalty,
        };
        all.extend(pause, Some(wait), None);
    }

    /// How many keys are tracked.
    #[must_use]
    pub fn len(&self) -> usize {
        self.core.table.len()
    }

    /// Whether no key is tracked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Looks at every key and forgets those that nothing tells from new ones: full bucket, nobody waiting, nothing under way, nothing
    /// learnt. Gives memory back. Returns how many were forgotten.
    ///
    /// Not needed while new keys come, as each of them has others looked at. Call it now and then where they come in waves. It holds the
    /// lock of one shard at a time, for about a tenth of a microsecond a key in it.
    pub fn sweep(&self) -> usize {
        self.core.table.sweep(self.core.clock.now())
    }

    /// A look at the whole.
    #[must_use]
    pub fn snapshot(&self) -> KeyedSnapshot {
        let core = &self.core;
        KeyedSnapshot {
            name: core.name.to_string(),
            keys: core.table.len(),
            max_keys: core.table.max(),
            forgotten: core.table.forgotten(),
            overflowed: core.overflowed.load(Ordering::Relaxed),
            pause: core.wider.all.now(),
            global: core.wider.above.as_ref().map(Limiter::snapshot),
            shared: (core.spare.as_ref())
                .map(|limiter| Limiter::over(Arc::clone(limiter)).snapshot()),
        }
    }

    /// A look at one key; `None` if it is not tracked, which means that its bucket is full and nothing is known of it.
    ///
    /// Its counters count from when it was last at rest.
    #[must_use]
    pub fn snapshot_of(&self, key: &K) -> Option<Snapshot> {
        let limiter = self.core.look_at(key)?;
        self.core.wider.all.holds_back(&limiter);
        let base = limiter.touch(|state| state.counters.sent);
        let mut snapshot = Limiter::over(limiter).snapshot();
        snapshot.counters.sent = snapshot.counters.sent.saturating_sub(base);
        Some(snapshot)
    }

    /// Ends it: those who wait for a key, and all who come, get an error ([`is_closed`](Error::is_closed)) at once. The global limiter may
    /// be somebody else's too and stays open: close it as well for those who wait there. Requests already sent are not touched.
    pub fn close(&self) {
        self.core.closed.store(true, Ordering::Relaxed);
        for limiter in self.core.table.limiters() {
            Limiter::over(limiter).close();
        }
        if let Some(limiter) = &self.core.spare {
            Limiter::over(Arc::clone(limiter)).close();
        }
    }

    fn concerns_all(&self, feedback: &Feedback) {
        if feedback.scope == Scope::Global {
            self.core.wider.observe_above(feedback);
        }
    }
}

impl<K> Clone for KeyedLimiter<K> {
    fn clone(&self) -> Self {
        Self {
            core: Arc::clone(&self.core),
        }
    }
}

impl<K> fmt::Debug for KeyedLimiter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedLimiter")
            .field("core", &self.core)
            .finish()
    }
}
