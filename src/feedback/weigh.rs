//! Turning gathered fields into budgets: policies find their counters, twins become one.

use std::time::Duration;

use super::name::Label;
use super::ratelimit;
use super::sheet::{Policy, Sheet};
use super::slot::Slot;
use super::{Budget, Fault, MAX_BUDGETS, Unit};

/// A budget that may turn out to be another's twin.
#[derive(Debug)]
struct Candidate<'a> {
    budget: Budget,
    /// The names of its fields say nothing about what is counted.
    plain: bool,
    /// The field that says what is left.
    left_by: &'a str,
    /// So much can be left at most, where the limit is not the most there is.
    room: u64,
}

impl<'a> Candidate<'a> {
    fn of(budget: Budget, left_by: &'a str) -> Self {
        Self {
            budget,
            plain: false,
            left_by,
            room: 0,
        }
    }

    fn of_slot<'s>(slot: &'s Slot<'a>) -> impl Iterator<Item = Self> + use<'a, 's> {
        let room = match slot.largest_limit() {
            _ if slot.is_rate => u64::MAX,
            limit => limit.unwrap_or_default(),
        };
        slot.budgets().map(move |budget| Self {
            plain: slot.label.is_empty(),
            room,
            ..Self::of(budget, slot.left_by)
        })
    }

    /// The budget, with no more left than there can be.
    fn bounded(mut self, sheet: &mut Sheet<'_>) -> Budget {
        if self.overflows() {
            sheet.fault(self.left_by, Fault::AboveLimit);
            match self.budget.limit {
                // To take it at its word would hold everybody for one wrong field.
                Some(0) => self.budget.limit = None,
                limit => self.budget.remaining = limit,
            }
        }
        self.budget
    }

    /// More is left than there can be. Some servers show a bucket by its rate and what it still holds: limit 20, 99 left,
    /// reset 1. That is right, and where it is not, it is over in a second.
    fn overflows(&self) -> bool {
        let Budget {
            limit,
            remaining,
            reset,
            window,
            ..
        } = self.budget;
        let is_bucket = reset.is_some_and(|reset| reset <= SECOND)
            && window.is_none_or(|window| window <= SECOND);
        let most = limit.map(|limit| limit.max(self.room));
        remaining.zip(most).is_some_and(|(left, most)| left > most) && !is_bucket
    }
}

/// Two resets of one instant can differ by the grain of `Date`, once in each direction.
const TWIN_SLACK: Duration = Duration::from_secs(2);

const SECOND: Duration = Duration::from_secs(1);

/// The budgets of a closed sheet, spent ones first if there are too many to keep.
pub(super) fn budgets(sheet: &mut Sheet<'_>) -> Vec<Budget> {
    let alone =
        sheet.policy_field.is_empty() && sheet.state_field.is_empty() && sheet.policies.is_empty();
    match sheet.slots.as_slice() {
        [] if alone => return Vec::new(),
        // The commonest case has nothing to be weighed against.
        [slot] if alone && is_budget(slot) && !slot.is_joined() => {
            let candidate = Candidate::of_slot(slot).next();
            let budget = candidate.map(|candidate| candidate.bounded(sheet));
            return budget.into_iter().collect();
        }
        _ => complete(&mut sheet.slots),
    }
    let mut candidates: Vec<Candidate<'_>> = Vec::with_capacity(sheet.slots.len());
    for slot in sheet.slots.iter().filter(|slot| is_budget(slot)) {
        candidates.extend(Candidate::of_slot(slot));
    }
    structured(sheet, &mut candidates);
    if !sheet.policies.is_empty() {
        place(std::mem::take(&mut sheet.policies), &mut candidates);
    }
    join_twins(&mut candidates);
    if candidates.len() > MAX_BUDGETS {
        candidates.sort_by_key(|candidate| !candidate.budget.is_spent());
        candidates.truncate(MAX_BUDGETS);
    }
    let budgets = candidates.into_iter();
    budgets.map(|candidate| candidate.bounded(sheet)).collect()
}

fn is_budget(slot: &Slot<'_>) -> bool {
    // A limit on concurrency is told by its own word and never has anything left.
    let concurrency = || super::slot::unit_of(slot.label.words()) == Unit::Concurrency;
    slot.heard && (!slot.loose || slot.is_pair() || (slot.only_limit() && concurrency()))
}

/// A nameless set and a single named one that shows just the other sides are one budget: `DailyLimit` beside a nameless
/// `Remaining` and `Reset`, or `Requests-Left` beside a nameless `Reset`.
fn complete(slots: &mut [Slot<'_>]) {
    for open in 0..slots.len() {
        let Some(slot) = slots.get(open) else { return };
        if !slot.label.is_empty() || !slot.heard || slot.loose || slot.key.is_some() {
            continue;
        }
        let family = slot.family;
        let is_named =
            |slot: &Slot<'_>| slot.family == family && slot.heard && !slot.label.is_empty();
        let mut named = (0..slots.len()).filter(|&index| slots.get(index).is_some_and(is_named));
        let (Some(named), None) = (named.next(), named.next()) else {
            continue;
        };
        if !slots.get(named).is_some_and(|named| slot.completes(named)) {
            continue;
        }
        let spare = Slot::new(family, slot.label, false);
        let named = slots
            .get_mut(named)
            .map(|named| std::mem::replace(named, spare));
        if let (Some(open), Some(named)) = (slots.get_mut(open), named) {
            open.absorb(&named);
        }
    }
}

fn structured(sheet: &mut Sheet<'_>, candidates: &mut Vec<Candidate<'_>>) {
    let policies = sheet.policy_field.take();
    let states = sheet.state_field.take();
    if policies.is_empty() && states.is_empty() {
        return;
    }
    let (nameless, named): (Vec<_>, Vec<_>) = policies
        .into_iter()
        .partition(|policy| policy.number.is_some());
    nameless
        .iter()
        .for_each(|policy| sheet.policy(ratelimit::POLICY, policy, &Label::default()));
    let budgets = ratelimit::named_budgets(named, states, |field, fault| {
        sheet.fault(field, fault);
    });
    let candidate = |budget| Candidate::of(budget, ratelimit::STATE);
    candidates.extend(budgets.into_iter().map(candidate));
}

/// Gives each plain counter without a window the policy of its quota. The policies left over become budgets of their own:
/// a dynamic limit has no policy of its size, only the tightest policy is shown with a counter, and where names tell, the
/// search for twins finds the counter.
fn place(mut policies: Vec<Policy<'_>>, candidates: &mut Vec<Candidate<'_>>) {
    // The counter may be that of another policy than the one whose limit stands beside it.
    let unlabelled = policies.iter().filter(|policy| policy.label.is_empty());
    let largest = unlabelled
        .map(|policy| policy.quota)
        .max()
        .unwrap_or_default();
    for candidate in candidates.iter_mut().filter(|candidate| candidate.plain) {
        candidate.room = candidate.room.max(largest);
    }
    let windowless = candidates
        .iter_mut()
        .filter(|candidate| candidate.budget.window.is_none());
    for Candidate { budget, plain, .. } in windowless {
        let fits = |policy: &Policy<'_>| {
            *plain && policy.label.is_empty() && budget.limit == Some(policy.quota)
        };
        // Of two policies with one quota the counter belongs to the one that is not over before the counter comes back.
        let in_time = |policy: &Policy<'_>| {
            budget
                .reset
                .zip(policy.window)
                .is_none_or(|(reset, window)| reset <= window)
        };
        let found = policies
            .iter()
            .position(|policy| fits(policy) && in_time(policy));
        let Some(index) = found.or_else(|| policies.iter().position(fits)) else {
            continue;
        };
        let policy = policies.remove(index);
        budget.window = policy.window;
        if let Some(name) = policy.name {
            budget.name = Some(super::malformed::clip(&name).into());
        }
    }
    candidates.extend(policies.into_iter().map(|policy| {
        let label = (!policy.label.is_empty()).then(|| policy.label.text());
        let name = policy
            .name
            .map(|name| super::malformed::clip(&name).into())
            .or(label);
        let budget = Budget {
            name,
            limit: Some(policy.quota),
            window: policy.window,
            ..Budget::default()
        };
        Candidate::of(budget, "")
    }));
}

/// Makes one of every two candidates that show one budget, in the place of the earlier.
fn join_twins(candidates: &mut Vec<Candidate<'_>>) {
    let mut later = 1;
    while later < candidates.len() {
        let (before, rest) = candidates.split_at(later);
        let twin = rest.first().and_then(|candidate| {
            before
                .iter()
                .position(|other| is_twin(&other.budget, &candidate.budget))
        });
        let Some(twin) = twin else {
            later += 1;
            continue;
        };
        let candidate = candidates.remove(later);
        if let Some(other) = candidates.get_mut(twin) {
            if other.budget.remaining.is_none() {
                other.left_by = candidate.left_by;
            }
            other.room = other.room.max(candidate.room);
            join(&mut other.budget, candidate.budget);
        }
    }
}

/// The two show one budget: the same numbers twice, or under two spellings of the field names.
fn is_twin(a: &Budget, b: &Budget) -> bool {
    let named = a.name.is_some() && b.name.is_some();
    if named && a.name != b.name || a.unit != b.unit {
        return false;
    }
    // Keys tell apart what is alike in all else.
    if a.partition.is_some() && b.partition.is_some() {
        return a == b;
    }
    let agree =
        |one: Option<u64>, other: Option<u64>| one.zip(other).map(|(one, other)| one == other);
    let limit = agree(a.limit, b.limit);
    let remaining = agree(a.remaining, b.remaining);
    let reset = a
        .reset
        .zip(b.reset)
        .map(|(one, other)| one.abs_diff(other) <= TWIN_SLACK);
    let window = a.window.zip(b.window).map(|(one, other)| one == other);
    if [limit, remaining, reset, window].contains(&Some(false)) {
        return false;
    }
    let same = Some(true);
    match (&a.name, &b.name) {
        // Two sets of one name may complete each other.
        (Some(_), Some(_)) => true,
        // Nameless sets must at least share a number, lest the limit of one be mixed with the reset of another.
        (None, None) => limit == same || remaining == same && reset == same,
        // A window named in a field (`-minute`) beside a plain set is not known to be the same unless all agree.
        _ => remaining == same && reset == same,
    }
}

fn join(into: &mut Budget, from: Budget) {
    into.name = into.name.take().or(from.name);
    into.partition = into.partition.take().or(from.partition);
    into.limit = into.limit.or(from.limit);
    into.remaining = into.remaining.or(from.remaining);
    into.used = into.used.or(from.used);
    into.reset = into.reset.max(from.reset);
    into.window = into.window.or(from.window);
}
