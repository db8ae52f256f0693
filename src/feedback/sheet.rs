//! Where the fields of one response are gathered before they are weighed against each other.

use std::time::{Duration, SystemTime};

use http::HeaderMap;

use super::duration::window_length;
use super::malformed::clip;
use super::name::{FieldName, Label};
use super::pairs::pairs;
use super::ratelimit::{self, Field, Number, State};
use super::retry_after::Holds;
use super::slot::{AFTER, AT, Entry, MAX_PLACES, PLAIN, Slot};
use super::value::{Clock, MAX_VALUE, TimeForm, joined_times, trim};
use super::words::{Role, SCOPE_RANK};
use super::{Fault, MAX_MALFORMED, Malformed, Scope};

/// Budgets gathered from one response; more than are kept, since twins are joined at the end.
pub(super) const MAX_SLOTS: usize = 20;

/// What may be spent on the fields of one response, in the cost of a plain count: enough for every honest server met so
/// far twice over, and little for a hostile one to burn.
const FUEL: usize = 32;

/// The cost of a value that holds several, and of so many bytes.
pub(super) const COST_OF_LIST: usize = 3;
const COST_BYTES: usize = 64;

/// Lines of explicit waits that are read.
const MAX_HOLD_LINES: usize = 12;

/// All that the fields of one response said.
pub(super) struct Sheet<'a> {
    pub(super) clock: Clock<'a>,
    pub(super) holds: Holds,
    pub(super) slots: Vec<Slot<'a>>,
    pub(super) policies: Vec<Policy<'a>>,
    pub(super) policy_field: Field<'a>,
    pub(super) state_field: Field<'a>,
    pub(super) malformed: Vec<Malformed>,
    pub(super) malformed_count: u32,
    pub(super) scope: Scope,
    names: Vec<Naming<'a>>,
    fuel: usize,
    hold_lines: usize,
}

/// A policy without state: a quota that a counter may belong to.
#[derive(Debug)]
pub(super) struct Policy<'a> {
    pub(super) quota: u64,
    pub(super) window: Option<Duration>,
    pub(super) name: Option<std::borrow::Cow<'a, str>>,
    /// The label of the field that listed it.
    pub(super) label: Label<'a>,
}

/// A field whose value names the budget of its family and label.
#[derive(Debug)]
struct Naming<'a> {
    family: &'a str,
    label: Label<'a>,
    name: &'a str,
    rank: u8,
}

impl<'a> Sheet<'a> {
    pub(super) fn new(headers: &'a HeaderMap, now: &'a dyn Fn() -> SystemTime) -> Self {
        Self {
            clock: Clock::new(headers, now),
            holds: Holds::default(),
            slots: Vec::new(),
            policies: Vec::new(),
            policy_field: Field::default(),
            state_field: Field::default(),
            malformed: Vec::new(),
            malformed_count: 0,
            scope: Scope::Unspecified,
            names: Vec::new(),
            fuel: FUEL,
            hold_lines: 0,
        }
    }

    /// Takes a field that is an explicit wait; `shown` is its name as [`Hold::field`](super::Hold::field) gives it.
    pub(super) fn hold(&mut self, shown: &'static str, field: &str, value: &[u8], form: TimeForm) {
        self.hold_lines += 1;
        if self.hold_lines > MAX_HOLD_LINES {
            return self.fault(field, Fault::TooMany);
        }
        let (list, count) = (&mut self.malformed, &mut self.malformed_count);
        self.holds.read(shown, value, form, &self.clock, |fault| {
            report(list, count, field, fault)
        });
    }

    /// Takes a field whose name the grammar knows.
    pub(super) fn field(&mut self, field: &'a str, name: &FieldName<'a>, value: &'a [u8]) {
        let value = value.trim_ascii();
        if !self.pay(value) {
            return self.fault(field, Fault::TooMany);
        }
        match name.role {
            Role::Bare | Role::Other => self.set(field, name, value),
            Role::Policy if !self.spend(COST_OF_LIST) => self.fault(field, Fault::TooMany),
            // A name like any other may stand here in place of a list.
            Role::Policy => {
                for member in ratelimit::list(value).unwrap_or_default() {
                    self.policy(field, &member, &name.label);
                }
            }
            Role::Hold if name.label.is_empty() => {
                self.hold(static_name(field), field, value, name.form);
            }
            _ => self.value(field, name, value),
        }
    }

    /// Applies the name fields and the structured fields, once all fields are in.
    pub(super) fn close(&mut self) {
        self.names.sort_by_key(|naming| naming.rank);
        for slot in &mut self.slots {
            let mut names = self.names.iter();
            let naming =
                names.find(|naming| naming.family == slot.family && naming.label == slot.label);
            slot.name = slot.name.or(naming.map(|naming| naming.name));
        }
        for (field, fault) in [
            (ratelimit::POLICY, self.policy_field.fault),
            (ratelimit::STATE, self.state_field.fault),
        ] {
            if let Some(fault) = fault {
                self.fault(field, fault);
            }
        }
        match self.state_field.state {
            Some(state) if self.state_field.fault.is_none() => self.state(state),
            _ => {}
        }
    }

    pub(super) fn fault(&mut self, field: &str, why: Fault) {
        report(&mut self.malformed, &mut self.malformed_count, field, why);
    }

    /// Takes a policy that has no name of its own, or one from a list that gives names as parameters.
    pub(super) fn policy(
        &mut self,
        field: &str,
        member: &ratelimit::Member<'a>,
        label: &Label<'a>,
    ) {
        let Some(quota) = member.number else { return };
        if let Some(fault) = member.fault {
            self.fault(field, fault);
        }
        if self.policies.len() < MAX_SLOTS {
            let (window, name) = (member.window, member.name.clone());
            self.policies.push(Policy {
                quota,
                window,
                name,
                label: *label,
            });
        }
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.fuel == 0
    }

    /// Pays for a field. False once there is nothing left to pay with.
    pub(super) fn pay(&mut self, value: &[u8]) -> bool {
        self.spend(1 + value.len() / COST_BYTES)
    }

    pub(super) fn spend(&mut self, cost: usize) -> bool {
        let left = self.fuel.checked_sub(cost);
        self.fuel = left.unwrap_or_default();
        left.is_some()
    }

    /// The slot for `family` and `label`, made on first use. `None` once there are too many.
    pub(super) fn slot(
        &mut self,
        family: &'a str,
        label: &Label<'a>,
        loose: bool,
    ) -> Option<&mut Slot<'a>> {
        self.keyed_slot(family, label, loose, None)
    }

    /// The same, one for each `key`.
    pub(super) fn keyed_slot(
        &mut self,
        family: &'a str,
        label: &Label<'a>,
        loose: bool,
        key: Option<Duration>,
    ) -> Option<&mut Slot<'a>> {
        let index = self.index(family, label, loose, key)?;
        self.slots.get_mut(index)
    }

    fn index(
        &mut self,
        family: &'a str,
        label: &Label<'a>,
        loose: bool,
        key: Option<Duration>,
    ) -> Option<usize> {
        let is = |slot: &Slot<'_>| slot.label == *label && slot.family == family && slot.key == key;
        let known = self.slots.iter().position(is);
        if known.is_none() && self.slots.len() < MAX_SLOTS {
            if self.slots.is_empty() {
                // Room for the usual number, and small enough for an allocator's fast path.
                self.slots.reserve_exact(3);
            }
            let mut slot = Slot::new(family, *label, loose);
            slot.key = key;
            self.slots.push(slot);
            return Some(self.slots.len() - 1);
        }
        known
    }

    /// Takes the value of a field for its role.
    pub(super) fn value(&mut self, field: &'a str, name: &FieldName<'a>, value: &'a [u8]) {
        let result = match name.role {
            _ if value.len() > MAX_VALUE => Err(Fault::TooLong),
            Role::Limit | Role::Remaining | Role::Used => self.counts(field, name, value),
            Role::Reset | Role::ResetAt | Role::ResetAfter | Role::Hold => self.resets(name, value),
            Role::Window => self.window(name, value),
            Role::Name(rank) => {
                self.name(name, value, rank);
                Ok(())
            }
            Role::Global => {
                if matches!(trim(value), b"true" | b"1") {
                    self.scope = Scope::Global;
                }
                Ok(())
            }
            Role::Bare | Role::Policy | Role::Other => Ok(()),
        };
        match result {
            Err(fault) if !name.loose => self.fault(field, fault),
            _ => {}
        }
    }

    /// A value that may hold a whole set: a JSON object, or pairs of key and value. Else it is a limit, if the name says
    /// no more than that there is one.
    fn set(&mut self, field: &'a str, name: &FieldName<'a>, value: &'a [u8]) {
        let text = Some(value)
            .filter(|value| value.len() <= MAX_VALUE)
            .and_then(|value| std::str::from_utf8(value).ok());
        let opens = |text: &&str| {
            text.starts_with(|first: char| first == '{' || first.is_ascii_alphabetic())
        };
        if let Some(text) = text.filter(opens) {
            if !self.spend(COST_OF_LIST) {
                return self.fault(field, Fault::TooMany);
            }
            for (key, value) in pairs(text) {
                let Some(found) = FieldName::parse_key(key) else {
                    continue;
                };
                if matches!(found.role, Role::Bare | Role::Other | Role::Policy) {
                    continue;
                }
                let mut label = name.label;
                found.label.words().iter().for_each(|word| label.push(word));
                self.value(
                    field,
                    &FieldName {
                        role: found.role,
                        label,
                        ..*name
                    },
                    value.as_bytes(),
                );
            }
        } else if name.role == Role::Bare {
            self.value(
                field,
                &FieldName {
                    role: Role::Limit,
                    ..*name
                },
                value,
            );
        }
    }

    fn resets(&mut self, name: &FieldName<'a>, value: &[u8]) -> Result<(), Fault> {
        let spelling = match name.role {
            Role::ResetAt => AT,
            Role::Reset => PLAIN,
            _ => AFTER,
        };
        let one = self.clock.reset(value, name.form);
        let joins = one.is_err() && value.contains(&b',') && self.spend(COST_OF_LIST);
        let Some(index) = self.index(name.family, &name.label, name.loose, None) else {
            return Ok(());
        };
        let Some(slot) = self.slots.get_mut(index) else {
            return Ok(());
        };
        if !joins {
            return one.map(|reset| slot.push(Entry::Reset(Some(reset), spelling)));
        }
        let read = |item| self.clock.reset(item, name.form);
        let times = joined_times(value, MAX_PLACES.into(), read).ok_or(Fault::NotATime)?;
        let mut result = Ok(());
        for time in times {
            match time {
                Ok(reset) => slot.push(Entry::Reset(Some(reset), spelling)),
                Err(fault) => result = Err(fault),
            }
        }
        result
    }

    fn window(&mut self, name: &FieldName<'a>, value: &[u8]) -> Result<(), Fault> {
        let window = window_length(trim(value), name.form)?;
        if let Some(slot) = self.slot(name.family, &name.label, name.loose) {
            slot.window = window.filter(|window| !window.is_zero());
            slot.heard |= slot.window.is_some();
        }
        Ok(())
    }

    fn name(&mut self, name: &FieldName<'a>, value: &'a [u8], rank: u8) {
        let Ok(text) = std::str::from_utf8(trim(value)) else {
            return;
        };
        if rank == SCOPE_RANK {
            self.scope = match text {
                _ if self.scope == Scope::Global => Scope::Global,
                "global" => Scope::Global,
                "shared" => Scope::Shared,
                "user" => Scope::User,
                _ => self.scope,
            };
        }
        if !text.is_empty() && self.names.len() < MAX_SLOTS {
            self.names.push(Naming {
                family: name.family,
                label: name.label,
                name: clip(text),
                rank,
            });
        }
    }

    /// The state of draft 07 is the trio of the earlier drafts in one field.
    fn state(&mut self, state: State) {
        let reset = state.reset.time();
        if [state.limit, state.remaining].contains(&Number::Bad) {
            self.fault(ratelimit::STATE, Fault::Incomplete);
        } else if let Err(fault) = reset {
            self.fault(ratelimit::STATE, fault);
        }
        let Some(slot) = self.slot(ratelimit::STATE, &Label::default(), false) else {
            return;
        };
        if let Some(limit) = state.limit.known() {
            slot.push(Entry::Limit(Some(limit)));
        }
        if let Some(remaining) = state.remaining.known() {
            slot.count(ratelimit::STATE, Role::Remaining, Some(remaining));
        }
        if let Ok(Some(reset)) = reset {
            slot.push(Entry::Reset(Some(reset), AFTER));
        }
    }
}

fn report(list: &mut Vec<Malformed>, count: &mut u32, field: &str, why: Fault) {
    *count = count.saturating_add(1);
    if list.len() < MAX_MALFORMED {
        list.push(Malformed::new(field, why));
    }
}

/// The common spelling of a wait field that the grammar found.
fn static_name(field: &str) -> &'static str {
    const KNOWN: [&str; 7] = [
        "x-ratelimit-retry-after",
        "x-ratelimit-retry-after-ms",
        "x-ratelimit-after",
        "x-ratelimit-retry",
        "x-rate-limit-retry-after",
        "ratelimit-retry-after",
        "rate-limit-retry-after",
    ];
    KNOWN
        .into_iter()
        .find(|&known| known == field)
        .unwrap_or("x-ratelimit-retry-after")
}
