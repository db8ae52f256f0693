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
    /// Known only by ordinary words; see [`FieldName::loose`](super::name::FieldName::loose).
    pub(super) loose: bool,
    /// At least one value was read, if only the sentinel for "unknown".
    pub(super) heard: bool,
    places: Vec<Place>,
    counts: [usize; ROLES],
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

/// More values than these in one joined line are noise.
pub(super) const MAX_PLACES: usize = 4;

impl<'a> Slot<'a> {
    pub(super) fn new(family: &'a str, label: Label<'a>, loose: bool) -> Self {
        Self {
            family,
            label,
            name: None,
            unit: None,
            window: None,
            loose,
            heard: false,
            places: Vec::new(),
            counts: [0; ROLES],
        }
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
        let Some(count) = self.counts.get_mut(role) else {
            return;
        };
        if *count >= MAX_PLACES {
            return;
        }
        if *count >= self.places.len() {
            self.places.push(Place::default());
        }
        if let Some(place) = self.places.get_mut(*count) {
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
        }
        *count += 1;
    }

    /// Nothing but a limit came.
    pub(super) fn only_limit(&self) -> bool {
        matches!(self.counts, [1, 0, 0, 0, 0, 0])
    }

    /// Something came, but no limit and nothing that implies one.
    pub(super) fn lacks_limit(&self) -> bool {
        matches!(self.counts, [0, _, 0, ..]) && self.heard
    }

    /// The first limit that came.
    pub(super) fn limit(&self) -> Option<u64> {
        self.places.first().and_then(|place| place.limit)
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
        let places = if self.is_joined() {
            self.places.clone()
        } else {
            vec![self.collapsed()]
        };
        let name = match self.name {
            Some(name) => Some(Box::from(name)),
            None if self.label.is_empty() => None,
            None => Some(self.label.text().into_boxed_str()),
        };
        let unit = self.unit.unwrap_or_else(|| unit_of(self.label.words()));
        let window = self.window.or(self.label.window);
        places.into_iter().map(move |place| {
            let used = place.used;
            Budget {
                name: name.clone(),
                partition: None,
                limit: place.limit.or_else(|| {
                    used.zip(place.remaining)
                        .and_then(|(used, left)| used.checked_add(left))
                }),
                remaining: place.remaining.or_else(|| {
                    used.zip(place.limit)
                        .map(|(used, limit)| limit.saturating_sub(used))
                }),
                used,
                reset: place.resets.iter().copied().flatten().next(),
                window,
                unit,
            }
        })
    }

    /// At least two roles came equally often and no other came otherwise, so values belong together by place. A single
    /// repeated role has nothing to be paired with.
    fn is_joined(&self) -> bool {
        let most = self.counts.iter().copied().max().unwrap_or_default();
        let times = |wanted| self.counts.iter().filter(|&&count| count == wanted).count();
        most > 1 && times(most) >= 2 && times(most) + times(0) == ROLES
    }

    /// All values as one budget: the least that is left and the latest reset, so that no reading is later refuted.
    fn collapsed(&self) -> Place {
        let all = self.places.iter().copied();
        all.reduce(|one, other| Place {
            limit: least(one.limit, other.limit),
            remaining: least(one.remaining, other.remaining),
            used: one.used.max(other.used),
            resets: std::array::from_fn(|spelling| one.reset(spelling).max(other.reset(spelling))),
        })
        .unwrap_or_default()
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
        "token" | "tokens" => Some(Unit::Tokens),
        "byte" | "bytes" => Some(Unit::Bytes),
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
