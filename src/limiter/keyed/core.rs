use std::{
    fmt,
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{
    pass::Pass,
    permit::{Above, KeyedPermit},
    plans::Plans,
    table::{Kept, Table},
    wider::Wider,
};
use crate::{
    audit,
    engine::{Grant, Lean, Plan, Refusal, Time},
    error::Error,
    limiter::{Shared, clock::Clock},
};

/// Names a key in records.
pub(super) type Label<K> = dyn Fn(&K) -> String + Send + Sync;

/// What all handles of one keyed limiter share.
pub(crate) struct Core<K> {
    pub(super) name: Box<str>,
    pub(super) label: Option<Arc<Label<K>>>,
    /// All keys' limiters count from the same instant, so that the words kept of a key mean the same in all of them.
    pub(super) clock: Clock,
    pub(super) table: Table<K>,
    pub(super) plans: Plans<K>,
    pub(super) wider: Wider,
    /// What keys share for which there is no room, if they do.
    pub(super) spare: Option<Arc<Shared>>,
    pub(super) overflowed: AtomicU64,
    pub(super) closed: AtomicBool,
}

/// What came of an attempt to go through without waiting.
#[expect(
    clippy::large_enum_variant,
    reason = "moved once, where a box would cost an allocation for each request"
)]
enum Attempt {
    Sent(Grant, Option<Grant>),
    /// The key refuses it.
    ByKey(u64, Error),
    /// The global limiter refuses it.
    ByAbove(u64, Error),
    /// It would have to wait.
    Wait,
    /// The key has a limiter; that decides.
    Ask(Arc<Shared>),
}

/// What a caller who is ready to wait found.
pub(super) enum Start {
    Permit(KeyedPermit),
    Wait(Pass),
}

impl<K> Core<K>
where
    K: Hash + Eq + Clone,
{
    /// Takes `cost` for `key` and globally, now or not at all.
    pub(super) fn try_acquire(&self, key: &K, cost: u32) -> Result<KeyedPermit, Error> {
        let hash = self.table.hash(key);
        if let Some(permit) = self.try_known(key, hash, cost) {
            return Ok(permit);
        }
        let attempt = self.at(key, hash, |kept, now| match kept {
            Kept::Lean(lean, plan) => self.try_lean(lean, plan, now, cost),
            Kept::Full { .. } => self.ask(kept, now, hash),
        });
        self.wake_above();
        let attempt = self.known(attempt, cost)?;
        if let Attempt::Ask(limiter) = attempt {
            let attempt = self.try_full(&limiter, cost);
            self.wake_above();
            return self.conclude(attempt, cost, || limiter.name.clone());
        }
        self.conclude(attempt, cost, || self.name_of(key, hash))
    }

    /// The usual case, in short: a known key at rest that has tokens, and nothing else to look at. Changes nothing otherwise.
    fn try_known(&self, key: &K, hash: u64, cost: u32) -> Option<KeyedPermit> {
        if self.wider.above.is_some() || audit::enabled() {
            return None;
        }
        let now = self.clock.now();
        let mut slots = self.table.lock(hash);
        let Kept::Lean(lean, plan) = &mut slots.find(hash, key)?.state else {
            return None;
        };
        // It has taken part in the last pause for all, which is over, if there was one.
        let paused = lean.updated() < self.wider.all.until() || now < self.wider.all.until();
        if paused || self.closed.load(Ordering::Relaxed) {
            return None;
        }
        let grant = lean.take(plan, now, cost)?;
        drop(slots);
        Some(KeyedPermit::new(grant, None))
    }

    /// Goes through if nothing is in the way. Otherwise returns what to wait on.
    pub(super) fn start(&self, key: &K, cost: u32) -> Result<Start, Error> {
        let hash = self.table.hash(key);
        let attempt = self.at(key, hash, |kept, now| match kept {
            Kept::Lean(lean, plan) => {
                if self.is_free(lean, plan, now, cost) {
                    self.try_lean(lean, plan, now, cost)
                } else {
                    Attempt::Wait
                }
            }
            Kept::Full { .. } => self.ask(kept, now, hash),
        });
        self.wake_above();
        let limiter = match self.known(attempt, cost)? {
            Attempt::Ask(limiter) => limiter,
            attempt @ Attempt::Sent(..) => {
                let permit = self.conclude(attempt, cost, || self.name_of(key, hash))?;
                return Ok(Start::Permit(permit));
            }
            _ => self.limiter(key)?,
        };
        Ok(Start::Wait(Pass::new(limiter, self.wider.clone())))
    }

    /// The name of the whole.
    pub(crate) const fn name(&self) -> &str {
        &self.name
    }

    /// A way past the key and what is above it.
    pub(crate) fn pass(&self, key: &K) -> Result<Pass, Error> {
        Ok(Pass::new(self.limiter(key)?, self.wider.clone()))
    }

    /// The limiter of a key, made if need be.
    pub(super) fn limiter(&self, key: &K) -> Result<Arc<Shared>, Error> {
        let hash = self.table.hash(key);
        let all = &self.wider.all;
        // The application is not asked for a name under the lock, and only if one is needed.
        let mut name = None;
        loop {
            let limiter = self.at(key, hash, |kept, now| match kept {
                Kept::Lean(..) if self.label.is_some() && name.is_none() => None,
                _ => Some(kept.limiter(all, now, || {
                    name.take().unwrap_or_else(|| self.anonymous(hash))
                })),
            })?;
            match limiter {
                Some(limiter) => return Ok(limiter),
                None => name = Some(self.name_of(key, hash)),
            }
        }
    }

    /// The limiter of a tracked key, or for a key at rest one made up of what is kept of it, to look at.
    pub(super) fn look_at(&self, key: &K) -> Option<Arc<Shared>> {
        let hash = self.table.hash(key);
        let now = self.clock.now();
        let mut copy = match &self.table.lock(hash).find(hash, key)?.state {
            Kept::Full { limiter, .. } => return Some(Arc::clone(limiter)),
            Kept::Lean(lean, plan) => Kept::Lean(*lean, Arc::clone(plan)),
        };
        Some(copy.limiter(&self.wider.all, now, || self.name_of(key, hash)))
    }

    /// The limiter of a key if it has one. There is nothing of a key at rest that an answer without news could change.
    pub(super) fn limiter_in_use(&self, key: &K) -> Option<Arc<Shared>> {
        let hash = self.table.hash(key);
        let now = self.clock.now();
        match &mut self.table.lock(hash).find(hash, key)?.state {
            Kept::Lean(..) => None,
            Kept::Full {
                limiter, touched, ..
            } => {
                *touched = now;
                Some(Arc::clone(limiter))
            }
        }
    }

    /// The name of a key's limiter in records.
    pub(super) fn name_of(&self, key: &K, hash: u64) -> Box<str> {
        match &self.label {
            Some(label) => format!("{}/{}", self.name, label(key)).into(),
            None => self.anonymous(hash),
        }
    }

    /// Without a label a key is told from others by a number that says nothing about it: it may be a secret.
    fn anonymous(&self, hash: u64) -> Box<str> {
        format!("{}#{hash:016x}", self.name).into()
    }

    /// Calls `then` with what is kept of a key, made if need be, under the lock of its shard.
    fn at<R>(
        &self,
        key: &K,
        hash: u64,
        mut then: impl FnMut(&mut Kept, Time) -> R,
    ) -> Result<R, Error> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(Error::refused(Refusal::Closed));
        }
        let now = self.clock.now();
        if let Some(entry) = self.table.lock(hash).find(hash, key) {
            return Ok(then(&mut entry.state, now));
        }
        let plan = (self.plans.plan_for(key)).map_err(Error::invalid_quota)?;
        let key = key.clone();
        if !self.table.reserve(hash, now) {
            self.overflowed.fetch_add(1, Ordering::Relaxed);
            let limiter = self.spare.as_ref().ok_or_else(Error::too_many_keys)?;
            // Kept nowhere: the key is known for this call only.
            let mut kept = Kept::Full {
                limiter: Arc::clone(limiter),
                plan,
                touched: now,
            };
            return Ok(then(&mut kept, now));
        }
        let mut slots = self.table.lock(hash);
        let (entry, gone) = self.table.insert(&mut slots, hash, now, key, plan);
        let result = then(&mut entry.state, now);
        drop(slots);
        drop(gone);
        Ok(result)
    }

    fn ask(&self, kept: &mut Kept, now: Time, hash: u64) -> Attempt {
        Attempt::Ask(kept.limiter(&self.wider.all, now, || self.anonymous(hash)))
    }

    /// Whether a key at rest, and what is above it, could let `cost` out now.
    fn is_free(&self, lean: &mut Lean, plan: &Plan, now: Time, cost: u32) -> bool {
        self.wider.all.impose_on(lean, plan, now).is_none()
            && lean.could_send(plan, now, cost)
            && self.wider.above.as_ref().is_none_or(|above| {
                let now = above.shared().clock.now();
                (above.shared()).touch(|state| state.engine.could_send(now, cost))
            })
    }

    /// From the few words kept of a key at rest.
    fn try_lean(&self, lean: &mut Lean, plan: &Plan, now: Time, cost: u32) -> Attempt {
        if let Some(left) = self.wider.all.impose_on(lean, plan, now) {
            let refusal = if left > plan.config().max_pause {
                Refusal::Paused(left)
            } else {
                Refusal::WouldWait(left)
            };
            return Attempt::ByKey(lean.refuse(), Error::refused(refusal));
        }
        let above = match &self.wider.above {
            Some(above) if lean.could_send(plan, now, cost) => {
                match try_above(above.shared(), cost) {
                    Ok(grant) => Some(grant),
                    Err((seq, refusal)) => return Attempt::ByAbove(seq, Error::refused(refusal)),
                }
            }
            _ => None,
        };
        match lean.try_send(plan, now, cost) {
            Ok(grant) => Attempt::Sent(grant, above),
            Err((seq, refusal)) => Attempt::ByKey(seq, Error::refused(refusal)),
        }
    }

    fn try_full(&self, limiter: &Shared, cost: u32) -> Attempt {
        limiter.apply(|state, now| {
            self.wider.all.impose(state.engine.of_key(), now);
            let above = match &self.wider.above {
                Some(above) if state.engine.could_send(now, cost) => {
                    match try_above(above.shared(), cost) {
                        Ok(grant) => Some(grant),
                        Err((seq, refusal)) => {
                            return Attempt::ByAbove(seq, Error::refused(refusal));
                        }
                    }
                }
                _ => None,
            };
            match state.engine.try_send(now, cost) {
                Ok(grant) => Attempt::Sent(grant, above),
                Err((seq, refusal)) => {
                    state.counters.refused += 1;
                    Attempt::ByKey(seq, Error::refused(refusal))
                }
            }
        })
    }

    /// After something was taken from the limiter above under the lock of a key: wakes those whom time that has passed lets go.
    fn wake_above(&self) {
        if let Some(above) = &self.wider.above {
            above.shared().apply(|_, _| ());
        }
    }

    /// A caller for whose key there is no place is told, and it is recorded.
    fn known(&self, attempt: Result<Attempt, Error>, cost: u32) -> Result<Attempt, Error> {
        attempt.inspect_err(|error| audit::refused(&self.name, 0, cost, error))
    }

    /// Records what was decided, without any lock. `named` gives the name of the key's limiter.
    fn conclude(
        &self,
        attempt: Attempt,
        cost: u32,
        named: impl FnOnce() -> Box<str>,
    ) -> Result<KeyedPermit, Error> {
        let recorded = audit::enabled();
        match attempt {
            Attempt::Sent(grant, above) => {
                if recorded {
                    if let (Some(grant), Some(above)) = (&above, &self.wider.above) {
                        audit::acquired(&above.shared().name, grant);
                    }
                    audit::acquired(&named(), &grant);
                }
                Ok(KeyedPermit::new(grant, above.as_ref().map(Above::of)))
            }
            Attempt::ByKey(seq, error) => {
                if recorded {
                    audit::refused(&named(), seq, cost, &error);
                }
                Err(error)
            }
            Attempt::ByAbove(seq, error) => {
                if let Some(above) = &self.wider.above {
                    audit::refused(&above.shared().name, seq, cost, &error);
                }
                Err(error)
            }
            Attempt::Wait | Attempt::Ask(_) => {
                Err(Error::refused(Refusal::WouldWait(Duration::ZERO)))
            }
        }
    }
}

/// Takes from the limiter above all keys under the lock of a key: nobody is woken here.
fn try_above(above: &Shared, cost: u32) -> Result<Grant, (u64, Refusal)> {
    let now = above.clock.now();
    above.touch(|state| {
        let sent = state.engine.try_send(now, cost);
        state.counters.refused += u64::from(sent.is_err());
        sent
    })
}

impl<K> fmt::Debug for Core<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core")
            .field("name", &self.name)
            .field("plans", &self.plans)
            .finish_non_exhaustive()
    }
}
