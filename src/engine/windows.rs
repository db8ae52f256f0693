//! Budgets the server announced: so much is left until a reset. Each gates until its reset and is then forgotten.

use std::time::Duration;

use super::{answer::Reading, config::Spend, time::Time};

/// The most budgets kept at once; the tightest are kept.
const MAX_WINDOWS: usize = 8;

/// Resets are announced in whole seconds: two readings this close speak of the same window.
const GRAIN: Duration = Duration::from_secs(1);

/// One budget as the server last described it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// The policy's name, if it has one.
    pub name: Option<Box<str>>,
    /// What the server allows in the whole window.
    pub limit: Option<u64>,
    /// The least that was seen to remain in this window, less what was used since without an answer that says so.
    pub left: u64,
    /// When the window ends, by the engine's clock.
    pub reset: Time,
    /// The highest rate this budget allows, in credits a nanosecond.
    pub(super) even: u64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Windows {
    list: Vec<Window>,
}

impl Windows {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Window> {
        self.list.iter()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Forgets what has ended. True if something was forgotten.
    pub(super) fn expire(&mut self, now: Time) -> bool {
        let before = self.list.len();
        if before > 0 {
            self.list.retain(|window| window.reset > now);
        }
        self.list.len() != before
    }

    /// The lowest rate any budget allows at `at`, and when that changes.
    pub(super) fn rate_at(&self, at: Time) -> (u64, Time) {
        self.list
            .iter()
            .filter(|window| window.reset > at)
            .fold((u64::MAX, Time::MAX), |(rate, end), window| {
                (rate.min(window.even), end.min(window.reset))
            })
    }

    /// Until when the budgets forbid `used` units beyond those already answered: zero if they do not.
    pub(super) fn closed_until(&self, used: u64) -> Time {
        self.list
            .iter()
            .filter(|window| window.left < used)
            .map(|window| window.reset)
            .max()
            .unwrap_or(Time::ZERO)
    }

    /// Takes in what an answer says. `cost` is what its request used, `outstanding` what is still on its way or held; `even` turns
    /// an amount and a time into a rate.
    pub(super) fn observe(
        &mut self,
        now: Time,
        readings: &[Reading<'_>],
        cost: u64,
        outstanding: u64,
        spend: Spend,
        even: impl Fn(u64, Duration) -> u64,
    ) {
        self.charge_unread(cost, readings);
        for reading in readings {
            let (Some(remaining), Some(reset)) = (reading.remaining, reading.reset) else {
                continue;
            };
            if reset.is_zero() || !reading.paces {
                continue;
            }
            let reset = now.after(reset);
            let Some(window) = self.find_or_insert(reading, remaining, reset) else {
                continue;
            };
            if reset > window.reset.after(GRAIN) {
                window.left = remaining;
                window.reset = reset;
            } else if reset.after(GRAIN) < window.reset {
                // An answer from before this window began.
                continue;
            } else {
                // Every rounding and the answer's journey make a reset look later than it is, so the earliest is nearest.
                window.left = window.left.min(remaining);
                window.reset = window.reset.min(reset);
            }
            window.limit = reading.limit.or(window.limit);
            window.even = match spend {
                Spend::Freely => u64::MAX,
                // At least one, so that one is there at the reset.
                Spend::Evenly => even(
                    window.left.saturating_sub(outstanding).max(1),
                    window.reset.since(now),
                ),
            };
        }
    }

    /// A request is over and its answer did not speak of these budgets: it counts as used.
    pub(super) fn charge_unread(&mut self, cost: u64, readings: &[Reading<'_>]) {
        for window in &mut self.list {
            let read = readings.iter().any(|reading| {
                reading.name == window.name.as_deref() && reading.remaining.is_some()
            });
            if !read {
                window.left = window.left.saturating_sub(cost);
            }
        }
    }

    fn find_or_insert(
        &mut self,
        reading: &Reading<'_>,
        left: u64,
        reset: Time,
    ) -> Option<&mut Window> {
        let found = self
            .list
            .iter()
            .position(|window| window.name.as_deref() == reading.name);
        let index = match found {
            Some(index) => index,
            None => {
                if self.list.len() == MAX_WINDOWS {
                    let loosest = (0..MAX_WINDOWS).max_by_key(|&index| self.list[index].left)?;
                    if self.list[loosest].left <= left {
                        return None;
                    }
                    self.list.swap_remove(loosest);
                }
                self.list.push(Window {
                    name: reading.name.map(Into::into),
                    limit: reading.limit,
                    left,
                    reset,
                    even: u64::MAX,
                });
                self.list.len() - 1
            }
        };
        self.list.get_mut(index)
    }
}
