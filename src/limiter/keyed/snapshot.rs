use std::time::Duration;

use crate::{engine::Cause, limiter::Snapshot};

/// What a [`KeyedLimiter`](super::KeyedLimiter) looks like at one instant, over all keys.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct KeyedSnapshot {
    /// The limiter's name.
    pub name: String,
    /// How many keys are tracked. A key that has been idle until its bucket was full is tracked until somebody looks.
    pub keys: usize,
    /// The most that may be tracked.
    pub max_keys: usize,
    /// Keys forgotten so far because nothing told them from new ones.
    pub forgotten: u64,
    /// Calls that found no room for their key, and were refused or went to the shared limiter.
    pub overflowed: u64,
    /// What is left of a pause for all keys, and what set it.
    pub pause: Option<(Duration, Cause)>,
    /// The limiter above all keys.
    pub global: Option<Snapshot>,
    /// The limiter that keys share for which there is no room, with [`Overflow::Share`](super::Overflow::Share).
    pub shared: Option<Snapshot>,
}
