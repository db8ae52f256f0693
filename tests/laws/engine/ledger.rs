//! What a quota allows, kept beside the engine: the law of the ceiling itself, over all windows that end now.

use std::time::Duration;

use tower_throttle::Quota;

/// Timers may be this late, so this much more may leave.
const SLACK: f64 = 10_000_000.0;

/// The lowest rate is this part of the quota's.
const FLOOR: u128 = 1_100;

/// One quota, and what left under it.
#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    quota: Quota,
    /// What may leave now without breaking the ceiling in any window, and when that was so. Only for those that count a rate.
    room: f64,
    at: u64,
    /// The largest debt there was.
    deepest: f64,
    /// The debt is larger than what the engine keeps, which is more than it can be given at once.
    lost: bool,
    /// What left when. Only for those that hold in any window.
    left: Vec<(u64, u64)>,
}

impl Ledger {
    pub(crate) fn new(quota: Quota) -> Self {
        let mut ledger = Self {
            quota,
            room: 0.0,
            at: 0,
            deepest: 0.0,
            lost: false,
            left: Vec::new(),
        };
        ledger.room = ledger.most();
        ledger
    }

    pub(crate) fn burst(&self) -> u32 {
        self.quota.burst_size()
    }

    fn rate(&self) -> f64 {
        f64::from(self.quota.amount()) / self.quota.period().as_nanos() as f64
    }

    fn most(&self) -> f64 {
        f64::from(self.quota.burst_size()) + self.rate() * SLACK
    }

    /// What floating point may be off by.
    fn grain(&self) -> f64 {
        self.most() * 1e-9 + self.deepest * 1e-14
    }

    fn pass(&mut self, now: u64) {
        let earned = self.rate() * (now - self.at) as f64;
        self.room = (self.room + earned).min(self.most());
        self.at = now;
    }

    /// So much leaves now.
    pub(crate) fn left(&mut self, now: u64, cost: u32) {
        if cost == 0 {
            return;
        }
        self.pass(now);
        if self.quota.is_strict() {
            self.left.push((now, u64::from(cost)));
            let window = self.quota.period().as_nanos() as u64;
            let recent = self.left.iter().rev();
            let recent = recent.take_while(|&&(at, _)| now - at <= window);
            let sum: u64 = recent.map(|&(_, cost)| cost).sum();
            assert!(
                sum <= u64::from(self.quota.amount()),
                "{sum} in one window of {:?} at {now}",
                self.quota
            );
        } else {
            assert!(
                self.lost || self.room + self.grain() >= f64::from(cost),
                "the ceiling of {:?} is broken at {now}: {cost} left where {} may",
                self.quota,
                self.room
            );
        }
        self.room -= f64::from(cost);
    }

    /// So much left that nobody had asked for: it is repaid by those who follow.
    pub(crate) fn borrowed(&mut self, now: u64, cost: u32) {
        self.pass(now);
        self.room -= f64::from(cost);
        self.deepest = self.deepest.max(-self.room);
        let period = self.quota.period().as_nanos() as f64;
        self.lost |= self.room * period < -1.4 * 2_f64.powi(94);
    }

    /// So much of what left then does not count.
    pub(crate) fn returned(&mut self, now: u64, sent: u64, cost: u32) {
        self.pass(now);
        self.room = (self.room + f64::from(cost)).min(self.most());
        let mut cost = u64::from(cost);
        for (_, left) in self.left.iter_mut().filter(|(at, _)| *at == sent) {
            let part = cost.min(*left);
            *left -= part;
            cost -= part;
        }
    }

    pub(crate) fn change(&mut self, now: u64, quota: Quota) {
        self.pass(now);
        self.quota = quota;
        self.room = self.room.min(self.most());
    }

    /// What is shown can really leave.
    pub(crate) fn check_level(&mut self, now: u64, level: f64) {
        self.pass(now);
        assert!(level.is_finite());
        if !self.quota.is_strict() {
            let most = self.most() + self.grain();
            assert!(level <= most, "{level} of {:?}", self.quota);
        }
    }

    /// The longest it takes for `cost` in all to leave, as so many callers.
    pub(crate) fn slowest(&self, cost: u64, callers: u64) -> u128 {
        let period = self.quota.period().as_nanos();
        let rate = u128::from(cost) * FLOOR * period / u128::from(self.quota.amount());
        let windows = if self.quota.is_strict() {
            u128::from(callers) * (period * 66 / 64 + 2)
        } else {
            0
        };
        rate + windows + 2 * SLACK as u128 + Duration::from_secs(1).as_nanos()
    }
}
