//! A quota that holds in *any* window: never more than so many in any stretch of that length.
//!
//! What left is counted in slots of a 64th of the window, and a slot is forgotten when a whole window has passed since its *end*. So
//! whatever left in the window up to now is counted, and a little of what left before: at most a 64th of the window, in which the
//! quota is not used to the full. Memory is bounded by the number of slots.

use std::{collections::VecDeque, time::Duration};

use super::{
    quota::Quota,
    time::{Time, nanos},
};

const SLOTS: u64 = 64;

#[derive(Debug, Clone)]
pub(super) struct Log {
    most: u64,
    window: u64,
    slot: u64,
    /// What is set aside and has not left yet.
    held: u64,
    /// What left and counts, and the sum of it. A slot is named by its number since time zero.
    left: VecDeque<(u64, u64)>,
    sum: u64,
    now: Time,
}

impl Log {
    /// The quota has been validated.
    pub(super) fn new(quota: &Quota, now: Time) -> Self {
        let window = nanos(quota.period());
        Self {
            most: u64::from(quota.amount()),
            window,
            slot: window.div_ceil(SLOTS).max(1),
            held: 0,
            left: VecDeque::new(),
            sum: 0,
            now,
        }
    }

    pub(super) fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
        while let Some(&(slot, count)) = self.left.front() {
            if self.end(slot) > self.now {
                break;
            }
            self.left.pop_front();
            self.sum -= count;
        }
        if self.left.is_empty() {
            self.left = VecDeque::new();
        }
    }

    pub(super) const fn level(&self) -> i128 {
        self.most as i128 - self.used() as i128
    }

    pub(super) const fn can_take(&self, cost: u64) -> bool {
        cost == 0 || self.used().saturating_add(cost) <= self.most
    }

    pub(super) const fn take(&mut self, cost: u64) {
        self.held = self.held.saturating_add(cost);
    }

    /// What was set aside and is not used.
    pub(super) const fn give_back(&mut self, cost: u64) {
        self.held = self.held.saturating_sub(cost);
    }

    /// What was set aside leaves now.
    pub(super) fn depart(&mut self, cost: u64) {
        self.give_back(cost);
        self.charge(cost);
    }

    /// What was never set aside counts as having left now.
    pub(super) fn charge(&mut self, cost: u64) {
        if cost == 0 {
            return;
        }
        let slot = self.now.as_nanos() / self.slot;
        self.sum = self.sum.saturating_add(cost);
        match self.left.back_mut() {
            Some((last, count)) if *last >= slot => *count = count.saturating_add(cost),
            _ => self.left.push_back((slot, cost)),
        }
    }

    /// Undoes the newest departures.
    pub(super) fn refund(&mut self, mut cost: u64) {
        while let Some((_, count)) = self.left.back_mut() {
            let part = cost.min(*count);
            *count -= part;
            self.sum -= part;
            cost -= part;
            if *count > 0 {
                break;
            }
            self.left.pop_back();
        }
    }

    /// When `need` in all can have been set aside, if those who hold some leave now. Never later than it turns out.
    pub(super) fn due(&self, need: u64) -> Time {
        let free = self.most.saturating_sub(self.used());
        if need <= free || need == 0 {
            return self.now;
        }
        let mut missing = need - free;
        for &(slot, count) in &self.left {
            if missing <= count {
                return self.end(slot);
            }
            missing -= count;
        }
        // What is held now, and then whole windows.
        let windows = 1 + missing.saturating_sub(self.held).saturating_sub(1) / self.most;
        let wait = u128::from(self.window) * u128::from(windows);
        let wait = u64::try_from(wait).unwrap_or(u64::MAX);
        self.now.after(Duration::from_nanos(wait))
    }

    /// Another amount from now on; what left still counts.
    pub(super) const fn resize(&mut self, most: u32) {
        self.most = most as u64;
    }

    pub(super) const fn is_pristine(&self) -> bool {
        self.sum == 0 && self.held == 0
    }

    const fn used(&self) -> u64 {
        self.sum.saturating_add(self.held)
    }

    /// When what left in a slot counts no more.
    fn end(&self, slot: u64) -> Time {
        let end = (u128::from(slot) + 1) * u128::from(self.slot) + u128::from(self.window);
        Time::from_nanos(u64::try_from(end).unwrap_or(u64::MAX))
    }
}
