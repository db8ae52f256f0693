//! A quota that holds in *any* window: never more than so many in any stretch of that length.
//!
//! What left is counted in slots of a 64th of the window, and a slot is forgotten when a whole window has passed since its *end*. So
//! whatever left in the window up to now is counted, and a little of what left before: at most a 64th of the window, in which the
//! quota is not used to the full. Memory is bounded by the number of slots.
//!
//! What is set aside is counted as if it had left when it was set aside, so that nobody waits for a caller that never sends. Whoever
//! sends after that needs room like a newcomer.

use std::{collections::VecDeque, time::Duration};

use super::{
    quota::Quota,
    sound::{Unsound, holds, is_near},
    time::{Time, nanos},
};

const SLOTS: u64 = 64;

#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone)]
pub(super) struct Log {
    most: u64,
    window: u64,
    slot: u64,
    slots: VecDeque<Slot>,
    /// What counts in all, and what of it has left.
    used: u64,
    left: u64,
    now: Time,
}

/// What happened in a stretch of time and still counts.
#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy)]
struct Slot {
    /// Since time zero.
    number: u64,
    /// What was set aside and has not left.
    held: u64,
    /// What left.
    left: u64,
}

impl Log {
    /// The quota has been validated.
    pub(super) fn new(quota: &Quota, now: Time) -> Self {
        let window = nanos(quota.period());
        Self {
            most: u64::from(quota.amount()),
            window,
            slot: window.div_ceil(SLOTS).max(1),
            slots: VecDeque::new(),
            used: 0,
            left: 0,
            now,
        }
    }

    /// Whether it is one that this quota's can become.
    pub(super) fn check(&self, quota: &Quota) -> Result<(), Unsound> {
        let new = Self::new(quota, self.now);
        let shape = |log: &Self| (log.most, log.window, log.slot);
        holds(
            shape(self) == shape(&new),
            "a count in any window is that of its quota",
        )?;
        let last = self.slots.back().map(|slot| slot.number);
        holds(
            (self.slots.iter()).is_sorted_by(|one, next| one.number < next.number)
                && last.is_none_or(|last| last <= self.number(self.now)),
            "what left is counted in slots of the past, in order",
        )?;
        let sum = |part: fn(&Slot) -> u64| {
            (self.slots.iter()).try_fold(0_u64, |sum, slot| sum.checked_add(part(slot)))
        };
        let (held, left) = (sum(|slot| slot.held), sum(|slot| slot.left));
        let used = held.and_then(|held| held.checked_add(left?));
        holds(
            left == Some(self.left) && used == Some(self.used) && is_near(self.used),
            "what is used of a window is what its slots count",
        )
    }

    pub(super) fn advance(&mut self, now: Time) {
        self.now = self.now.max(now);
        while let Some(&slot) = self.slots.front() {
            if self.counts(slot.number) {
                break;
            }
            self.slots.pop_front();
            self.used -= slot.held + slot.left;
            self.left -= slot.left;
        }
        if self.slots.is_empty() {
            self.slots = VecDeque::new();
        }
    }

    pub(super) const fn level(&self) -> i128 {
        self.most as i128 - self.used as i128
    }

    pub(super) const fn can_take(&self, cost: u64) -> bool {
        cost == 0 || self.used + cost <= self.most
    }

    pub(super) fn take(&mut self, cost: u64) {
        if cost > 0 {
            self.used += cost;
            self.slot_now().held += cost;
        }
    }

    /// What was set aside at `since` and is not used.
    pub(super) fn give_back(&mut self, cost: u64, since: Time) {
        if let Some(slot) = self.slot_at(since) {
            let part = cost.min(slot.held);
            slot.held -= part;
            self.used -= part;
        }
    }

    /// Whether what was set aside at `since` may leave.
    pub(super) fn has_room(&self, cost: u64, since: Time) -> bool {
        // What others hold was set aside besides it, unless it counts no more.
        let others = if self.counts(self.number(since)) {
            self.left
        } else {
            self.used
        };
        cost == 0 || others + cost <= self.most
    }

    /// What was set aside at `since` leaves now; there is room.
    pub(super) fn depart(&mut self, cost: u64, since: Time) {
        self.give_back(cost, since);
        self.charge(cost);
    }

    /// What was never set aside counts as having left now.
    pub(super) fn charge(&mut self, cost: u64) {
        if cost > 0 {
            self.used += cost;
            self.left += cost;
            self.slot_now().left += cost;
        }
    }

    /// Undoes a departure at `sent`, as far as it still counts.
    pub(super) fn refund(&mut self, cost: u64, sent: Time) {
        if let Some(slot) = self.slot_at(sent) {
            let part = cost.min(slot.left);
            slot.left -= part;
            self.used -= part;
            self.left -= part;
        }
    }

    /// When `need` in all can have been set aside. Never later than it turns out, if what is held stays so.
    pub(super) fn due(&self, need: u64) -> Time {
        if self.can_take(need) {
            return self.now;
        }
        let mut missing = need.saturating_add(self.used) - self.most;
        for slot in &self.slots {
            let count = slot.held + slot.left;
            if missing <= count {
                return self.end(slot.number);
            }
            missing -= count;
        }
        // All that counts now has to end, and then whole windows.
        let last = self.slots.back().map(|slot| self.end(slot.number));
        let windows = 1 + missing.saturating_sub(1) / self.most;
        let wait = u128::from(self.window) * u128::from(windows);
        let wait = u64::try_from(wait).unwrap_or(u64::MAX);
        last.max(Some(self.now.after(Duration::from_nanos(wait))))
            .unwrap_or(Time::MAX)
    }

    /// Another amount from now on; what left still counts.
    pub(super) const fn resize(&mut self, most: u32) {
        self.most = most as u64;
    }

    const fn number(&self, at: Time) -> u64 {
        at.as_nanos() / self.slot
    }

    fn slot_now(&mut self) -> &mut Slot {
        let number = self.number(self.now);
        if self.slots.back().is_none_or(|slot| slot.number < number) {
            self.slots.push_back(Slot {
                number,
                held: 0,
                left: 0,
            });
        }
        self.slots.back_mut().expect("there is at least one")
    }

    /// What happened at that time, if it still counts.
    fn slot_at(&mut self, at: Time) -> Option<&mut Slot> {
        let number = self.number(at);
        let index = (self.slots)
            .binary_search_by_key(&number, |slot| slot.number)
            .ok()?;
        self.slots.get_mut(index)
    }

    fn counts(&self, slot: u64) -> bool {
        let end = self.end(slot);
        // The end of time never comes.
        end > self.now || end == Time::MAX
    }

    /// When what left in a slot counts no more.
    fn end(&self, slot: u64) -> Time {
        let end = (u128::from(slot) + 1) * u128::from(self.slot) + u128::from(self.window);
        Time::from_nanos(u64::try_from(end).unwrap_or(u64::MAX))
    }
}
