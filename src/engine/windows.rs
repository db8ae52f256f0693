//! Budgets the server announced: so much is left until a reset. Each gates until its reset.
//!
//! Its size outlives it. After the reset a window of the same size is assumed to have begun, and no more than its limit leaves in it until
//! an answer speaks of it. What is assumed sets no pace. It is dropped when a request that left in it is accepted and its answer does not
//! mention the budget (which then is about other requests), and a day after the budget was last heard of. It holds nobody longer than
//! the longest pause that is sat out, as one wrong word about a window's length would hold callers for as long.
//!
//! A request under way may be counted in the window in which it left, or in the next one. After that it counts no more: one that hangs
//! must not take from every window to come.

use std::time::Duration;

use super::{
    answer::{Answer, Flight, Reading},
    config::Spend,
    learned::Learned,
    rate::scaled,
    sound::{Unsound, holds},
    time::Time,
};

/// The most budgets kept at once; the tightest are kept.
const MAX_WINDOWS: usize = 8;

/// A reset given in whole seconds may mean a time up to this much earlier.
const GRAIN: Duration = Duration::from_secs(1);

/// A budget that names its limit and its window but no reset shapes the rate only if the window is at most this long: of a longer one
/// too little is known, as it may have been renewed a moment ago or not for hours.
const SHAPING: Duration = Duration::from_secs(60);

/// A key's ended budget is remembered this long, so that late answers about it are not taken for a new one.
const MEMORY: Duration = Duration::from_secs(60);

/// One budget as the server last described it.
#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// The policy's name, if it has one.
    pub name: Option<Box<str>>,
    /// What it is for within its policy, as the server names it.
    pub partition: Option<Box<[u8]>>,
    /// The length of the window, if the server says it.
    pub window: Option<Duration>,
    /// What the server allows in the whole window.
    pub limit: Option<u64>,
    /// The least that was seen to remain in this window, less what was used since without an answer that says so; the largest number if
    /// only the limit is known.
    pub left: u64,
    /// When the window ends at the latest, by the engine's clock.
    pub reset: Time,
    /// When it ends at the earliest. The two bounds close in as answers come.
    pub(super) earliest: Time,
    /// The highest rate this budget allows, in credits a nanosecond.
    pub(super) even: u64,
    /// The length of the window: what the server says, or else the longest time to a reset that was seen.
    length: Duration,
    /// When the server last spoke of it.
    heard: Time,
    assumed: Option<Assumed>,
    /// What was under way when the last two windows ended, the last one first, and still is.
    under_way: [UnderWay; 2],
}

/// The window after the one that was told.
#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Assumed {
    left: u64,
    end: Time,
}

/// Cost that had left before `ended` and is not answered.
#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct UnderWay {
    ended: Time,
    cost: u64,
}

impl Window {
    /// Only the limit and the window are known, not how much is left.
    pub(crate) const fn is_shape(&self) -> bool {
        self.left == u64::MAX
    }

    fn is(&self, reading: &Reading<'_>) -> bool {
        self.name.as_deref() == reading.name
            && self.partition.as_deref() == reading.partition
            && self.window == reading.window
    }

    /// What is left of the window under way, told or assumed, and when that ends.
    fn current(&self, now: Time) -> Option<(u64, Time)> {
        if self.reset > now {
            return Some((self.left, self.reset));
        }
        self.assumed.map(|assumed| (assumed.left, assumed.end))
    }

    /// Of `outstanding`, what may count in the window under way.
    const fn counted(&self, outstanding: u64) -> u64 {
        outstanding.saturating_sub(self.under_way[1].cost)
    }

    /// The told window, or the last assumed one, has ended. The next one is assumed if its size is known.
    fn roll(&mut self, now: Time, in_flight: u64, longest: Duration) {
        let over = UnderWay {
            ended: now,
            cost: in_flight,
        };
        self.under_way = [over, self.under_way[0]];
        let begin = self.assumed.map_or(self.reset, |assumed| assumed.end);
        self.assumed = self.limit.filter(|_| !self.is_shape()).map(|left| {
            let (past, length) = (now.since(begin).as_nanos(), self.length.as_nanos().max(1));
            let rest = u64::try_from(length - past % length).unwrap_or(u64::MAX);
            let rest = Duration::from_nanos(rest).min(longest.max(GRAIN));
            Assumed {
                left,
                end: now.after(rest).min(self.heard.after(Learned::MAX_AGE)),
            }
        });
    }

    /// Its size is not believed any more.
    const fn forget_size(&mut self) {
        self.assumed = None;
        self.limit = None;
    }
}

#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Default)]
pub(super) struct Windows {
    list: Vec<Window>,
    now: Time,
}

impl Windows {
    /// Whether the list is one that answers can have made.
    pub(super) fn check(&self) -> Result<(), Unsound> {
        holds(
            self.list.len() <= MAX_WINDOWS,
            "no more budgets are kept than there is room for",
        )?;
        let key = |window: &Window| (window.name.clone(), window.partition.clone(), window.window);
        let mut keys: Vec<_> = self.list.iter().map(key).collect();
        keys.sort_unstable();
        holds(
            keys.is_sorted_by(|one, next| one < next),
            "each budget is kept once",
        )?;
        holds(
            self.list.iter().all(|window| window.even > 0),
            "a budget allows some rate until its reset",
        )
    }

    /// The budgets that still run, or are assumed to run again.
    pub(super) fn view(&self) -> Vec<Window> {
        let current = |window: &Window| {
            let (left, reset) = window.current(self.now)?;
            Some(Window {
                left,
                reset,
                ..window.clone()
            })
        };
        self.list.iter().filter_map(current).collect()
    }

    /// Whether an answer that does not speak of budgets changes nothing.
    pub(super) fn is_empty(&self) -> bool {
        let counts = |window: &Window| window.under_way.iter().any(|under_way| under_way.cost > 0);
        !(self.list.iter()).any(|window| window.current(self.now).is_some() || counts(window))
    }

    /// A token is worth `after` credits instead of `before`.
    pub(super) fn rescale(&mut self, before: i128, after: i128) {
        for window in &mut self.list {
            if window.even != u64::MAX {
                window.even = scaled(window.even, before, after).max(1);
            }
        }
    }

    /// Whether all have ended a while ago.
    pub(super) fn is_clear(&self) -> bool {
        (self.list.iter()).all(|window| window.reset.after(MEMORY) <= self.now)
    }

    /// Lets time pass. True if a budget ended. What is only assumed holds nobody for more than `longest`.
    pub(super) fn expire(&mut self, now: Time, in_flight: u64, longest: Duration) -> bool {
        let mut ended = false;
        for window in &mut self.list {
            if window.current(self.now).is_some_and(|(_, end)| end <= now) {
                window.roll(now, in_flight, longest);
                ended = true;
            }
        }
        self.now = now;
        self.list
            .retain(|window| window.reset > now || window.heard.after(Learned::MAX_AGE) > now);
        ended
    }

    /// A request is over.
    pub(super) fn landed(&mut self, flight: Flight) {
        for window in &mut self.list {
            for under_way in &mut window.under_way {
                if flight.sent < under_way.ended {
                    under_way.cost = under_way.cost.saturating_sub(u64::from(flight.cost));
                }
            }
        }
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

    /// Until when the budgets forbid `cost` units besides those that are on their way or held: zero if they do not.
    pub(super) fn closed_until(&self, outstanding: u64, cost: u64) -> Time {
        let closed = |window: &Window| {
            let (left, end) = window.current(self.now)?;
            let others = window.counted(outstanding);
            // What costs more than a whole window is let go alone in one that is only assumed, or it would wait for ever.
            let alone = window.reset <= self.now && others == 0 && Some(left) == window.limit;
            (left < others.saturating_add(cost) && !alone).then_some(end)
        };
        self.list
            .iter()
            .filter_map(closed)
            .max()
            .unwrap_or(Time::ZERO)
    }

    /// Until when nothing is left of some budget, if so.
    pub(super) fn spent_until(&self) -> Option<Time> {
        (self.list.iter())
            .filter(|window| window.left == 0 && window.reset > self.now)
            .map(|window| window.reset)
            .max()
    }

    /// Takes in what an answer says about budgets, and returns until when nothing is left of one, if so. `sent` is when its request
    /// left, `cost` what that used, `outstanding` what is still on its way or held; `even` turns an amount and a time into a rate.
    pub(super) fn observe(
        &mut self,
        sent: Time,
        answer: &Answer<'_>,
        cost: u64,
        outstanding: u64,
        spend: Spend,
        even: impl Fn(u64, Duration) -> u64,
    ) -> Option<Time> {
        let now = self.now;
        let mut spent = None;
        self.charge_unread(cost, answer.readings);
        if !answer.refused {
            self.forget_unmentioned(sent, answer.readings);
        }
        // A refusal that names a wait has the last word about what is spent, even if that comes back later.
        let answered = answer.refused && answer.wait.is_some_and(|wait| !wait.is_zero());
        for reading in answer.readings {
            let empty = reading.remaining == Some(0);
            if answered && empty {
                self.list.retain(|window| !window.is(reading));
                continue;
            }
            let reset = reading.reset.filter(|reset| !reset.is_zero());
            match (reading.remaining, reset) {
                _ if !reading.paces => {
                    // Another unit than requests: it only counts when it is gone.
                    let until = reset.filter(|_| empty).map(|reset| now.after(reset));
                    spent = spent.max(until);
                }
                (Some(remaining), Some(reset)) => {
                    let Some(window) = self.update(sent, reading, remaining, reset) else {
                        continue;
                    };
                    // At least one, so that one is there at the reset.
                    let left = (window.left)
                        .saturating_sub(window.counted(outstanding))
                        .max(1);
                    window.even = match spend.over(window.reset.since(now)) {
                        Some(time) => even(left, time),
                        None => u64::MAX,
                    };
                    if window.left == 0 {
                        spent = spent.max(Some(window.reset));
                    }
                }
                _ if spend != Spend::Freely && reading.reset.is_none() => {
                    self.shape(reading, &even)
                }
                _ => {}
            }
        }
        spent
    }

    /// Takes in how much is left until when. `None` if that is no news.
    fn update(
        &mut self,
        sent: Time,
        reading: &Reading<'_>,
        remaining: u64,
        reset: Duration,
    ) -> Option<&mut Window> {
        let now = self.now;
        // The server wrote the answer between these two instants, and rounded up if at all.
        let earliest = sent.after(reset.saturating_sub(grain(reset)));
        let latest = now.after(reset);
        let window = self.find_or_insert(reading, remaining, earliest, latest)?;
        if window.is_shape() || earliest > window.reset {
            // Its successor, or the first that says how much is left.
            window.left = remaining;
            window.reset = latest;
            window.earliest = earliest;
        } else if latest < window.earliest || window.reset <= now {
            // Its predecessor, or late news of one that has ended.
            return None;
        } else {
            window.left = window.left.min(remaining);
            window.reset = window.reset.min(latest);
            window.earliest = window.earliest.max(earliest);
        }
        window.limit = reading.limit.or(window.limit);
        window.length = reading.window.unwrap_or(window.length.max(reset));
        window.heard = now;
        window.assumed = None;
        Some(window)
    }

    /// A limit and a window are known, but not when that ends: the rate is at most the one over the other, for one window from now.
    fn shape(&mut self, reading: &Reading<'_>, even: impl Fn(u64, Duration) -> u64) {
        let (Some(limit), Some(length)) = (reading.limit, reading.window) else {
            return;
        };
        if limit == 0 || length.is_zero() || length > SHAPING {
            return;
        }
        let now = self.now;
        let end = now.after(length);
        if let Some(window) = self.find_or_insert(reading, u64::MAX, end, end) {
            if !window.is_shape() && window.reset > now {
                // More is known of it.
                return;
            }
            window.left = u64::MAX;
            window.limit = Some(limit);
            window.earliest = end;
            window.reset = end;
            window.even = even(limit, length);
            window.heard = now;
        }
    }

    /// A request that left at `sent` was accepted, and its answer speaks of these budgets only.
    fn forget_unmentioned(&mut self, sent: Time, readings: &[Reading<'_>]) {
        for window in &mut self.list {
            let left_in_it = sent >= window.under_way[0].ended;
            let mentioned = readings.iter().any(|reading| window.is(reading));
            if window.assumed.is_some() && left_in_it && !mentioned {
                window.forget_size();
            }
        }
    }

    /// A request is over and its answer did not speak of these budgets: it counts as used.
    pub(super) fn charge_unread(&mut self, cost: u64, readings: &[Reading<'_>]) {
        for window in &mut self.list {
            let read =
                (readings.iter()).any(|reading| window.is(reading) && reading.remaining.is_some());
            if !read && !window.is_shape() {
                window.left = window.left.saturating_sub(cost);
                if let Some(assumed) = &mut window.assumed {
                    assumed.left = assumed.left.saturating_sub(cost);
                }
            }
        }
    }

    fn find_or_insert(
        &mut self,
        reading: &Reading<'_>,
        left: u64,
        earliest: Time,
        reset: Time,
    ) -> Option<&mut Window> {
        let found = self.list.iter().position(|window| window.is(reading));
        let index = match found {
            Some(index) => index,
            None => {
                if self.list.len() == MAX_WINDOWS {
                    let now = self.now;
                    let looseness = |window: &Window| (window.reset <= now, window.left);
                    let loosest =
                        (0..MAX_WINDOWS).max_by_key(|&index| looseness(&self.list[index]))?;
                    if looseness(&self.list[loosest]) <= (false, left) {
                        return None;
                    }
                    self.list.swap_remove(loosest);
                }
                self.list.push(Window {
                    name: reading.name.map(Into::into),
                    partition: reading.partition.map(Into::into),
                    window: reading.window,
                    limit: reading.limit,
                    left,
                    reset,
                    earliest,
                    even: u64::MAX,
                    length: Duration::ZERO,
                    heard: self.now,
                    assumed: None,
                    under_way: [UnderWay::default(); 2],
                });
                self.list.len() - 1
            }
        };
        self.list.get_mut(index)
    }
}

/// How much earlier than announced a reset may be by rounding. A fraction shows that it was not rounded to seconds.
const fn grain(reset: Duration) -> Duration {
    if reset.subsec_nanos() == 0 {
        GRAIN
    } else {
        Duration::ZERO
    }
}
