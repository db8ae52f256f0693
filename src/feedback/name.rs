//! The grammar of rate field names.
//!
//! A name is read as words between hyphens: who counts (`x-app-`), a marker (`ratelimit`, `rate-limit`), then in any order
//! the role (`limit`, `remaining`, `reset-after`) and what is counted (`tokens`, `10-second`). So `x-ratelimit-limit-tokens`,
//! `anthropic-ratelimit-tokens-limit`, `x-rate-limit-tokens-limit` and `x-ratelimit-tokenslimit` are one thing.

use std::time::Duration;

use super::duration::{WindowWord, number_of, window_word};
use super::malformed::clip;
use super::value::TimeForm;
use super::words::{self, Role, Unnamed};

/// What a field's name says.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldName<'a> {
    /// The name up to its marker: fields with one family belong together.
    pub(super) family: &'a str,
    pub(super) role: Role,
    /// What is counted.
    pub(super) label: Label<'a>,
    /// The form of a time, where the name gives its unit.
    pub(super) form: TimeForm,
    /// Known only by ordinary words (`x-limit-per-day`), so to be believed only as a pair.
    pub(super) loose: bool,
}

/// A budget's name as words of a field name, joined by hyphens when it is shown.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Label<'a> {
    words: [&'a str; MAX_LABEL],
    len: usize,
    /// The length of the window that the words give, in seconds; 0 if they give none.
    window: u64,
    /// Tells most labels apart without a look at their words.
    hash: u32,
    /// The last word was `per`, so what stands before it is how many, not how long: `10-per-minute`.
    per: bool,
}

/// Names of more words are no rate fields.
const MAX_WORDS: usize = 10;

/// Words of a label that are kept.
const MAX_LABEL: usize = 5;

impl<'a> FieldName<'a> {
    /// Reads the name of a header field, in lower case. `None` if it is no rate field.
    pub(super) fn parse(name: &'a str) -> Option<Self> {
        let mut found = Self::default();
        // Most servers use these, so they are not taken apart.
        if let Some((role, kind)) = words::common(name) {
            (found.family, found.role) = (words::COMMON, role);
            found.label.push(kind);
            return Some(found);
        }
        found.read(name).then_some(found)
    }

    /// The same for names that are not among the commonest.
    #[cfg(test)]
    pub(super) fn parse_uncommon(name: &'a str) -> Option<Self> {
        let mut found = Self::default();
        found.read(name).then_some(found)
    }

    /// Reads the key of a `key=value` list inside a value, such as `user-hour-rem`.
    pub(super) fn parse_key(key: &'a str) -> Option<Self> {
        let mut words = [""; MAX_WORDS];
        let words = split(key, &mut words)?;
        let mut found = Self::default();
        found.read_words(words);
        Some(found)
    }

    fn read(&mut self, name: &'a str) -> bool {
        let mut list = [""; MAX_WORDS];
        let (skipped, bare) = match name.strip_prefix("x-") {
            Some(bare) => (2, bare),
            None => (0, name),
        };
        let Some(words) = split(bare, &mut list) else {
            return false;
        };
        let mut end = skipped;
        for index in 0..words.len() {
            let (before, rest) = words.split_at_mut(index);
            let [word, after @ ..] = rest else {
                return false;
            };
            end += word.len();
            let Some(marker) = words::marker(word, after.first().copied()) else {
                end += 1;
                continue;
            };
            let scopes = before
                .iter()
                .copied()
                .chain([marker.front])
                .filter(|word| words::is_scope(word));
            scopes.for_each(|word| self.label.push(word));
            let (wide, after) = match after {
                [next, after @ ..] if marker.width == 2 => (next.len() + 1, after),
                after => (0, after),
            };
            self.family = name.get(..end + wide - marker.back.len()).unwrap_or(name);
            if marker.back.is_empty() {
                self.read_words(after);
            } else {
                *word = marker.back;
                self.read_words(rest);
            }
            return true;
        }
        skipped > 0 && self.read_unmarked(words)
    }

    /// Reads a name that has none of the usual markers.
    fn read_unmarked(&mut self, words: &[&'a str]) -> bool {
        let [word, after @ ..] = words else {
            return false;
        };
        // `x-daylimit-remaining`: the word `limit` stands glued to the window.
        let window = word.strip_suffix("limit").unwrap_or_default();
        if let Some(length) = words::ending_window(window) {
            self.family = "x-limit";
            self.label.push(window);
            self.label.lasts(length);
            self.read_words(if after.is_empty() { &["limit"] } else { after });
            return true;
        }
        if !words.iter().any(|word| words::is_plain(word)) {
            return false;
        }
        self.family = "x";
        self.loose = true;
        self.read_words(words);
        matches!(
            self.role,
            Role::Limit | Role::Remaining | Role::Used | Role::Reset | Role::ResetAt
        )
    }

    /// Reads the words after a marker.
    fn read_words(&mut self, words: &[&'a str]) {
        let Some(found) = words::role(words) else {
            self.role = match words::unnamed(words) {
                Some(Unnamed::Role(role)) => role,
                Some(Unnamed::Window) => Role::Limit,
                None if words.is_empty() => Role::Bare,
                None => Role::Other,
            };
            match self.role {
                Role::Limit => words.iter().for_each(|word| self.label.push_rest(word)),
                Role::Other => words.iter().for_each(|word| self.label.push(word)),
                _ => {}
            }
            return;
        };
        (self.role, self.form) = (found.role, found.form);
        for (index, word) in words.iter().enumerate() {
            match index.checked_sub(found.index) {
                Some(0) => self.label.push(found.glued),
                Some(after) if after <= found.qualifiers => {}
                _ => self.label.push_rest(word),
            }
        }
        // `time-reset-ms` counts no time.
        if self.label.words() == ["time"] && words::is_time(found.role) {
            self.label = Label::default();
        }
    }
}

impl Default for FieldName<'_> {
    fn default() -> Self {
        Self {
            family: "",
            role: Role::Other,
            label: Label::default(),
            form: TimeForm::Auto,
            loose: false,
        }
    }
}

impl<'a> Label<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The whole text, words joined by hyphens.
    pub(super) fn text(&self) -> Box<str> {
        match self.words() {
            [word] => clip(word).into(),
            words => clip(&words.join("-")).into(),
        }
    }

    pub(super) fn words(&self) -> &[&'a str] {
        self.words.get(..self.len).unwrap_or_default()
    }

    /// The length of the window that the words give.
    pub(super) fn window(&self) -> Option<Duration> {
        (self.window > 0).then(|| Duration::from_secs(self.window))
    }

    pub(super) fn push(&mut self, word: &'a str) {
        let word = words::canonical(word);
        let last = self.words().last().copied().unwrap_or_default();
        if let Some(slot) = self.words.get_mut(self.len).filter(|_| !word.is_empty()) {
            *slot = word;
            self.len += 1;
            self.hash = word.bytes().fold(self.hash ^ 0x9E37_79B9, |hash, byte| {
                (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
            });
            let count = number_of(last).filter(|_| !self.per);
            if let Some(window) = window_word(word, || count) {
                self.lasts(window);
            }
            self.per = false;
        }
    }

    /// Takes a word that may say nothing, beside a role.
    fn push_rest(&mut self, word: &'a str) {
        if words::is_filler(word) {
            self.per = word == "per";
        } else {
            self.push(word);
        }
    }

    fn lasts(&mut self, window: WindowWord) {
        self.window = match window {
            WindowWord::Seconds(seconds) => seconds,
            WindowWord::Calendar => 0,
        };
    }
}

impl PartialEq for Label<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.words() == other.words()
    }
}

/// Cuts a name into words; `None` if there are too many.
fn split<'w, 'a>(name: &'a str, words: &'w mut [&'a str; MAX_WORDS]) -> Option<&'w mut [&'a str]> {
    let (mut len, mut start) = (0, 0);
    for (end, byte) in name.bytes().enumerate() {
        // Keys inside values are also written with underscores.
        if matches!(byte, b'-' | b'_') {
            *words.get_mut(len)? = name.get(start..end)?;
            len += 1;
            start = end + 1;
        }
    }
    *words.get_mut(len)? = name.get(start..)?;
    words.get_mut(..=len)
}
