use std::time::Duration;

use crate::engine::{Flight, Grant, WaitReason};

/// Leave to do one unit of work, or several, for one key, now.
///
/// What it cost has been taken from the key's budget and from the global one; dropping it gives nothing back.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyedPermit {
    grant: Grant,
    above: Option<Above>,
}

/// The same departure in the limiter above all keys.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Above {
    pub(super) seq: u64,
    pub(super) flight: Flight,
}

impl Above {
    pub(super) const fn of(grant: &Grant) -> Self {
        Self {
            seq: grant.seq,
            flight: grant.flight,
        }
    }
}

impl KeyedPermit {
    pub(super) const fn new(grant: Grant, above: Option<Above>) -> Self {
        Self { grant, above }
    }

    pub(super) const fn grant(&self) -> &Grant {
        &self.grant
    }

    /// The caller's number in the records of its key, in order of arrival.
    #[must_use]
    pub const fn seq(&self) -> u64 {
        self.grant.seq
    }

    /// How long the caller waited, for its key and for the global limiter.
    #[must_use]
    pub const fn waited(&self) -> Duration {
        self.grant.waited
    }

    /// What it waited for last.
    #[must_use]
    pub const fn reason(&self) -> WaitReason {
        self.grant.reason
    }

    /// What was taken, from either.
    #[must_use]
    pub const fn cost(&self) -> u32 {
        self.grant.cost
    }

    /// Tokens that were left for the key.
    #[must_use]
    pub fn level(&self) -> f64 {
        self.grant.level()
    }

    /// The key's rate in use, in units a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.grant.rate()
    }

    pub(super) const fn above(&self) -> Option<Above> {
        self.above
    }
}
