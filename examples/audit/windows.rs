//! The highest use in any window, exactly: two pointers over all that was sent.
//!
//! A cost that is corrected counts as corrected, at the time at which its request left. So what was sent is only counted a minute later;
//! corrections after that change nothing here, and it is said how many there were. Memory: what was sent in the longest window.

use std::collections::{HashMap, VecDeque};

use tower_throttle::{
    Quota,
    engine::{Costs, QUOTAS},
};

use crate::{follow::PATIENCE, text::nanos};

/// What the engine grants for late timers.
const LATE: u64 = 10_000_000;
const UNIT: u128 = 1 << 32;
const SECOND: u64 = 1_000_000_000;
/// A quota may be changed to other periods; more than so many are not counted for each.
const PERIODS: usize = 6;

#[derive(Debug, Clone, Copy)]
struct Sent {
    at: u64,
    number: u64,
    real: Costs,
    /// What it took when it left, or less if it turned out to cost less: what the quota bounds.
    least: Costs,
}

/// One quota, or the number of requests, in windows of one length.
#[derive(Debug, Clone)]
pub(crate) struct Track {
    /// `None`: requests are counted.
    pub(crate) quota: Option<usize>,
    pub(crate) window: u64,
    /// The first that is in the window, counted over all.
    tail: u64,
    real: u64,
    least: u64,
    pub(crate) most: Most,
    /// The window furthest above what was allowed.
    pub(crate) above: Option<Most>,
    /// Windows above it only by costs that were told after their requests had left.
    pub(crate) debts: u64,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Most {
    pub(crate) used: u64,
    pub(crate) allowed: u64,
    /// When it ended.
    pub(crate) at: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Use {
    sent: VecDeque<Sent>,
    /// The number of the first in `sent`, counted over all, and of the first that is not counted yet.
    base: u64,
    next: u64,
    pub(crate) tracks: Vec<Track>,
    /// What each quota was, and since when; as far as a window may still reach back.
    quotas: HashMap<usize, VecDeque<(u64, Quota)>>,
    pub(crate) late: u64,
}

impl Use {
    /// From here on this quota holds. The first one is that of the beginning.
    pub(crate) fn set_quota(&mut self, at: u64, index: usize, quota: Quota) {
        self.quotas.entry(index).or_default().push_back((at, quota));
        self.add_track(Some(index), SECOND);
        self.add_track(Some(index), nanos(quota.period()));
        self.add_track(None, SECOND);
        self.add_track(None, nanos(quota.period()));
    }

    fn add_track(&mut self, quota: Option<usize>, window: u64) {
        let alike = |track: &&Track| track.quota == quota;
        let count = self.tracks.iter().filter(alike).count();
        let known =
            (self.tracks.iter()).any(|track| track.quota == quota && track.window == window);
        if !known && count < PERIODS {
            self.tracks.push(Track {
                quota,
                window,
                tail: self.next,
                real: 0,
                least: 0,
                most: Most::default(),
                above: None,
                debts: 0,
            });
            self.tracks.sort_by_key(|track| (track.quota, track.window));
        }
    }

    pub(crate) fn sent(&mut self, at: u64, number: u64, costs: Costs) {
        self.sent.push_back(Sent {
            at,
            number,
            real: costs,
            least: costs,
        });
        self.count(at.saturating_sub(PATIENCE));
    }

    pub(crate) fn correct(&mut self, number: u64, real: &Costs) {
        let found = self.sent.binary_search_by_key(&number, |sent| sent.number);
        let Some((index, sent)) = found
            .ok()
            .and_then(|index| Some((index, self.sent.get_mut(index)?)))
        else {
            self.late += 1;
            return;
        };
        let place = self.base + index as u64;
        let before = *sent;
        sent.real = *real;
        for index in 0..QUOTAS {
            sent.least = sent
                .least
                .with(index, before.least.of(index).min(real.of(index)));
        }
        let after = *sent;
        if place < self.next {
            self.late += 1;
            for track in self.tracks.iter_mut().filter(|track| track.tail <= place) {
                track.real = track.real - track.of(&before.real) + track.of(&after.real);
                track.least = track.least - track.of(&before.least) + track.of(&after.least);
            }
        }
    }

    /// The limiter is no more: what follows has a time, and numbers, of its own.
    pub(crate) fn end(&mut self) {
        self.count(u64::MAX);
        self.base = 0;
        self.next = 0;
        self.sent.clear();
        self.quotas.clear();
        for track in &mut self.tracks {
            (track.tail, track.real, track.least) = (0, 0, 0);
        }
    }

    /// Counts all that was sent up to `until`.
    fn count(&mut self, until: u64) {
        while let Some(&sent) = self.sent.get((self.next - self.base) as usize) {
            if sent.at > until {
                break;
            }
            self.next += 1;
            for track in &mut self.tracks {
                track.real += track.of(&sent.real);
                track.least += track.of(&sent.least);
                // A window does not reach to its own end: what is a whole one apart is not in one.
                while let Some(first) = self.sent.get((track.tail - self.base) as usize) {
                    if sent.at.saturating_sub(first.at) < track.window {
                        break;
                    }
                    track.real -= track.of(&first.real);
                    track.least -= track.of(&first.least);
                    track.tail += 1;
                }
                let allowed = (track.quota.and_then(|quota| self.quotas.get(&quota)))
                    .map_or(u64::MAX, |quotas| allowed(quotas, sent.at, track.window));
                track.judge(sent.at, allowed);
            }
        }
        let first = self.tracks.iter().map(|track| track.tail).min();
        while self.base < first.unwrap_or(self.next) {
            self.sent.pop_front();
            self.base += 1;
        }
        let longest = self
            .tracks
            .iter()
            .map(|track| track.window)
            .max()
            .unwrap_or(0);
        let since = (self.sent.front()).map_or(until, |sent| sent.at.saturating_sub(longest));
        for quotas in self.quotas.values_mut() {
            while quotas.get(1).is_some_and(|(at, _)| *at < since) {
                quotas.pop_front();
            }
        }
    }
}

impl Track {
    const fn of(&self, costs: &Costs) -> u64 {
        match self.quota {
            Some(index) => costs.of(index) as u64,
            None => 1,
        }
    }

    fn judge(&mut self, at: u64, allowed: u64) {
        let now = Most {
            used: self.real,
            allowed,
            at,
        };
        if now.used > self.most.used {
            self.most = now;
        }
        if self.least > allowed {
            let by = |most: &Most| most.used - most.allowed;
            let now = Most {
                used: self.least,
                ..now
            };
            if self.above.as_ref().is_none_or(|above| by(above) < by(&now)) {
                self.above = Some(now);
            }
        } else if self.real > allowed {
            self.debts += 1;
        }
    }
}

/// The most that may leave in the window up to `at`: if the quota was changed in it, with the highest burst and rate it had.
fn allowed(quotas: &VecDeque<(u64, Quota)>, at: u64, window: u64) -> u64 {
    let from = at.saturating_sub(window);
    let (mut burst, mut rate) = (0, 0);
    for (index, (since, quota)) in quotas.iter().enumerate() {
        let over = quotas
            .get(index + 1)
            .is_some_and(|(until, _)| *until < from);
        if over || *since > at {
            continue;
        }
        let (amount, period) = (
            u128::from(quota.amount()),
            u128::from(nanos(quota.period()).max(1)),
        );
        let window = u128::from(window);
        if quota.is_strict() {
            rate = rate.max(
                amount
                    .saturating_mul(window.div_ceil(period))
                    .saturating_mul(UNIT),
            );
        } else {
            burst = burst.max(u128::from(quota.burst_size()));
            // Rounded up to the 2^-32nd of a unit, so that nothing is called too much for the rounding.
            rate = rate.max(
                amount
                    .saturating_mul(window + u128::from(LATE))
                    .saturating_mul(UNIT)
                    .div_ceil(period),
            );
        }
    }
    u64::try_from(burst + rate / UNIT).unwrap_or(u64::MAX)
}
