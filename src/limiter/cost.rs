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
/// Put it into a request's extensions to say what that request costs; see [`ThrottleLayer::cost`](crate::ThrottleLayer::cost).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cost {
    each: u32,
    named: [Option<(Cow<'static, str>, u32)>; QUOTAS],
    /// A name that found no place.
    beyond: Option<Cow<'static, str>>,
}

impl Cost {
    /// So much of each quota.
    #[must_use]
    pub const fn new(each: u32) -> Self {
        Self {
            each,
            named: [const { None }; QUOTAS],
            beyond: None,
        }
    }

    /// But so much of the quota of this name. A limiter that has none of this name refuses the request.
    #[must_use]
    pub fn of(mut self, quota: impl Into<Cow<'static, str>>, amount: u32) -> Self {
        let quota = quota.into();
        let free = |place: &&mut Option<(Cow<'_, str>, u32)>| {
            (place.as_ref()).is_none_or(|(name, _)| *name == quota)
        };
        let place = self.named.iter_mut().find(free);
        match place {
            Some(place) => *place = Some((quota, amount)),
            // There are no more quotas than places, so one of the names is unknown.
            None => self.beyond = Some(quota),
        }
        self
    }

    /// By the positions of this limiter's quotas.
    pub(crate) fn resolve(&self, shared: &Shared) -> Result<Costs, Error> {
        if let Some(name) = &self.beyond {
            return Err(Error::unknown_quota(name));
        }
        let mut costs = Costs::each(self.each);
        for (name, amount) in self.named.iter().flatten() {
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
