//! Turning gathered fields into budgets: policies find their counters, twins become one.

use std::time::Duration;

use super::ratelimit;
use super::sheet::{Policy, Sheet};
use super::slot::Slot;
use super::{Budget, MAX_BUDGETS, Unit};

/// A budget with the family it came from.
#[derive(Debug)]
struct Candidate<'a> {
    family: &'a str,
    budget: Budget,
}

/// Two resets of one instant can differ by the grain of `Date`, once in each direction.
const TWIN_SLACK: Duration = Duration::from_secs(2);

/// The budgets of a closed sheet, spent ones first if there are too many to keep.
pub(super) fn budgets(sheet: &mut Sheet<'_>) -> Vec<Budget> {
    absorb_lone_limits(&mut sheet.slots);
    let mut candidates = Vec::with_capacity(sheet.slots.len());
    for slot in sheet.slots.iter().filter(|slot| is_budget(slot)) {
        candidates.extend(slot.budgets().map(|budget| Candidate {
            family: slot.family,
            budget,
        }));
    }
    structured(sheet, &mut candidates);
    let policies = std::mem::take(&mut sheet.policies);
    place(policies, &mut candidates);

    let mut kept: Vec<Candidate<'_>> = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        match kept.iter_mut().find(|other| is_twin(other, &candidate)) {
            Some(other) => join(&mut other.budget, candidate.budget),
            None => kept.push(candidate),
        }
    }
    if kept.len() > MAX_BUDGETS {
        kept.sort_by_key(|candidate| !candidate.budget.is_spent());
        kept.truncate(MAX_BUDGETS);
    }
    kept.into_iter().map(|candidate| candidate.budget).collect()
}

fn is_budget(slot: &Slot<'_>) -> bool {
    // A limit on concurrency is told by its own word and never has anything left.
    let concurrency = || super::slot::unit_of(slot.label.words()) == Unit::Concurrency;
    slot.heard && (!slot.loose || slot.is_pair() || (slot.only_limit() && concurrency()))
}

/// `DailyLimit` beside a nameless `Remaining` and `Reset` is the limit of just these.
fn absorb_lone_limits(slots: &mut [Slot<'_>]) {
    for index in 0..slots.len() {
        let Some(open) = slots.get(index) else { return };
        if !open.label.is_empty() || !open.lacks_limit() {
            continue;
        }
        let family = open.family;
        let mut lone = slots.iter_mut().filter(|slot| {
            slot.family == family && !slot.label.is_empty() && slot.only_limit() && !slot.loose
        });
        let (Some(found), None) = (lone.next(), lone.next()) else {
            continue;
        };
        let (limit, label) = (found.limit(), found.label);
        found.heard = false;
        if let Some(open) = slots.get_mut(index) {
            open.push(super::slot::Entry::Limit(limit));
            open.label = label;
        }
    }
}

fn structured<'a>(sheet: &mut Sheet<'a>, candidates: &mut Vec<Candidate<'a>>) {
    let policy_fault = sheet.policy_field.fault.is_some();
    let policies = std::mem::take(&mut sheet.policy_field.members);
    let policies = if policy_fault { Vec::new() } else { policies };
    let states = std::mem::take(&mut sheet.state_field.members);
    let states = if sheet.state_field.fault.is_some() {
        Vec::new()
    } else {
        states
    };
    let (nameless, named): (Vec<_>, Vec<_>) = policies
        .into_iter()
        .partition(|policy| policy.number.is_some());
    nameless
        .iter()
        .for_each(|policy| sheet.policy(policy, super::name::Label::default()));
    if named.is_empty() && states.is_empty() {
        return;
    }
    let budgets = ratelimit::named_budgets(named, states, |field| {
        sheet.fault(field, super::Fault::Incomplete)
    });
    candidates.extend(budgets.into_iter().map(|budget| Candidate {
        family: ratelimit::STATE,
        budget,
    }));
}

/// Gives each counter without a window the policy of its quota. The policies left over become budgets of their own: a
/// dynamic limit has no policy of its size, and only the tightest policy is shown with a counter.
fn place<'a>(mut policies: Vec<Policy<'a>>, candidates: &mut Vec<Candidate<'a>>) {
    for Candidate { budget, .. } in candidates
        .iter_mut()
        .filter(|candidate| candidate.budget.window.is_none())
    {
        let label = |policy: &Policy<'_>| (!policy.label.is_empty()).then(|| policy.label.text());
        let fits = |policy: &Policy<'_>| {
            budget.limit == Some(policy.quota)
                && (budget.name.is_none() && policy.label.is_empty()
                    || budget.name.as_deref() == label(policy).as_deref())
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
        let label = (!policy.label.is_empty()).then(|| policy.label.text().into_boxed_str());
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
            budget,
        }
    }));
}

/// The two show one budget: the same numbers twice, or under two spellings of the field names.
fn is_twin(one: &Candidate<'_>, other: &Candidate<'_>) -> bool {
    let (a, b) = (&one.budget, &other.budget);
    if a == b {
        return true;
    }
    if one.family == other.family
        || a.unit != b.unit
        || a.partition.is_some() && b.partition.is_some()
    {
        return false;
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
        (Some(one), Some(other)) => one == other,
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
