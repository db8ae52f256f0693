use std::time::Duration;

use crate::engine::{Grant, WaitReason};

/// Leave to do one unit of work, or several, now.
///
/// What it cost has been taken; dropping it gives nothing back.
#[derive(Debug, Clone, PartialEq)]
pub struct Permit {
    grant: Grant,
}

impl Permit {
    pub(super) const fn new(grant: Grant) -> Self {
        Self { grant }
    }

    pub(super) const fn grant(&self) -> &Grant {
        &self.grant
    }

    /// The caller's number in the limiter's records, in order of arrival.
    #[must_use]
    pub const fn seq(&self) -> u64 {
        self.grant.seq
    }

    /// What was taken.
    #[must_use]
    pub const fn cost(&self) -> u32 {
        self.grant.cost
    }

    /// How long the caller stood in line. Zero if it did not wait.
    #[must_use]
    pub const fn waited(&self) -> Duration {
        self.grant.waited
    }

    /// What it waited for last.
    #[must_use]
    pub const fn reason(&self) -> WaitReason {
        self.grant.reason
    }

    /// Tokens that were left.
    #[must_use]
    pub fn level(&self) -> f64 {
        self.grant.level()
    }

    /// The rate in use, in units a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.grant.rate()
    }
}
