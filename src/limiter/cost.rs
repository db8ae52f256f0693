use std::borrow::Cow;

use super::shared::Shared;
use crate::{
    engine::{Costs, QUOTAS},
    error::Error,
};

/// What a request takes: so much of each quota of its limiter, and other amounts of those that are named.
///
/// For a plain limiter with one quota `Cost::new(3)` is three units. With several it is three of each; name those that count something
/// else.
///
/// ```
/// use tower_throttle::Cost;
///
/// // One request of 1,200 tokens.
/// let cost = Cost::new(1).of("tokens", 1_200);
/// // With a name from a configuration file.
/// let name = String::from("tokens");
/// assert_eq!(cost, Cost::new(1).of(name, 1_200));
/// ```
///
/// A cost that names no quota allocates nothing.
///
/// Put it into a request's extensions to say what that request costs; see [`ThrottleLayer::cost`](crate::ThrottleLayer::cost).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cost {
    each: u32,
    /// One more than there can be quotas at most.
    named: Vec<(Cow<'static, str>, u32)>,
}

impl Cost {
    /// So much of each quota.
    #[must_use]
    pub const fn new(each: u32) -> Self {
        Self {
            each,
            named: Vec::new(),
        }
    }

    /// But so much of the quota of this name. A limiter that has none of this name refuses the request.
    #[must_use]
    pub fn of(mut self, quota: impl Into<Cow<'static, str>>, amount: u32) -> Self {
        let quota = quota.into();
        if let Some((_, known)) = self.named.iter_mut().find(|(name, _)| *name == quota) {
            *known = amount;
        } else if self.named.len() <= QUOTAS {
            // There are no more quotas, so one of the names is unknown by now.
            self.named.push((quota, amount));
        }
        self
    }

    /// By the positions of this limiter's quotas.
    pub(crate) fn resolve(&self, shared: &Shared) -> Result<Costs, Error> {
        let mut costs = Costs::each(self.each);
        for (name, amount) in &self.named {
            let index = (shared.quota_index(name)).ok_or_else(|| Error::unknown_quota(name))?;
            costs = costs.with(index, *amount);
        }
        Ok(costs)
    }
}

impl Default for Cost {
    /// One of each quota.
    fn default() -> Self {
        Self::new(1)
    }
}

impl From<u32> for Cost {
    fn from(each: u32) -> Self {
        Self::new(each)
    }
}
