//! Turning gathered fields into budgets: policies find their counters, twins become one.

use std::time::Duration;

use super::name::Label;
use super::ratelimit;
use super::sheet::{Policy, Sheet};
use super::slot::Slot;
use super::{Budget, Fault, MAX_BUDGETS, Unit};

/// A budget with the family it came from.
#[derive(Debug)]
struct Candidate<'a> {
    family: &'a str,
    /// The names of its fields say nothing about what is counted.
    plain: bool,
    budget: Budget,
}

/// The family of named members, which is no field's name.
const NAMED: &str = "ratelimit members";

/// Two resets of one instant can differ by the grain of `Date`, once in each direction.
const TWIN_SLACK: Duration = Duration::from_secs(2);

/// The budgets of a closed sheet, spent ones first if there are too many to keep.
pub(super) fn budgets(sheet: &mut Sheet<'_>) -> Vec<Budget> {
    let structured_fields =
        !sheet.policy_field.members.is_empty() || !sheet.state_field.members.is_empty();
    match sheet.slots.as_slice() {
        [] if !structured_fields && sheet.policies.is_empty() => return Vec::new(),
        // The commonest case has nothing to be weighed against.
        [slot]
            if !structured_fields
                && sheet.policies.is_empty()
                && is_budget(slot)
                && !slot.is_joined() =>
        {
            return slot.budgets().collect();
        }
        _ => complete(&mut sheet.slots),
    }
    let mut candidates: Vec<Candidate<'_>> = Vec::with_capacity(sheet.slots.len());
    for slot in sheet.slots.iter().filter(|slot| is_budget(slot)) {
        let (family, plain) = (slot.family, slot.label.is_empty());
        let first = candidates.len();
        for budget in slot.budgets() {
            // Before policies are given out, since two layers may show one counter and one policy.
            let mut own = candidates.iter().skip(first);
            if !own.any(|other| other.budget == budget) {
                candidates.push(Candidate {
                    family,
                    plain,
                    budget,
                });
            }
        }
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
    candidates
        .into_iter()
        .map(|candidate| candidate.budget)
        .collect()
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

fn structured<'a>(sheet: &mut Sheet<'a>, candidates: &mut Vec<Candidate<'a>>) {
    let sound = |field: &mut ratelimit::Field<'a>| {
        let members = std::mem::take(&mut field.members);
        if field.fault.is_some() {
            Vec::new()
        } else {
            members
        }
    };
    let policies = sound(&mut sheet.policy_field);
    let states = sound(&mut sheet.state_field);
    if policies.is_empty() && states.is_empty() {
        return;
    }
    let (nameless, named): (Vec<_>, Vec<_>) = policies
        .into_iter()
        .partition(|policy| policy.number.is_some());
    nameless
        .iter()
        .for_each(|policy| sheet.policy(policy, &Label::default()));
    let budgets =
        ratelimit::named_budgets(named, states, |field| sheet.fault(field, Fault::Incomplete));
    candidates.extend(budgets.into_iter().map(|budget| Candidate {
        family: NAMED,
        plain: false,
        budget,
    }));
}

/// Gives each counter without a window the policy of its quota. The policies left over become budgets of their own: a
/// dynamic limit has no policy of its size, and only the tightest policy is shown with a counter.
fn place<'a>(mut policies: Vec<Policy<'a>>, candidates: &mut Vec<Candidate<'a>>) {
    let windowless = candidates
        .iter_mut()
        .filter(|candidate| candidate.budget.window.is_none());
    for Candidate { plain, budget, .. } in windowless {
        let fits = |policy: &Policy<'_>| {
            budget.limit == Some(policy.quota)
                && if policy.label.is_empty() {
                    *plain
                } else {
                    budget.name.as_deref() == Some(&*policy.label.text())
                }
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
        Candidate {
            family: ratelimit::POLICY,
            plain: false,
            budget,
        }
    }));
}

/// Makes one of every two candidates that show one budget, in the place of the earlier.
fn join_twins(candidates: &mut Vec<Candidate<'_>>) {
    let mut later = 1;
    while later < candidates.len() {
        let (before, rest) = candidates.split_at(later);
        let twin = rest
            .first()
            .and_then(|candidate| before.iter().position(|other| is_twin(other, candidate)));
        let Some(twin) = twin else {
            later += 1;
            continue;
        };
        let candidate = candidates.remove(later);
        if let Some(other) = candidates.get_mut(twin) {
            join(&mut other.budget, candidate.budget);
        }
    }
}

/// The two show one budget: the same numbers twice, or under two spellings of the field names.
fn is_twin(one: &Candidate<'_>, other: &Candidate<'_>) -> bool {
    let (a, b) = (&one.budget, &other.budget);
    let named = a.name.is_some() && b.name.is_some();
    if named && a.name != b.name || a.unit != b.unit {
        return false;
    }
    if one.family == other.family || a.partition.is_some() && b.partition.is_some() {
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
