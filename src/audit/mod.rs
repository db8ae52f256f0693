//! Pacing decisions as [`tracing`] events, target [`TARGET`]: the audit trail.
//!
//! The field `event` tells them apart. All carry `limiter` (its name) and, where there is one, `seq`: the number of the request or
//! permit in order of arrival, the same in all its events.
//!
//! | `event` | level | when | further fields |
//! |---|---|---|---|
//! | `sent` | INFO | a request goes to the inner service, before it does | `method`, `scheme`, `host`, `path`, `cost`, `waited_us`, `would_wait_us` (in a trial run), `reason`, `level_after`, `rate` |
//! | `acquired` | INFO | a permit is given by [`Limiter::acquire`](crate::Limiter::acquire) or `try_acquire` | as `sent`, without the request |
//! | `answered` | INFO | its response head has come | `status`, `elapsed_us`, `throttled`, `stale`, `rate_before`, `rate_after`, `because`, `paused` |
//! | `settled` | INFO | what it took was corrected to what it really cost | `took`, `real` |
//! | `unsettled` | WARN | the same, but a quota was named that does not exist | `why` |
//! | `failed` | INFO | the inner service gave an error | `elapsed_us` |
//! | `abandoned` | INFO | the response future was dropped before the answer | `elapsed_us` |
//! | `refused` | INFO | it was not sent because of the limiter | `cost`, `why`, `retry_after_us`, and the request if it is known |
//! | `cancelled` | INFO | a caller left before its turn, or without using it | `waited_us`, `held` |
//! | `waiting` | INFO | a caller has waited 30 s, then each time that doubles | `waited_us`, `expected_us`, `reason` |
//! | `paused` | WARN | a pause began or was extended | `cause`, `field`, `asked_us`, `honoured_us` |
//! | `malformed` | WARN | a header field could not be read; the 1st, 2nd, 4th, 8th time and so on for each field | `field`, `why`, `count` |
//! | `changed` | INFO | quota, patience or mode were changed, or everything was paused or resumed | `what` |
//! | `closed` | INFO | the limiter was closed | |
//!
//! Each request through the layer has exactly one closing event: `answered`, `failed` or `abandoned` after a `sent`; `refused` or
//! `cancelled` without one. For a permit `acquired` is the last.
//!
//! `because` says what changed the rate, if it changed: `refusal`, `measurement`, `probe` (see [`Adapt`](crate::Adapt)) or `budget`. `reason`
//! says what a caller waited for: `rate`, or the pause, by its cause: `server_pause`, `server_budget`, `backoff`, `trial` or `penalty`.
//!
//! With a [`KeyedLimiter`](crate::KeyedLimiter) each key's limiter has a name of its own, made of the keyed limiter's and a number or a
//! [label](crate::KeyedBuilder::label). Callers for whose key there is no room are `refused` under the keyed limiter's own name, with
//! `seq` 0.
//!
//! Times are microseconds. `level_after` is what is left after the request, in tokens; `rate` is in tokens a second. Events carry method, scheme,
//! host, port and path: never the query, user information, any header's value, or the text of an error,
//! which could quote them.

mod events;
#[cfg(feature = "journal")]
pub mod journal;

pub use events::TARGET;
pub(crate) use events::*;
