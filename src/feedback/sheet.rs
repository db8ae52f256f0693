//! Where the fields of one response are gathered before they are weighed against each other.

use std::time::{Duration, SystemTime};

use http::HeaderMap;

use super::duration::{WindowWord, go_duration, window_word};
use super::malformed::clip;
use super::name::{FieldName, Label};
use super::number::Decimal;
use super::pairs::pairs;
use super::ratelimit::{self, Field, Number, State};
use super::retry_after::Holds;
use super::slot::{AFTER, AT, Entry, MAX_PLACES, PLAIN, Slot};
use super::value::{Clock, MAX_VALUE, TimeForm, count, joined, trim};
use super::words::{Role, SCOPE_RANK};
use super::{Fault, MAX_MALFORMED, Malformed, Scope};

/// Budgets gathered from one response; more than are kept, since twins are joined at the end.
const MAX_SLOTS: usize = 24;

/// All that the fields of one response said.
#[derive(Debug)]
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
    pub(super) fn new(headers: &'a HeaderMap, now: SystemTime) -> Self {
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
        }
    }

    /// Takes a field that is an explicit wait by its exact name.
    pub(super) fn hold(&mut self, field: &'static str, value: &[u8], form: TimeForm) {
        let (list, count) = (&mut self.malformed, &mut self.malformed_count);
        self.holds.read(field, value, form, &self.clock, |fault| {
            report(list, count, field, fault)
        });
    }

    /// Takes a field whose name the grammar knows.
    pub(super) fn field(&mut self, field: &'a str, name: FieldName<'a>, value: &'a [u8]) {
        let value = value.trim_ascii();
        match name.role {
            Role::Bare | Role::Other => self.set(field, name, value),
            Role::Policy => {
                for member in ratelimit::list(value).unwrap_or_default() {
                    self.policy(&member, name.label);
                }
            }
            Role::Hold if name.label.is_empty() => {
                let form = if name.millis {
                    TimeForm::Millis
                } else {
                    TimeForm::Auto
                };
                self.hold(static_name(field), value, form);
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
    pub(super) fn policy(&mut self, member: &ratelimit::Member<'a>, label: Label<'a>) {
        let Some(quota) = member.number else { return };
        let (window, name) = (member.window, member.name.clone());
        let known = self.policies.iter().any(|policy| {
            policy.quota == quota
                && policy.window == window
                && policy.name == name
                && policy.label == label
        });
        // Layers list one policy twice.
        if !known && self.policies.len() < MAX_SLOTS {
            self.policies.push(Policy {
                quota,
                window,
                name,
                label,
            });
        }
    }

    /// The slot for `family` and `label`, made on first use. `None` once there are too many.
    pub(super) fn slot(
        &mut self,
        family: &'a str,
        label: Label<'a>,
        loose: bool,
    ) -> Option<&mut Slot<'a>> {
        let known = self
            .slots
            .iter()
            .position(|slot| slot.family == family && slot.label == label);
        let index = match known {
            Some(index) => index,
            None if self.slots.len() < MAX_SLOTS => {
                self.slots.push(Slot::new(family, label, loose));
                self.slots.len() - 1
            }
            None => return None,
        };
        self.slots.get_mut(index)
    }

    fn value(&mut self, field: &'a str, name: FieldName<'a>, value: &'a [u8]) {
        let result = match name.role {
            _ if value.len() > MAX_VALUE => Err(Fault::TooLong),
            Role::Limit | Role::Remaining | Role::Used if value.contains(&b';') => {
                self.counted_list(&name, value)
            }
            Role::Limit | Role::Remaining | Role::Used => self.counts(&name, value),
            Role::Reset | Role::ResetAt | Role::ResetAfter | Role::Hold => {
                self.resets(&name, value)
            }
            Role::Window => self.window(&name, value),
            Role::Name(rank) => {
                self.name(&name, value, rank);
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
    fn set(&mut self, field: &'a str, name: FieldName<'a>, value: &'a [u8]) {
        let text = std::str::from_utf8(value)
            .ok()
            .filter(|text| text.len() <= MAX_VALUE);
        let opens = |text: &&str| {
            text.starts_with(|first: char| first == '{' || first.is_ascii_alphabetic())
        };
        if let Some(text) = text.filter(opens) {
            for (key, value) in pairs(text) {
                if let Some((role, key_label)) = FieldName::parse_key(key) {
                    let mut label = name.label;
                    key_label.words().iter().for_each(|word| label.push(word));
                    let found = FieldName {
                        role,
                        label,
                        millis: false,
                        ..name
                    };
                    if !matches!(role, Role::Bare | Role::Other | Role::Policy) {
                        self.value(field, found, value.as_bytes());
                    }
                }
            }
        } else if name.role == Role::Bare {
            self.value(
                field,
                FieldName {
                    role: Role::Limit,
                    ..name
                },
                value,
            );
        }
    }

    /// One count, or several that were joined.
    fn counts(&mut self, name: &FieldName<'a>, value: &[u8]) -> Result<(), Fault> {
        let Some(slot) = self.slot(name.family, name.label, name.loose) else {
            return Ok(());
        };
        let items = || joined(value).take(MAX_PLACES);
        let blank = |item: &&[u8]| trim(item).is_empty();
        if items().all(|item| blank(&item)) {
            // `,` stands for as many counts that nobody made.
            if value.is_empty() {
                return Err(Fault::Empty);
            }
            items().for_each(|_| slot.push(Slot::role_entry(name.role, None)));
            return Ok(());
        }
        let mut result = Ok(());
        for item in items().filter(|item| !blank(item)) {
            match read_count(item, name.role) {
                Ok(value) => slot.push(Slot::role_entry(name.role, value)),
                Err(fault) => result = Err(fault),
            }
        }
        result
    }

    /// `10, 10;w=1, 1000;w=3600`: the number in force, then policies (drafts up to 03). Also `0;w=21600`.
    fn counted_list(&mut self, name: &FieldName<'a>, value: &'a [u8]) -> Result<(), Fault> {
        let members = ratelimit::list(value).ok_or(Fault::Syntax)?;
        let mut members = members.iter();
        let first = members.next().ok_or(Fault::Empty)?;
        let number = first.number.ok_or(Fault::NotACount)?;
        let Some(slot) = self.slot(name.family, name.label, name.loose) else {
            return Ok(());
        };
        slot.push(Slot::role_entry(name.role, Some(number)));
        if slot.window.is_none() {
            slot.window = first.window;
        }
        if name.role == Role::Limit {
            members.for_each(|member| self.policy(member, name.label));
        }
        Ok(())
    }

    fn resets(&mut self, name: &FieldName<'a>, value: &[u8]) -> Result<(), Fault> {
        let (spelling, form) = match name.role {
            Role::ResetAt => (AT, TimeForm::Auto),
            Role::Reset => (PLAIN, TimeForm::Auto),
            _ => (AFTER, TimeForm::Auto),
        };
        let form = if name.millis { TimeForm::Millis } else { form };
        let mut result = Ok(());
        for item in joined(value).take(MAX_PLACES) {
            let reset = self.clock.reset(item, form);
            let Some(slot) = self.slot(name.family, name.label, name.loose) else {
                return Ok(());
            };
            match reset {
                Ok(reset) => slot.push(Entry::Reset(Some(reset), spelling)),
                Err(fault) => result = Err(fault),
            }
        }
        result
    }

    fn window(&mut self, name: &FieldName<'a>, value: &[u8]) -> Result<(), Fault> {
        let value = trim(value);
        let window = if let Ok(number) = Decimal::parse(value) {
            Some(number.duration(if name.millis { 1_000 } else { 1 }))
        } else if let Some(window) = go_duration(value) {
            Some(window)
        } else {
            let word = std::str::from_utf8(value)
                .unwrap_or_default()
                .to_ascii_lowercase();
            match window_word(&word, None).ok_or(Fault::NotATime)? {
                WindowWord::Seconds(seconds) => Some(Duration::from_secs(seconds)),
                WindowWord::Calendar => None,
            }
        };
        if let Some(slot) = self.slot(name.family, name.label, name.loose) {
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
        if [state.limit, state.remaining, state.reset].contains(&Number::Bad) {
            self.fault(ratelimit::STATE, Fault::Incomplete);
        }
        let Some(slot) = self.slot(ratelimit::STATE, Label::default(), false) else {
            return;
        };
        if let Some(limit) = state.limit.known() {
            slot.push(Entry::Limit(Some(limit)));
        }
        if let Some(remaining) = state.remaining.known() {
            slot.push(Entry::Remaining(Some(remaining)));
        }
        if let Some(reset) = state.reset.known() {
            slot.push(Entry::Reset(Some(Duration::from_secs(reset)), AFTER));
        }
    }
}

/// Reads one count for its role.
pub(super) fn read_count(text: &[u8], role: Role) -> Result<Option<u64>, Fault> {
    match count(text) {
        Ok(Some(number)) if role == Role::Limit && number.whole == 0 && number.billionths > 0 => {
            // A limit below one is a rate under another name; cut to zero it would mean "never".
            Err(Fault::NotACount)
        }
        Ok(number) => Ok(number.map(|number| number.whole)),
        // A counter that was overdrawn.
        Err(Fault::Negative) if role == Role::Remaining => Ok(Some(0)),
        Err(fault) => Err(fault),
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
    const KNOWN: [&str; 5] = [
        "x-ratelimit-retry-after",
        "x-ratelimit-after",
        "x-ratelimit-retry",
        "ratelimit-retry-after",
        "x-rate-limit-retry-after",
    ];
    KNOWN
        .into_iter()
        .find(|&known| known == field)
        .unwrap_or("x-ratelimit-retry-after")
}
