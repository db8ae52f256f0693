//! `Retry-After` and its cousins: explicit waits.
//!
//! RFC 9110 section 10.2.3 allows whole seconds or an HTTP-date. Beyond that the reader takes what can have only one
//! meaning: fractions, quotes, durations with a unit, ISO 8601, and several values joined into one (the longest counts,
//! since none of them may be cut short). Signs, words, exponents and thousands separators are no values, and what stands
//! beside something that is no time, as in `January 5, 2099`, is a part of that.

use std::time::Duration;

use super::value::{Clock, MAX_VALUE, TimeForm, joined_times, trim};
use super::{Fault, Hold};

/// Fields that are explicit waits by their exact name, and the form of a bare number in them.
pub(super) const FIELDS: [(&str, TimeForm); 5] = [
    ("retry-after", TimeForm::Auto),
    ("retry-after-ms", TimeForm::Millis),
    ("x-ms-retry-after-ms", TimeForm::Millis),
    ("x-retry-in", TimeForm::Auto),
    // gRFC A6: exact, and negative for "do not retry", which is no wait.
    ("grpc-retry-pushback-ms", TimeForm::Millis),
];

/// More members than these in one line are noise.
const MAX_MEMBERS: usize = 8;

/// The explicit waits of one response.
#[derive(Debug, Default)]
pub(super) struct Holds {
    longest: Option<Hold>,
}

impl Holds {
    /// Takes one line of a field. Each unreadable member is reported to `malformed`.
    pub(super) fn read(
        &mut self,
        field: &'static str,
        text: &[u8],
        form: TimeForm,
        clock: &Clock<'_>,
        mut malformed: impl FnMut(Fault),
    ) {
        let text = trim(text);
        if text.len() > MAX_VALUE {
            return malformed(Fault::TooLong);
        }
        let Some(times) = joined_times(text, MAX_MEMBERS, |item| clock.hold(item, form)) else {
            return malformed(Fault::NotATime);
        };
        for time in times {
            match time {
                Ok(wait) => self.push(wait, field),
                Err(fault) => malformed(fault),
            }
        }
    }

    /// The longest wait; the first field named wins a tie.
    pub(super) fn longest(&self) -> Option<Hold> {
        self.longest
    }

    fn push(&mut self, wait: Duration, field: &'static str) {
        if self.longest.is_none_or(|longest| wait > longest.wait) {
            self.longest = Some(Hold { wait, field });
        }
    }
}
