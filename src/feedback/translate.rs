//! Reading fields by the rules of a [`Dialect`](super::Dialect).

use std::time::Duration;

use super::name::{FieldName, Label};
use super::number::Decimal;
use super::pairs::pairs;
use super::sheet::Sheet;
use super::slot::{AFTER, Entry, Slot};
use super::value::{MAX_VALUE, TimeForm, believable, read_count, trim};
use super::words::Role;
use super::{Fault, Meaning, Rule, Unit};

/// The family of fields that only a dialect knows.
const FAMILY: &str = "dialect";

/// Members of one value that are looked at.
const MAX_MEMBERS: usize = 16;

/// Where a rule puts what it reads.
#[derive(Debug, Clone, Copy)]
struct Place<'a> {
    field: &'a str,
    family: &'a str,
    label: Label<'a>,
    unit: Option<Unit>,
    windows: &'a [Duration],
}

impl<'a> Sheet<'a> {
    /// Takes a field that `rule` is for; `star` is what its `*` stands for. True if the field marks a refusal.
    pub(super) fn translate(
        &mut self,
        rule: &'a Rule,
        field: &'a str,
        star: &'a str,
        value: &'a [u8],
    ) -> bool {
        match rule.meaning {
            Meaning::Ignore => return false,
            // Explicit waits have a bound of their own, so that nothing before them can hide them.
            Meaning::Hold(form) => {
                self.hold(rule.static_field(), field, value, form);
                return false;
            }
            _ if !self.pay(value) => self.fault(field, Fault::TooMany),
            Meaning::Refusal(texts) => return texts.iter().any(|text| contains(value, text)),
            _ => {
                let place = place(rule, field, star);
                let read = match plain_role(rule.meaning) {
                    Some((role, form)) if !rule.grouped => {
                        let (family, label) = (place.family, place.label);
                        self.target(place, label, None);
                        self.value(
                            field,
                            &FieldName {
                                family,
                                role,
                                label,
                                form,
                                loose: false,
                            },
                            value,
                        );
                        Ok(())
                    }
                    _ => self.special(place, rule, value),
                };
                if let Err(fault) = read {
                    self.fault(field, fault);
                }
            }
        }
        false
    }

    /// Reads the forms that only a dialect has.
    fn special(&mut self, place: Place<'a>, rule: &Rule, value: &'a [u8]) -> Result<(), Fault> {
        if value.len() > MAX_VALUE {
            return Err(Fault::TooLong);
        }
        let text = std::str::from_utf8(trim(value)).map_err(|_| Fault::NotACount)?;
        if let Some((role, _)) = plain_role(rule.meaning) {
            return self.grouped(place, role, text);
        }
        match rule.meaning {
            Meaning::Rate => self.rate(place, text),
            Meaning::UsedOfLimit => self.used_of_limit(place, place.label, text),
            Meaning::NamedUsedOfLimit => members(text, &[';', ','], |item| {
                let (name, numbers) = item.split_once('=').ok_or(Fault::NotACount)?;
                self.used_of_limit(place, extended(place.label, name), numbers)
            }),
            Meaning::LimitPerWindow => members(text, &[','], |item| {
                self.per_window(place, Role::Limit, item)
            }),
            Meaning::UsedPerWindow => members(text, &[','], |item| {
                self.per_window(place, Role::Used, item)
            }),
            Meaning::Holds => members(text, &[','], |item| self.category_hold(place, item)),
            Meaning::Percents => self.percents(place, text),
            _ => Ok(()),
        }
    }

    fn target(
        &mut self,
        place: Place<'a>,
        label: Label<'a>,
        key: Option<Duration>,
    ) -> Option<&mut Slot<'a>> {
        let slot = self.keyed_slot(place.family, &label, false, key)?;
        slot.unit = slot.unit.or(place.unit);
        slot.windows = place.windows;
        Some(slot)
    }

    fn push(
        &mut self,
        place: Place<'a>,
        label: Label<'a>,
        key: Option<Duration>,
        entries: impl IntoIterator<Item = Entry>,
    ) {
        if let Some(slot) = self.target(place, label, key) {
            entries.into_iter().for_each(|entry| slot.push(entry));
        }
    }

    /// A count whose commas group digits.
    fn grouped(&mut self, place: Place<'a>, role: Role, text: &str) -> Result<(), Fault> {
        let digits: Vec<u8> = text.bytes().filter(|&byte| byte != b',').collect();
        let value = read_count(&digits, role)?;
        if let Some(slot) = self.target(place, place.label, None) {
            slot.count(place.field, role, value);
        }
        Ok(())
    }

    /// A rate per second as a limit and its window: whole rates as so many in a second, others as one in so long.
    fn rate(&mut self, place: Place<'a>, text: &str) -> Result<(), Fault> {
        const BILLION: u128 = 1_000_000_000;
        let rate = Decimal::parse(text.as_bytes())?;
        let billionths = u128::from(rate.whole) * BILLION + u128::from(rate.billionths);
        if billionths == 0 {
            return Err(Fault::NotACount);
        }
        let (limit, window) = if rate.billionths == 0 {
            (rate.whole, Duration::from_secs(1))
        } else {
            let nanos = (BILLION * BILLION).div_ceil(billionths);
            let window = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            (1, believable(window)?)
        };
        if let Some(slot) = self.target(place, place.label, None) {
            slot.window = Some(window);
            slot.is_rate = true;
            slot.push(Entry::Limit(Some(limit)));
        }
        Ok(())
    }

    /// `32/40`, with a comment in brackets allowed behind it.
    fn used_of_limit(
        &mut self,
        place: Place<'a>,
        label: Label<'a>,
        text: &str,
    ) -> Result<(), Fault> {
        let text = text.split_once('(').map_or(text, |(numbers, _)| numbers);
        let (used, limit) = text.split_once('/').ok_or(Fault::NotACount)?;
        let used = read_count(used.as_bytes(), Role::Used)?;
        let limit = read_count(limit.as_bytes(), Role::Limit)?;
        self.push(place, label, None, [Entry::Used(used), Entry::Limit(limit)]);
        Ok(())
    }

    /// `100:120`: a count and its window in seconds.
    fn per_window(&mut self, place: Place<'a>, role: Role, item: &str) -> Result<(), Fault> {
        let (count, window) = item.split_once(':').ok_or(Fault::NotACount)?;
        let window = believable(Decimal::parse(window.trim().as_bytes())?.duration(1))?;
        if window.is_zero() {
            return Err(Fault::NotATime);
        }
        let value = read_count(count.as_bytes(), role)?;
        self.push(
            place,
            place.label,
            Some(window),
            [Slot::role_entry(role, value)],
        );
        Ok(())
    }

    /// `60:error;default:organization`: the budget of these categories is spent.
    fn category_hold(&mut self, place: Place<'a>, item: &'a str) -> Result<(), Fault> {
        let mut parts = item.split(':');
        let seconds = parts.next().ok_or(Fault::NotATime)?;
        let wait = self.clock.reset(seconds.as_bytes(), TimeForm::Seconds)?;
        let mut label = place.label;
        label.push(parts.next().unwrap_or_default().trim());
        self.push(
            place,
            label,
            None,
            [Entry::Remaining(Some(0)), Entry::Reset(Some(wait), AFTER)],
        );
        Ok(())
    }

    fn percents(&mut self, place: Place<'a>, text: &'a str) -> Result<(), Fault> {
        let place = Place {
            unit: Some(Unit::Percent),
            ..place
        };
        let mut regained = Duration::ZERO;
        let mut spent = Vec::new();
        for (key, value) in pairs(text) {
            let Ok(Some(used)) = read_count(value.as_bytes(), Role::Used) else {
                continue;
            };
            if key == "estimated_time_to_regain_access" {
                regained = regained.max(Duration::from_secs(used.saturating_mul(60)));
                continue;
            }
            let label = extended(place.label, key);
            self.push(
                place,
                label,
                None,
                [Entry::Used(Some(used)), Entry::Limit(Some(100))],
            );
            if used >= 100 {
                spent.push(label);
            }
        }
        let regained = believable(regained)?;
        if !regained.is_zero() {
            spent.into_iter().for_each(|label| {
                self.push(place, label, None, [Entry::Reset(Some(regained), AFTER)])
            });
        }
        Ok(())
    }
}

/// The role of a meaning whose value has an ordinary form, and the form of its times.
fn plain_role(meaning: Meaning) -> Option<(Role, TimeForm)> {
    Some(match meaning {
        Meaning::Limit => (Role::Limit, TimeForm::Auto),
        Meaning::Remaining => (Role::Remaining, TimeForm::Auto),
        Meaning::Used => (Role::Used, TimeForm::Auto),
        Meaning::Reset(form) => (Role::ResetAfter, form),
        Meaning::Window(form) => (Role::Window, form),
        _ => return None,
    })
}

fn contains(value: &[u8], text: &str) -> bool {
    let value = value.get(..MAX_VALUE).unwrap_or(value);
    value
        .windows(text.len().max(1))
        .any(|part| part == text.as_bytes())
}

/// A rule's field keeps the family and label that its name has by the general rules, so that it joins its siblings.
fn place<'a>(rule: &'a Rule, field: &'a str, star: &'a str) -> Place<'a> {
    let known = FieldName::parse(field).filter(|name| !name.loose);
    let label = match (&rule.name, known) {
        (Some(name), _) => {
            let mut label = Label::default();
            for word in name.split('-') {
                if word == "*" {
                    label = extended(label, star);
                } else {
                    label.push(word);
                }
            }
            label
        }
        (None, Some(known)) => known.label,
        (None, None) => extended(Label::default(), star),
    };
    Place {
        field,
        family: known.map_or(FAMILY, |known| known.family),
        label,
        unit: rule.unit,
        windows: &rule.windows,
    }
}

fn extended<'a>(mut label: Label<'a>, words: &'a str) -> Label<'a> {
    words.trim().split('-').for_each(|word| label.push(word));
    label
}

/// Reads each member that is not blank; a fault is reported after the others were read.
fn members<'a>(
    text: &'a str,
    separators: &[char],
    mut read: impl FnMut(&'a str) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut result = Ok(());
    let items = text
        .split(separators)
        .map(str::trim)
        .filter(|item| !item.is_empty());
    for item in items.take(MAX_MEMBERS) {
        result = result.and(read(item));
    }
    result
}
