//! Counts, and the lists they come in.

use super::Fault;
use super::malformed::clip;
use super::name::{FieldName, Label};
use super::ratelimit;
use super::sheet::{COST_OF_LIST, MAX_SLOTS, Sheet};
use super::slot::MAX_PLACES;
use super::value::{joined, read_count, trim};
use super::words::Role;

impl<'a> Sheet<'a> {
    /// One count, or several that were joined.
    pub(super) fn counts(
        &mut self,
        field: &'a str,
        name: &FieldName<'a>,
        value: &'a [u8],
    ) -> Result<(), Fault> {
        let one = read_count(value, name.role);
        if one.is_err() && value.contains(&b';') {
            let named =
                name.role == Role::Remaining && value.first().is_some_and(u8::is_ascii_alphabetic);
            return if named {
                self.named_counts(field, name, value)
            } else {
                self.counted_list(field, name, value)
            };
        }
        let Some(slot) = self.slot(name.family, &name.label, name.loose) else {
            return Ok(());
        };
        if one.is_ok() || !value.contains(&b',') {
            return one.map(|value| slot.count(field, name.role, value));
        }
        let items = || joined(value).take(usize::from(MAX_PLACES));
        let blank = |item: &&[u8]| trim(item).is_empty();
        if items().all(|item| blank(&item)) {
            // `,` stands for as many counts that nobody made.
            items().for_each(|_| slot.count(field, name.role, None));
            return Ok(());
        }
        let mut result = Ok(());
        for item in items().filter(|item| !blank(item)) {
            match read_count(item, name.role) {
                Ok(value) => slot.count(field, name.role, value),
                Err(fault) => result = Err(fault),
            }
        }
        result
    }

    /// `10, 10;w=1, 1000;w=3600`: the number in force, then policies (drafts up to 03). Also `0;w=21600`.
    fn counted_list(
        &mut self,
        field: &'a str,
        name: &FieldName<'a>,
        value: &'a [u8],
    ) -> Result<(), Fault> {
        if !self.spend(COST_OF_LIST) {
            return Err(Fault::TooMany);
        }
        let members = ratelimit::list(value).ok_or(Fault::Syntax)?;
        let (first, rest) = members.split_first().ok_or(Fault::Empty)?;
        let number = first.number.ok_or(Fault::NotACount)?;
        let numbers = || rest.iter().filter_map(|member| member.number);
        let number = match name.role {
            Role::Limit => number,
            // Several counts, one for each policy: the one that binds first.
            Role::Remaining => numbers().fold(number, u64::min),
            _ => numbers().fold(number, u64::max),
        };
        let Some(slot) = self.slot(name.family, &name.label, name.loose) else {
            return Ok(());
        };
        slot.count(field, name.role, Some(number));
        if slot.window.is_none() {
            slot.window = first.window;
        }
        if let Some(fault) = first.fault {
            self.fault(field, fault);
        }
        if name.role == Role::Limit {
            rest.iter()
                .for_each(|member| self.policy(field, member, &name.label));
        }
        Ok(())
    }

    /// `reads;11999,writes;1199`: what is left under each name.
    fn named_counts(
        &mut self,
        field: &'a str,
        name: &FieldName<'a>,
        value: &'a [u8],
    ) -> Result<(), Fault> {
        if !self.spend(COST_OF_LIST) {
            return Err(Fault::TooMany);
        }
        let text = std::str::from_utf8(value).map_err(|_| Fault::NotACount)?;
        for item in text.split(',').take(MAX_SLOTS) {
            let (item, number) = item.rsplit_once(';').ok_or(Fault::NotACount)?;
            let left = read_count(number.as_bytes(), Role::Remaining)?;
            let mut label = Label::default();
            label.push(clip(item.trim()));
            if let Some(slot) = self.slot(name.family, &label, name.loose) {
                slot.count(field, Role::Remaining, left);
            }
        }
        Ok(())
    }
}
