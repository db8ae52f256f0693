//! The numbers that belong to one budget, as they come in field by field.

use std::time::Duration;

use super::name::Label;
use super::words::Role;
use super::{Budget, Unit};

/// Fields of one family and one label.
#[derive(Debug)]
pub(super) struct Slot<'a> {
    pub(super) family: &'a str,
    pub(super) label: Label<'a>,
    /// The budget's name and unit where something else than the label gives them.
    pub(super) name: Option<&'a str>,
    pub(super) unit: Option<Unit>,
    pub(super) window: Option<Duration>,
    /// The windows of the places, where a dialect knows them.
    pub(super) windows: &'a [Duration],
    /// The window that tells this slot from others of its label, where one value lists several.
    pub(super) key: Option<Duration>,
    /// The field that says what is left.
    pub(super) left_by: &'a str,
    /// The limit says how fast, not how much.
    pub(super) is_rate: bool,
    /// Known only by ordinary words; see [`FieldName::loose`](super::name::FieldName::loose).
    pub(super) loose: bool,
    /// At least one value was read, if only the sentinel for "unknown".
    pub(super) heard: bool,
    first: Place,
    /// The places after the first, rarely any.
    more: Vec<Place>,
    counts: [u8; ROLES],
}

/// The values at one place of a joined line.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    limit: Option<u64>,
    remaining: Option<u64>,
    used: Option<u64>,
    resets: [Option<Duration>; 3],
}

/// One value for a place.
#[derive(Debug, Clone, Copy)]
pub(super) enum Entry {
    Limit(Option<u64>),
    Remaining(Option<u64>),
    Used(Option<u64>),
    /// A reset, and which of its spellings: [`AFTER`], [`PLAIN`] or [`AT`].
    Reset(Option<Duration>, usize),
}

/// The spellings of a reset, best first: a time from now needs no clock (C18), and `-reset-time` repeats `-reset`.
pub(super) const AFTER: usize = 0;
pub(super) const PLAIN: usize = 1;
pub(super) const AT: usize = 2;

const ROLES: usize = 6;

/// The bit of a limit among the sides of a budget.
const LIMIT: u8 = 1;

/// More values than these in one joined line are noise.
pub(super) const MAX_PLACES: u8 = 8;

impl<'a> Slot<'a> {
    pub(super) fn new(family: &'a str, label: Label<'a>, loose: bool) -> Self {
        Self {
            family,
            label,
            name: None,
            unit: None,
            window: None,
            windows: &[],
            key: None,
            left_by: "",
            is_rate: false,
            loose,
            heard: false,
            first: Place::default(),
            more: Vec::new(),
            counts: [0; ROLES],
        }
    }

    /// Takes the next count of its role, which `field` gives.
    pub(super) fn count(&mut self, field: &'a str, role: Role, value: Option<u64>) {
        if role == Role::Remaining {
            self.left_by = field;
        }
        self.push(Self::role_entry(role, value));
    }

    /// Takes the next value of its role.
    pub(super) fn push(&mut self, entry: Entry) {
        let role = match entry {
            Entry::Limit(_) => 0,
            Entry::Remaining(_) => 1,
            Entry::Used(_) => 2,
            Entry::Reset(_, spelling) => 3 + spelling,
        };
        self.heard = true;
        let Some(count) = self
            .counts
            .get_mut(role)
            .filter(|count| **count < MAX_PLACES)
        else {
            return;
        };
        let place = match usize::from(*count) {
            0 => &mut self.first,
            further => {
                if self.more.len() < further {
                    self.more.push(Place::default());
                }
                match self.more.get_mut(further - 1) {
                    Some(place) => place,
                    None => return,
                }
            }
        };
        match entry {
            Entry::Limit(value) => place.limit = value,
            Entry::Remaining(value) => place.remaining = value,
            Entry::Used(value) => place.used = value,
            Entry::Reset(value, spelling) => {
                if let Some(slot) = place.resets.get_mut(spelling) {
                    *slot = value;
                }
            }
        }
        *count += 1;
    }

    /// Nothing but a limit came.
    pub(super) fn only_limit(&self) -> bool {
        self.roles() == LIMIT
    }

    /// The two show different sides of a budget and none twice.
    pub(super) fn completes(&self, other: &Self) -> bool {
        self.heard && other.heard && self.roles() & other.roles() == 0
    }

    /// Takes over all that `other` has, its label included.
    pub(super) fn absorb(&mut self, other: &Self) {
        self.label = other.label;
        self.name = self.name.or(other.name);
        self.unit = self.unit.or(other.unit);
        self.window = self.window.or(other.window);
        if self.windows.is_empty() {
            self.windows = other.windows;
        }
        if self.left_by.is_empty() {
            self.left_by = other.left_by;
        }
        self.is_rate |= other.is_rate;
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        self.more
            .resize(self.more.len().max(other.more.len()), Place::default());
        let places = std::iter::once(&mut self.first).chain(&mut self.more);
        for (place, more) in places.zip(std::iter::once(&other.first).chain(&other.more)) {
            place.limit = place.limit.or(more.limit);
            place.remaining = place.remaining.or(more.remaining);
            place.used = place.used.or(more.used);
            for (reset, more) in place.resets.iter_mut().zip(more.resets) {
                *reset = reset.or(more);
            }
        }
    }

    /// The sides of a budget that came, one bit each.
    fn roles(&self) -> u8 {
        let [limit, remaining, used, resets @ ..] = self.counts;
        let bit = |came: bool, bit: u8| if came { bit } else { 0 };
        bit(limit > 0, LIMIT)
            | bit(remaining > 0 || used > 0, 2)
            | bit(resets.iter().any(|&count| count > 0), 4)
            | bit(self.window.is_some(), 8)
    }

    /// Both ends of a pair came, which makes ordinary words a budget.
    pub(super) fn is_pair(&self) -> bool {
        let [limit, remaining, _, resets @ ..] = self.counts;
        remaining > 0 && (limit > 0 || resets.iter().any(|&count| count > 0))
    }

    pub(super) fn role_entry(role: Role, value: Option<u64>) -> Entry {
        match role {
            Role::Remaining => Entry::Remaining(value),
            Role::Used => Entry::Used(value),
            _ => Entry::Limit(value),
        }
    }

    /// The budgets of this slot: one, or one for each place where two layers each added a whole set and a proxy joined
    /// the lines.
    pub(super) fn budgets(&self) -> impl Iterator<Item = Budget> {
        let (first, more) = if self.is_joined() {
            (self.first, self.more.as_slice())
        } else {
            (self.collapsed(), Default::default())
        };
        let window = self.key.or(self.window).or(self.label.window());
        let windows = self
            .windows
            .iter()
            .copied()
            .map(Some)
            .chain(std::iter::repeat(window));
        let places = std::iter::once(first).chain(more.iter().copied());
        places
            .zip(windows)
            .map(|(place, window)| self.budget(place, window))
    }

    fn budget(&self, place: Place, window: Option<Duration>) -> Budget {
        let Place {
            limit,
            remaining,
            used,
            resets,
        } = place;
        let name = match self.name {
            Some(name) => Some(Box::from(name)),
            None if self.label.is_empty() => None,
            None => Some(self.label.text()),
        };
        Budget {
            name,
            partition: None,
            limit: limit.or_else(|| {
                used.zip(remaining)
                    .and_then(|(used, left)| used.checked_add(left))
            }),
            remaining: remaining.or_else(|| {
                used.zip(limit)
                    .map(|(used, limit)| limit.saturating_sub(used))
            }),
            used,
            reset: resets.into_iter().flatten().next(),
            window,
            unit: self.unit.unwrap_or_else(|| unit_of(self.label.words())),
        }
    }

    /// At least two roles came equally often and no other came otherwise, so values belong together by place. A single
    /// repeated role has nothing to be paired with.
    pub(super) fn is_joined(&self) -> bool {
        let most = self.counts.iter().copied().max().unwrap_or_default();
        let times = |wanted| self.counts.iter().filter(|&&count| count == wanted).count();
        if !self.windows.is_empty() {
            return true;
        }
        most > 1 && times(most) >= 2 && times(most) + times(0) == ROLES
    }

    /// The largest limit that came, if all values are one budget: a burst beside a rate.
    pub(super) fn largest_limit(&self) -> Option<u64> {
        let limits = self.more.iter().map(|place| place.limit);
        let largest = limits.fold(self.first.limit, Option::max);
        largest.filter(|_| self.more.is_empty() || !self.is_joined())
    }

    /// All values as one budget: the least that is left and the latest reset, so that no reading is later refuted.
    fn collapsed(&self) -> Place {
        self.more.iter().fold(self.first, |one, other| Place {
            limit: least(one.limit, other.limit),
            remaining: least(one.remaining, other.remaining),
            used: one.used.max(other.used),
            resets: std::array::from_fn(|spelling| one.reset(spelling).max(other.reset(spelling))),
        })
    }
}

impl Place {
    fn reset(&self, spelling: usize) -> Option<Duration> {
        self.resets.get(spelling).copied().flatten()
    }
}

/// What the words of a label count.
pub(super) fn unit_of(words: &[&str]) -> Unit {
    let unit = |word: &&str| match *word {
        // Not `token`, which is a kind of credential.
        _ if word.starts_with("tokens") => Some(Unit::Tokens),
        "byte" | "bytes" => Some(Unit::Bytes),
        "time" => Some(Unit::Time),
        "concurrency" | "concurrent" => Some(Unit::Concurrency),
        "complexity" | "cost" | "points" | "credits" | "images" | "characters" | "audio"
        | "pages" | "weight" | "neurons" | "emails" | "messages" => Some(Unit::Other),
        _ => None,
    };
    words.iter().find_map(unit).unwrap_or_default()
}

fn least(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}
