use std::time::Duration;

use crate::{
    engine::{Flight, Grant},
    limiter::Permit,
};

/// Leave to do one unit of work, or several, for one key, now.
///
/// What it cost has been taken from the key's budget and from the global one; dropping it gives nothing back.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyedPermit {
    permit: Permit,
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
        Self {
            permit: Permit::new(grant),
            above,
        }
    }

    /// The permit of the key's limiter.
    #[must_use]
    pub const fn permit(&self) -> &Permit {
        &self.permit
    }

    /// How long the caller waited, for its key and for the global limiter.
    #[must_use]
    pub const fn waited(&self) -> Duration {
        self.permit.waited()
    }

    /// What was taken, from either.
    #[must_use]
    pub const fn cost(&self) -> u32 {
        self.permit.cost()
    }

    pub(super) const fn above(&self) -> Option<Above> {
        self.above
    }
}
