//! The one pass over a response's headers.

use std::time::{Duration, SystemTime};

use http::header::AGE;
use http::{HeaderMap, StatusCode};

use super::dispatch::{Kind, kind};
use super::name::FieldName;
use super::sheet::Sheet;
use super::{Budget, Dialect, Fault, Feedback, Hold, Meaning, Rule, weigh};

/// Reads what a response head says about the server's limits, with the general rules.
///
/// `now` is the wall clock at the arrival of the head. It is used only where an absolute instant comes without a readable
/// `Date` beside it. Reading never fails: a field that cannot be read is counted in [`Feedback::malformed`].
pub fn read(status: StatusCode, headers: &HeaderMap, now: SystemTime) -> Feedback {
    Reader::default().read(status, headers, now)
}

/// A reader of response heads, with the general rules and perhaps a [`Dialect`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reader {
    dialect: Option<Dialect>,
}

impl Reader {
    /// A reader with the general rules.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what the server's documentation tells; in place of an earlier dialect.
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = Some(dialect);
        self
    }

    /// Reads one response head; see [`read`].
    pub fn read(&self, status: StatusCode, headers: &HeaderMap, now: SystemTime) -> Feedback {
        self.read_with(status, headers, &|| now)
    }

    /// As [`read`](Self::read), but looks at the clock only if a value needs it.
    pub(crate) fn read_with(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        now: &dyn Fn() -> SystemTime,
    ) -> Feedback {
        let mut sheet = Sheet::new(headers, now);
        let mut signs = Signs::default();
        for (name, value) in headers {
            let (field, value) = (name.as_str(), value.as_bytes());
            if let Some((rule, star)) = self
                .dialect
                .as_ref()
                .and_then(|dialect| dialect.rule_for(field))
            {
                signs.retry_after |=
                    matches!(rule.meaning, Meaning::Hold(_)) && field == RETRY_AFTER;
                signs.limited |= sheet.translate(rule, field, star, value);
                continue;
            }
            match kind(field) {
                Kind::Nothing => {}
                Kind::Hold(shown, form) => {
                    signs.retry_after |= field == RETRY_AFTER;
                    sheet.hold(shown, field, value, form);
                }
                Kind::State => sheet.state_field.read(value),
                Kind::Policy => sheet.policy_field.read(value),
                Kind::GrpcStatus => signs.exhausted |= value == b"8",
                Kind::EnvoyLimited => signs.limited = true,
                Kind::Named if sheet.is_exhausted() => sheet.fault(field, Fault::TooMany),
                Kind::Named => {
                    if let Some(name) = FieldName::parse(field) {
                        sheet.field(field, &name, value);
                    }
                }
            }
        }
        self.conclude(status, headers, &mut sheet, &signs)
    }

    fn conclude(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        sheet: &mut Sheet<'_>,
        signs: &Signs,
    ) -> Feedback {
        sheet.close();
        let mut feedback = Feedback {
            budgets: weigh::budgets(sheet),
            ..Feedback::default()
        };
        if !feedback.budgets.is_empty() && is_cached(headers) {
            feedback.cached = true;
            feedback.budgets = Vec::new();
        }
        let hold = sheet.holds.longest();
        let asked = signs.retry_after || hold.is_some();
        let spent = || feedback.budgets.iter().any(Budget::is_spent);
        feedback.refused = signs.exhausted
            || match status.as_u16() {
                429 => true,
                403 | 418 | 420 | 503 => asked || signs.limited || spent(),
                400.. => signs.limited,
                _ => false,
            };
        if let Some(dialect) = &self.dialect {
            let spent_ahead = dialect.refuses_when_spent && spent_ahead(&mut feedback.budgets);
            feedback.refused |= dialect.is_refusal(status) || spent_ahead;
        }
        if feedback.refused || status.is_redirection() {
            feedback.hold = hold;
        }
        let documented = self
            .dialect
            .as_ref()
            .and_then(|dialect| dialect.refusal_wait);
        if let Some(wait) = documented.filter(|_| feedback.refused && feedback.wait().is_none()) {
            feedback.hold = Some(Hold {
                wait,
                field: Rule::DOCUMENTED,
            });
        }
        feedback.scope = sheet.scope;
        feedback.malformed = std::mem::take(&mut sheet.malformed);
        feedback.malformed_count = sheet.malformed_count;
        feedback
    }
}

const RETRY_AFTER: &str = "retry-after";

/// Marks that are no numbers.
#[derive(Debug, Default)]
struct Signs {
    /// `Retry-After` came, readable or not: a sign of a refusal where the status alone is none.
    retry_after: bool,
    /// gRPC status 8, `RESOURCE_EXHAUSTED`.
    exhausted: bool,
    /// A field says in words that this is a refusal.
    limited: bool,
}

/// A budget is spent and its reset lies ahead. In the budgets that are not spent the reset is only the time of sending.
fn spent_ahead(budgets: &mut [Budget]) -> bool {
    for budget in budgets.iter_mut().filter(|budget| !budget.is_spent()) {
        budget.reset = budget.reset.map(|_| Duration::ZERO);
    }
    budgets
        .iter()
        .any(|budget| budget.is_spent() && budget.reset.is_some_and(|reset| !reset.is_zero()))
}

/// Only the `Age` field counts: an age worked out from `Date` would call every response stale on a client whose clock runs
/// ahead.
fn is_cached(headers: &HeaderMap) -> bool {
    let age = headers.get(AGE).map(|age| age.as_bytes().trim_ascii());
    age.is_some_and(|age| {
        age.iter().all(u8::is_ascii_digit) && age.iter().any(|&digit| digit != b'0')
    })
}
