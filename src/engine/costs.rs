use super::bucket::Bucket;

/// The most quotas one limiter can have.
pub const QUOTAS: usize = 4;

/// What a request takes, by the position of the quota.
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Costs([u32; QUOTAS]);

impl Costs {
    /// Nothing.
    pub const NONE: Self = Self([0; QUOTAS]);

    /// So much of each quota.
    #[must_use]
    pub const fn each(cost: u32) -> Self {
        Self([cost; QUOTAS])
    }

    /// The same, but for the quota at `index`. An index there is no quota for changes nothing.
    #[must_use]
    pub const fn with(mut self, index: usize, cost: u32) -> Self {
        if index < QUOTAS {
            self.0[index] = cost;
        }
        self
    }

    /// What it takes of the first quota, which is the one whose units the server's budgets are counted in.
    #[must_use]
    pub const fn first(&self) -> u32 {
        self.0[0]
    }

    /// What it takes of the quota at `index`.
    #[must_use]
    pub const fn of(&self, index: usize) -> u32 {
        if index < QUOTAS { self.0[index] } else { 0 }
    }

    /// What is in `self` above `other`, quota by quota.
    #[must_use]
    pub fn above(&self, other: &Self) -> Self {
        let mut costs = *self;
        for (cost, other) in costs.0.iter_mut().zip(other.0) {
            *cost = cost.saturating_sub(other);
        }
        costs
    }
}

impl From<u32> for Costs {
    fn from(cost: u32) -> Self {
        Self::each(cost)
    }
}

/// Sums of costs. Those that run along a line wrap; only differences mean something.
#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Sums([u64; QUOTAS]);

impl Sums {
    pub(super) const NONE: Self = Self([0; QUOTAS]);

    pub(super) const fn of(self, index: usize) -> u64 {
        self.0[index]
    }

    pub(super) const fn plus(mut self, costs: &Costs) -> Self {
        let mut index = 0;
        while index < QUOTAS {
            self.0[index] = self.0[index].wrapping_add(costs.0[index] as u64);
            index += 1;
        }
        self
    }

    pub(super) const fn minus(mut self, costs: &Costs) -> Self {
        let mut index = 0;
        while index < QUOTAS {
            self.0[index] = self.0[index].wrapping_sub(costs.0[index] as u64);
            index += 1;
        }
        self
    }

    /// How far `self` is ahead of `base`; nothing where it is behind.
    pub(super) fn since(self, base: Self) -> Self {
        let mut sums = self;
        for (sum, base) in sums.0.iter_mut().zip(base.0) {
            // Wrapped, so by its sign.
            *sum = u64::try_from(sum.wrapping_sub(base) as i64).unwrap_or(0);
        }
        sums
    }

    pub(super) fn max(self, costs: &Costs) -> Self {
        let mut sums = self;
        for (sum, &cost) in sums.0.iter_mut().zip(&costs.0) {
            *sum = (*sum).max(u64::from(cost));
        }
        sums
    }

    pub(super) const fn add_wrapping(mut self, other: Self) -> Self {
        let mut index = 0;
        while index < QUOTAS {
            self.0[index] = self.0[index].wrapping_add(other.0[index]);
            index += 1;
        }
        self
    }

    /// `share` of `all` parts of it, rounded down.
    pub(super) fn part(self, share: u64, all: u64) -> Self {
        let mut sums = self;
        for sum in &mut sums.0 {
            let part = u128::from(*sum) * u128::from(share) / u128::from(all.max(1));
            *sum = u64::try_from(part).map_or(*sum, |part| part.min(*sum));
        }
        sums
    }

    pub(super) fn add(self, other: Self) -> Self {
        let mut sums = self;
        for (sum, other) in sums.0.iter_mut().zip(other.0) {
            *sum = sum.saturating_add(other);
        }
        sums
    }
}

impl Bucket {
    /// Credits of what is taken from this bucket, which is the quota at `index`.
    pub(super) fn credits_of(&self, costs: &Costs, index: usize) -> i128 {
        self.credits(u64::from(costs.of(index)))
    }
}
