//! The grammar of rate field names.
//!
//! A name is read as words between hyphens: who counts (`x-app-`), a marker (`ratelimit`, `rate-limit`), then in any order
//! the role (`limit`, `remaining`, `reset-after`) and what is counted (`tokens`, `10-second`). So `x-ratelimit-limit-tokens`,
//! `anthropic-ratelimit-tokens-limit`, `x-rate-limit-tokens-limit` and `x-ratelimit-tokenslimit` are one thing.

use std::time::Duration;

use super::duration::{WindowWord, window_word};
use super::words::{self, Role, Unnamed};

/// What a field's name says.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldName<'a> {
    /// The name up to its marker: fields with one family belong together.
    pub(super) family: &'a str,
    pub(super) role: Role,
    /// What is counted.
    pub(super) label: Label<'a>,
    /// The unit written into the name is milliseconds.
    pub(super) millis: bool,
    /// Known only by ordinary words (`x-limit-per-day`), so to be believed only as a pair.
    pub(super) loose: bool,
}

/// A budget's name as pieces of a field name, joined by hyphens when it is shown.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Label<'a> {
    pieces: [&'a str; MAX_WORDS],
    len: usize,
    /// The length of the window that the words give.
    pub(super) window: Option<Duration>,
}

/// Longer names are no rate fields.
const MAX_WORDS: usize = 10;

impl<'a> FieldName<'a> {
    /// Reads the name of a header field, in lower case. `None` if it is no rate field.
    pub(super) fn parse(name: &'a str) -> Option<Self> {
        let mut words = [""; MAX_WORDS];
        let mut len = 0;
        for word in name.split('-') {
            *words.get_mut(len)? = word;
            len += 1;
        }
        let words = words.get(..len)?;
        let words = if let ["x", rest @ ..] = words {
            rest
        } else {
            words
        };

        let mut label = Label::default();
        let mut family_end = if name.starts_with("x-") { 2 } else { 0 };
        for (index, word) in words.iter().enumerate() {
            let next = words.get(index + 1).copied();
            family_end += word.len();
            let Some((glued, width)) = words::marker(word, next) else {
                family_end += 1;
                continue;
            };
            let (before, after) = (words.get(..index)?, words.get(index + width..)?);
            before
                .iter()
                .copied()
                .chain([glued])
                .filter(|word| words::is_scope(word))
                .for_each(|word| label.push(word));
            if width == 2 {
                family_end += 1 + next.map_or(0, str::len);
            }
            return Self::after_marker(name.get(..family_end)?, after, label);
        }
        if !name.starts_with("x-") {
            return None;
        }
        // `x-daylimit-remaining`: the word `limit` stands glued to the window.
        if let [word, after @ ..] = words {
            if let Some(window) = word
                .strip_suffix("limit")
                .filter(|word| words::ends_in_window(word))
            {
                label.push(window);
                let after = if after.is_empty() { &["limit"] } else { after };
                return Self::after_marker("x-limit", after, label);
            }
        }
        let found = Self::after_marker("x", words, label)?;
        let counts = matches!(
            found.role,
            Role::Limit | Role::Remaining | Role::Used | Role::Reset | Role::ResetAt
        );
        (counts && words.iter().any(|word| words::is_plain(word))).then_some(Self {
            loose: true,
            ..found
        })
    }

    /// Reads the key of a `key=value` list inside a value, such as `user-hour-rem`.
    pub(super) fn parse_key(key: &'a str) -> Option<(Role, Label<'a>)> {
        let mut words = [""; MAX_WORDS];
        let mut len = 0;
        for word in key.split(['-', '_']) {
            *words.get_mut(len)? = word;
            len += 1;
        }
        let found = Self::after_marker("", words.get(..len)?, Label::default())?;
        Some((found.role, found.label))
    }

    fn after_marker(family: &'a str, words: &[&'a str], mut label: Label<'a>) -> Option<Self> {
        let Some(found) = words::role(words) else {
            let role = match words::unnamed(words) {
                Some(Unnamed::Role(role)) => role,
                Some(Unnamed::Window) => Role::Limit,
                None if words.is_empty() => Role::Bare,
                None => Role::Other,
            };
            if matches!(role, Role::Limit | Role::Other) {
                words.iter().for_each(|word| label.push(word));
            }
            return Some(Self {
                family,
                role,
                label,
                millis: false,
                loose: false,
            });
        };
        for (index, word) in words.iter().enumerate() {
            match index.checked_sub(found.index) {
                Some(0) => label.push(found.glued),
                Some(after) if after <= found.qualifiers => {}
                _ if words::is_filler(word) => {}
                _ => label.push(word),
            }
        }
        Some(Self {
            family,
            role: found.role,
            label,
            millis: found.millis,
            loose: false,
        })
    }
}

impl<'a> Label<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The whole text, words joined by hyphens.
    pub(super) fn text(&self) -> String {
        self.words().join("-")
    }

    pub(super) fn words(&self) -> &[&'a str] {
        self.pieces.get(..self.len).unwrap_or_default()
    }

    pub(super) fn push(&mut self, word: &'a str) {
        let word = words::canonical(word);
        if word.is_empty() {
            return;
        }
        let count = self.words().last().and_then(|last| last.parse().ok());
        match window_word(word, count) {
            Some(WindowWord::Seconds(seconds)) => self.window = Some(Duration::from_secs(seconds)),
            Some(WindowWord::Calendar) => self.window = None,
            None => {}
        }
        if let Some(slot) = self.pieces.get_mut(self.len) {
            *slot = word;
            self.len += 1;
        }
    }
}

impl PartialEq for Label<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.words() == other.words()
    }
}
