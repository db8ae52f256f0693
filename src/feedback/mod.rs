//! What a response head says about the server's limits.
//!
//! [`read`] is a pure function from status, headers and wall clock to [`Feedback`]: whether this is a refusal, how long the
//! server asks to wait, and which budgets it showed. It knows `Retry-After` in all its forms (RFC 9110), the IETF fields
//! `RateLimit` and `RateLimit-Policy` of drafts 00 to 10, and the families of `X-RateLimit-*` names with their many units.
//!
//! What no value can tell, such as a bare number of milliseconds, a [`Dialect`] adds, which is picked or written in a few
//! lines and given to a [`Reader`].
//!
//! Where honest readers may differ it takes the reading that never sends earlier: more left than the limit is as much as the
//! limit. What it cannot read is no information: never a wait of zero, and never a panic. A reset or a window beyond
//! [`MAX_WINDOW`], which no server has, is none either. It looks at a bounded part of every value, keeps a bounded number of budgets,
//! and allocates nothing for a response without rate fields.

mod answer;
mod budget;
mod counts;
mod date;
mod dialect;
mod dispatch;
mod duration;
mod malformed;
mod name;
mod number;
mod pairs;
mod ratelimit;
mod reader;
mod retry_after;
mod sheet;
mod slot;
mod translate;
mod value;
mod vendors;
mod weigh;
mod words;

#[cfg(test)]
mod tests;

pub use answer::{Feedback, Hold, MAX_BUDGETS, MAX_MALFORMED, Scope};
pub use budget::{Budget, MAX_WINDOW, Unit};
pub use dialect::{Dialect, Meaning, Rule};
pub use malformed::{Fault, Malformed};
pub use reader::{Reader, read};
pub use value::TimeForm;
