//! The one pass over a response's headers.

use std::time::SystemTime;

use http::header::AGE;
use http::{HeaderMap, StatusCode};

use super::dispatch::{Kind, kind};
use super::name::FieldName;
use super::sheet::Sheet;
use super::{Feedback, weigh};

/// Reads what a response head says about the server's limits, with the general rules.
///
/// `now` is the wall clock at the arrival of the head. It is used only where an absolute instant comes without a readable
/// `Date` beside it. Reading never fails: a field that cannot be read is counted in [`Feedback::malformed`].
pub fn read(status: StatusCode, headers: &HeaderMap, now: SystemTime) -> Feedback {
    Reader::default().read(status, headers, now)
}

/// A reader of response heads.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Reader {}

impl Reader {
    /// A reader with the general rules.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads one response head; see [`read`].
    pub fn read(&self, status: StatusCode, headers: &HeaderMap, now: SystemTime) -> Feedback {
        let mut sheet = Sheet::new(headers, now);
        let mut signs = Signs::default();
        for (name, value) in headers {
            let (field, value) = (name.as_str(), value.as_bytes());
            match kind(field) {
                Kind::Nothing => {}
                Kind::Hold(field, form) => {
                    signs.retry_after |= field == "retry-after";
                    sheet.hold(field, value, form);
                }
                Kind::State => sheet.state_field.read(value),
                Kind::Policy => sheet.policy_field.read(value),
                Kind::GrpcStatus => signs.exhausted |= value == b"8",
                Kind::EnvoyLimited => signs.limited = true,
                Kind::Named => {
                    if let Some(name) = FieldName::parse(field) {
                        sheet.field(field, name, value);
                    }
                }
            }
        }
        conclude(status, headers, sheet, &signs)
    }
}

/// Marks that are no numbers.
#[derive(Debug, Default)]
struct Signs {
    /// `Retry-After` came, readable or not: a sign of a refusal where the status alone is none.
    retry_after: bool,
    /// gRPC status 8, `RESOURCE_EXHAUSTED`.
    exhausted: bool,
    /// A proxy says that it refused.
    limited: bool,
}

fn conclude(
    status: StatusCode,
    headers: &HeaderMap,
    mut sheet: Sheet<'_>,
    signs: &Signs,
) -> Feedback {
    sheet.close();
    let mut feedback = Feedback {
        budgets: weigh::budgets(&mut sheet),
        ..Feedback::default()
    };
    if !feedback.budgets.is_empty() && is_cached(headers) {
        feedback.cached = true;
        feedback.budgets = Vec::new();
    }
    let hold = sheet.holds.longest();
    let asked = signs.retry_after || hold.is_some();
    let spent = || feedback.budgets.iter().any(|budget| budget.is_spent());
    feedback.refused = signs.exhausted
        || match status.as_u16() {
            429 => true,
            503 | 403 => asked || signs.limited || spent(),
            418 | 420 => asked,
            400.. => signs.limited,
            _ => false,
        };
    if feedback.refused || status.is_redirection() {
        feedback.hold = hold;
    }
    feedback.scope = sheet.scope;
    feedback.malformed = sheet.malformed;
    feedback.malformed_count = sheet.malformed_count;
    feedback
}

/// Only the `Age` field counts: an age worked out from `Date` would call every response stale on a client whose clock runs
/// ahead.
fn is_cached(headers: &HeaderMap) -> bool {
    let age = headers.get(AGE).map(|age| age.as_bytes().trim_ascii());
    age.is_some_and(|age| {
        age.iter().all(u8::is_ascii_digit) && age.iter().any(|&digit| digit != b'0')
    })
}
