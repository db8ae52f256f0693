use std::time::Duration;

use super::{At, Decision, Rule};

/// A rate that changes at given times; the first entry is for the start.
#[derive(Debug, Clone)]
pub(crate) struct Plan(Vec<(At, f64)>);

impl Plan {
    pub(crate) fn steady(rate: f64) -> Self {
        Self(vec![(At::ZERO, rate)])
    }

    pub(crate) fn steps(steps: impl IntoIterator<Item = (u64, f64)>) -> Self {
        let steps = steps.into_iter();
        Self(
            steps
                .map(|(second, rate)| (At::from_secs(second), rate))
                .collect(),
        )
    }

    pub(crate) fn at(&self, at: At) -> f64 {
        let after = self.0.partition_point(|&(from, _)| from <= at);
        self.0[after.saturating_sub(1)].1
    }

    /// What comes from `from` to `to`.
    fn sum(&self, from: At, to: At) -> f64 {
        let ends = self.0.iter().skip(1).map(|&(at, _)| at).chain([At::MAX]);
        self.0
            .iter()
            .zip(ends)
            .map(|(&(start, rate), end)| {
                let time = to.min(end).saturating_sub(from.max(start));
                rate * time.as_secs_f64()
            })
            .sum()
    }
}

/// A token bucket that starts full. It allows its rate, whatever the burst: that can only be used once.
#[derive(Debug)]
pub(crate) struct Bucket {
    plan: Plan,
    burst: f64,
    level: f64,
    updated: At,
}

impl Bucket {
    pub(crate) fn new(plan: Plan, burst: f64) -> Self {
        Self {
            plan,
            burst,
            level: burst,
            updated: At::ZERO,
        }
    }
}

impl Rule for Bucket {
    fn decide(&mut self, now: At) -> Decision {
        let came = self.plan.sum(self.updated, now);
        self.level = (self.level + came).min(self.burst);
        self.updated = now;
        // What is missing by rounding alone is there.
        if self.level > 1.0 - 1e-9 {
            self.level -= 1.0;
            return Decision::ACCEPTED;
        }
        let wait = (1.0 - self.level) / self.plan.at(now);
        Decision::refused(Duration::from_secs_f64(wait))
    }

    fn limit(&self, at: At) -> f64 {
        self.plan.at(at)
    }
}

/// nginx's `limit_req` with `nodelay`, which is GCRA: each request fills by one, time drains, and what would stand above the burst is
/// refused. So one more than the burst can come at once. It allows its rate.
#[derive(Debug)]
pub(crate) struct Leaky {
    rate: f64,
    burst: f64,
    excess: f64,
    updated: Option<At>,
}

impl Leaky {
    pub(crate) const fn new(rate: f64, burst: f64) -> Self {
        Self {
            rate,
            burst,
            excess: 0.0,
            updated: None,
        }
    }
}

impl Rule for Leaky {
    fn decide(&mut self, now: At) -> Decision {
        let excess = match self.updated {
            None => 0.0,
            Some(updated) => {
                let drained = self.rate * now.saturating_sub(updated).as_secs_f64();
                (self.excess - drained + 1.0).max(0.0)
            }
        };
        if excess > self.burst + 1e-9 {
            return Decision::refused(Duration::from_secs_f64((excess - self.burst) / self.rate));
        }
        self.excess = excess;
        self.updated = Some(now);
        Decision::ACCEPTED
    }

    fn limit(&self, _: At) -> f64 {
        self.rate
    }
}
