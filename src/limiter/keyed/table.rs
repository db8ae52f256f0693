//! The keys and what is kept of each.
//!
//! # Forgetting
//!
//! Each shard has a heap of instants at which to look at a key. For a key at rest that is when its bucket is full again; sending more only
//! makes it later, so it is not moved then but looked at too early and put back. Each new key looks at two that have been due for half a
//! second, so the table shrinks as it grows, and nobody ever waits for a scan. When the cap is reached, the due keys of all shards are forgotten before
//! anybody is refused; if the earliest instant of no shard has come, there is none, and that costs a look at each shard.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, binary_heap::PeekMut},
    hash::{BuildHasher, Hash, RandomState},
    mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use hashbrown::HashTable;

use super::pause::PauseForAll;
use crate::{
    engine::{Lean, Plan, Time},
    limiter::Shared,
};

/// How many due keys a new one looks at.
const LOOKS: usize = 2;
/// How many are forgotten at once, at most, when there is no room. More in one go would hold the lock for long.
const BATCH: usize = 16;
/// For how long a key whose bucket is full is left alone while there is room, so that those in use do not come and go all the time.
const GRACE: Duration = Duration::from_millis(500);
/// How long a key that is in use, or has learnt something, is left alone before it is looked at again.
const BUSY: Duration = Duration::from_millis(250);
/// A table that is filled to less than this part of its memory gives memory back when it is swept.
const SPARSE: usize = 4;

/// One key.
#[derive(Debug)]
pub(super) struct Entry<K> {
    pub(super) key: K,
    pub(super) state: Kept,
}

/// What is kept of a key.
#[derive(Debug)]
pub(super) enum Kept {
    /// At rest: the level of its bucket.
    Lean(Lean, Arc<Plan>),
    /// In use, or it has learnt something. `touched`: when somebody last asked for it.
    Full {
        limiter: Arc<Shared>,
        plan: Arc<Plan>,
        touched: Time,
    },
}

impl Kept {
    /// The limiter; made from what is kept if there is none. `named` gives it its name.
    pub(super) fn limiter(
        &mut self,
        all: &PauseForAll,
        now: Time,
        named: impl FnOnce() -> Box<str>,
    ) -> Arc<Shared> {
        match self {
            Self::Full {
                limiter, touched, ..
            } => {
                *touched = now;
                Arc::clone(limiter)
            }
            Self::Lean(lean, plan) => {
                lean.pause_until(plan, all.until());
                let mut engine = lean.wake(plan, now);
                all.impose(&mut engine, now);
                let clock = all.clock().clone();
                let limiter = Arc::new(Shared::on_clock(named(), engine, clock, lean.seq()));
                *self = Self::Full {
                    limiter: Arc::clone(&limiter),
                    plan: Arc::clone(plan),
                    touched: now,
                };
                limiter
            }
        }
    }

    /// Puts it to rest if it can be. Returns when to look at it next, or `None` with its last number if it cannot be told from a new one.
    fn look(&mut self, all: &PauseForAll, now: Time) -> Result<Time, u64> {
        if let Self::Full {
            limiter,
            plan,
            touched,
        } = self
        {
            // Others can come by the handle only under the lock of the shard.
            let unused = Arc::strong_count(limiter) == 1;
            let rest = unused.then(|| {
                limiter.touch(|state| {
                    all.impose(state.engine.of_key(), now);
                    state.engine.of_key().rest(now, now.since(*touched))
                })
            });
            let Some(lean) = rest.flatten() else {
                return Ok(now.after(BUSY));
            };
            *self = Self::Lean(lean, Arc::clone(plan));
        }
        let Self::Lean(lean, plan) = self else {
            return Ok(now.after(BUSY));
        };
        lean.pause_until(plan, all.until());
        match lean.full_at(plan) {
            at if at <= now => Err(lean.seq()),
            at => Ok(at),
        }
    }
}

/// All keys, in shards with a lock each.
#[derive(Debug)]
pub(super) struct Table<K> {
    shards: Box<[Shard<K>]>,
    hasher: RandomState,
    len: AtomicUsize,
    max: usize,
    forgotten: AtomicU64,
    all: Arc<PauseForAll>,
}

/// On a cache line of its own, so that threads with different keys do not disturb each other.
#[derive(Debug)]
#[repr(align(64))]
struct Shard<K>(Mutex<Slots<K>>);

#[derive(Debug)]
pub(super) struct Slots<K> {
    entries: HashTable<Entry<K>>,
    /// When to look at which key, by its hash.
    due: BinaryHeap<Reverse<(Time, u64)>>,
    /// No number up to this one is given to callers of a new key, as a forgotten one may have been given it.
    seq: u64,
}

impl<K: Hash + Eq> Table<K> {
    pub(super) fn new(max: usize, all: Arc<PauseForAll>) -> Self {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let shards = (threads * 4).next_power_of_two().clamp(8, 256);
        let empty = || {
            Shard(Mutex::new(Slots {
                entries: HashTable::new(),
                due: BinaryHeap::new(),
                seq: 0,
            }))
        };
        Self {
            shards: (0..shards).map(|_| empty()).collect(),
            hasher: RandomState::new(),
            len: AtomicUsize::new(0),
            max,
            forgotten: AtomicU64::new(0),
            all,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    pub(super) const fn max(&self) -> usize {
        self.max
    }

    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten.load(Ordering::Relaxed)
    }

    pub(super) fn hash(&self, key: &K) -> u64 {
        self.hasher.hash_one(key)
    }

    /// The shard of a key, locked.
    pub(super) fn lock(&self, hash: u64) -> MutexGuard<'_, Slots<K>> {
        // The table within uses the lowest bits and the highest seven.
        let index = (hash >> 40) as usize & (self.shards.len() - 1);
        self.shards[index].lock()
    }

    /// Tracks a key that may not be there yet, in its locked shard. `room` is what [`reserve`](Self::reserve) gave; it is given back if it
    /// is not needed. What was forgotten meanwhile is to be dropped after the lock is released.
    pub(super) fn insert<'a>(
        &self,
        slots: &'a mut Slots<K>,
        hash: u64,
        now: Time,
        key: K,
        plan: Arc<Plan>,
    ) -> (&'a mut Entry<K>, Vec<Entry<K>>) {
        if slots.find(hash, &key).is_some() {
            // Another thread was faster.
            self.len.fetch_sub(1, Ordering::Relaxed);
            let entry = slots.find(hash, &key).expect("it was there just now");
            return (entry, Vec::new());
        }
        let mut gone = Vec::new();
        let until = Time::from_nanos(now.since(Time::ZERO.after(GRACE)).as_nanos() as u64);
        slots.forget_due(&self.hasher, &self.all, now, until, LOOKS, &mut gone);
        self.count_forgotten(gone.len());
        let lean = Lean::new(&plan, now, slots.seq);
        slots.due.push(Reverse((lean.full_at(&plan), hash)));
        let entry = Entry {
            key,
            state: Kept::Lean(lean, plan),
        };
        let hasher = &self.hasher;
        let entry = (slots.entries)
            .insert_unique(hash, entry, |entry| hasher.hash_one(&entry.key))
            .into_mut();
        (entry, gone)
    }

    /// Makes room for one more key, if need be by forgetting others. False if none can be forgotten.
    pub(super) fn reserve(&self, hash: u64, now: Time) -> bool {
        let first = (hash >> 40) as usize;
        loop {
            let more = |len| (len < self.max).then_some(len + 1);
            let order = Ordering::Relaxed;
            if self.len.fetch_update(order, order, more).is_ok() {
                return true;
            }
            let forgotten = (0..self.shards.len()).any(|step| {
                let mut gone = Vec::new();
                let index = (first + step) & (self.shards.len() - 1);
                let mut slots = self.shards[index].lock();
                slots.forget_due(&self.hasher, &self.all, now, now, usize::MAX, &mut gone);
                drop(slots);
                self.count_forgotten(gone.len());
                !gone.is_empty()
            });
            if !forgotten {
                return false;
            }
        }
    }

    /// Looks at every key and forgets all that can be. Returns how many.
    pub(super) fn sweep(&self, now: Time) -> usize {
        let mut forgotten = 0;
        for shard in &self.shards {
            let mut gone = Vec::new();
            let mut slots = shard.lock();
            slots.sweep(&self.hasher, &self.all, now, &mut gone);
            drop(slots);
            self.count_forgotten(gone.len());
            forgotten += gone.len();
        }
        forgotten
    }

    /// The limiters of all keys that have one.
    pub(super) fn limiters(&self) -> Vec<Arc<Shared>> {
        let mut limiters = Vec::new();
        for shard in &self.shards {
            let slots = shard.lock();
            limiters.extend(slots.entries.iter().filter_map(|entry| match &entry.state {
                Kept::Full { limiter, .. } => Some(Arc::clone(limiter)),
                Kept::Lean(..) => None,
            }));
        }
        limiters
    }

    fn count_forgotten(&self, count: usize) {
        if count > 0 {
            self.len.fetch_sub(count, Ordering::Relaxed);
            self.forgotten.fetch_add(count as u64, Ordering::Relaxed);
        }
    }
}

impl<K> Shard<K> {
    fn lock(&self) -> MutexGuard<'_, Slots<K>> {
        // Each step leaves it sound, even if a key's own `eq` or `hash` panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Hash + Eq> Slots<K> {
    pub(super) fn find(&mut self, hash: u64, key: &K) -> Option<&mut Entry<K>> {
        self.entries.find_mut(hash, |entry| entry.key == *key)
    }

    /// Looks at up to `looks` keys that were due at `until` and moves those that can be forgotten now to `gone`.
    fn forget_due(
        &mut self,
        hasher: &RandomState,
        all: &PauseForAll,
        now: Time,
        until: Time,
        looks: usize,
        gone: &mut Vec<Entry<K>>,
    ) {
        for _ in 0..looks {
            if gone.len() == BATCH {
                break;
            }
            let Some(mut first) = self.due.peek_mut().filter(|first| first.0.0 <= until) else {
                break;
            };
            let hash = first.0.1;
            // Two keys with the same hash share their instants; a full sweep finds what that may miss.
            let found =
                (self.entries).find_entry(hash, |entry| hasher.hash_one(&entry.key) == hash);
            let Ok(mut entry) = found else {
                PeekMut::pop(first);
                continue;
            };
            match entry.get_mut().state.look(all, now) {
                Ok(next) => first.0.0 = next,
                Err(seq) => {
                    PeekMut::pop(first);
                    self.seq = self.seq.max(seq);
                    gone.push(entry.remove().0);
                }
            }
        }
    }

    /// Looks at every key, and gives memory back if few are left.
    fn sweep(
        &mut self,
        hasher: &RandomState,
        all: &PauseForAll,
        now: Time,
        gone: &mut Vec<Entry<K>>,
    ) {
        let mut seq = self.seq;
        let mut due = mem::take(&mut self.due).into_vec();
        due.clear();
        let forgotten = self
            .entries
            .extract_if(|entry| match entry.state.look(all, now) {
                Ok(next) => {
                    due.push(Reverse((next, hasher.hash_one(&entry.key))));
                    false
                }
                Err(last) => {
                    seq = seq.max(last);
                    true
                }
            });
        gone.extend(forgotten);
        self.seq = seq;
        if due.capacity() / SPARSE >= due.len() {
            due.shrink_to_fit();
        }
        self.due = due.into();
        if self.entries.capacity() / SPARSE >= self.entries.len() {
            (self.entries).shrink_to_fit(|entry| hasher.hash_one(&entry.key));
        }
    }
}
