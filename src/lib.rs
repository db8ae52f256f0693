//! An outbound throttle for tower HTTP clients: one budget for all your tasks, corrected by what the server says.
//!
//! ```
//! use tower::ServiceBuilder;
//! use tower_throttle::{Limiter, Quota, ThrottleLayer};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use http_body_util::Empty;
//! # use hyper::body::Bytes;
//! # use hyper_util::{client::legacy::Client, rt::TokioExecutor};
//! let limiter = Limiter::new(Quota::per_second(2).burst(5))?;
//! let client = ServiceBuilder::new()
//!     .layer(ThrottleLayer::new(limiter.clone()))
//!     .service(Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>());
//! # drop(client);
//! # Ok(())
//! # }
//! ```
//!
//! A [`Limiter`] is one shared budget: a token bucket with a line in front. [`ThrottleLayer`] puts it before a client: `poll_ready`
//! waits, in order of arrival, for a token; the response future reads the status and the rate-limit fields of each answer and corrects
//! the shared budget, so that one clone's 429 slows every clone. Without a client, ask the limiter directly:
//! [`acquire`](Limiter::acquire), [`try_acquire`](Limiter::try_acquire), [`penalize`](Limiter::penalize),
//! [`reconcile`](Limiter::reconcile).
//!
//! One budget for each host, account or API key, and perhaps one above them all: [`KeyedLimiter`], [`KeyedThrottleLayer`], and
//! [what they promise](limiter::keyed).
//!
//! # What you can rely on
//!
//! - **The ceiling.** In any time `W` at most `burst + rate * (W + 10 ms)` leaves, whatever is cloned, dropped, parked or called late,
//!   and whatever clocks do. No header raises the rate above the configured one.
//! - **No stall.** While somebody waits and nothing forbids it, the next request leaves when it is due. Futures that are parked or
//!   dropped, and services held ready and never called, hold nobody up. There is no background task.
//! - **The server's word.** Nothing leaves inside a pause the server asked for. Later answers extend it, never shorten it. At its end
//!   one request leaves, and the rest follow at the rate.
//! - **Order.** First come, first served, within a [`Priority`]. Newcomers do not pass the line. No class starves another.
//! - **Several quotas.** Each holds by itself; while a request waits for one it holds nothing of the others.
//! - **Nothing lost.** A refused, timed-out or cancelled caller takes nothing.
//! - **A record.** Each decision is an event; see [`audit`].
//!
//! # What answers do
//!
//! | answer | effect |
//! |---|---|
//! | 429, or 503, 403, 418, 420 with `Retry-After`, or gRPC status 8 in the head | pause for the time it names |
//! | the same without a usable time, but with a reset | pause until the reset |
//! | the same with neither | pause, longer each time while nothing is accepted |
//! | any of these | after the pause one request tests the server before others follow; named pauses grow too once three in a row were in vain |
//! | refusals, with or without a time | settle just under the rate at which the server accepts, and probe now and then for more ([`Adapt`]) |
//! | nothing left until a reset, on any status | pause until the reset |
//! | so much left until a reset | spread it over that time, or over a minute if that is shorter ([`Spend`]), counting requests under way as used |
//! | a window whose size is known has ended | no more than that leaves in the next one, until an answer speaks of it |
//! | `Retry-After` on 2xx or 3xx, other errors, fields that make no sense | nothing; unreadable fields are counted and recorded |
//!
//! Which fields are read, and how, is in [`feedback`]. A [classifier](ThrottleLayer::classify) can change what was read.
//!
//! # Exceptions to the ceiling
//!
//! A request whose [`Cost`] is known only when it is called, or after its answer, is not held again for what is above the unit it waited
//! for: it leaves the limiter in debt, and those who follow wait until it is paid.
//!
//! # Time
//!
//! Waits are counted by tokio's monotonic clock; the day's clock only serves to read dates in headers, against the server's own. Time
//! goes on while the machine sleeps (on Linux, Android, macOS and Windows): a pause that has ended meanwhile is over within a second of
//! waking for those who come, and within 30 s for those who wait. After a sleep, as after any stall, nothing is caught up with beyond a
//! burst.
//!
//! # Tuning
//!
//! - **Quotas**: add what the server has, up to four; see [`LimiterBuilder::quota`], [`Quota::at_most`] and [`ThrottleLayer::cost`].
//! - **Rate**: what the server allows. If you do not know it, a ceiling ten times too high costs a few dozen 429s at the
//!   beginning and one in several hundred later; see [`Adapt`].
//! - **Burst**: how many requests may leave at once after a quiet time. A server that counts in fixed or sliding windows sees
//!   `burst + rate * window` in the worst one. The default is 1.
//! - **Patience**: [`max_wait`](LimiterBuilder::max_wait) and [`max_queue`](LimiterBuilder::max_queue) refuse callers that would wait
//!   too long, [`max_pause`](LimiterBuilder::max_pause) bounds what a server may ask for.
//! - **Place in the stack**: inside retries and redirects, so that each attempt pays; see [`ThrottleLayer`].
//! - **High rates**: timers have a grain of 1 ms. Up to 10 ms of lateness are made up for, so 100,000 a second work with a burst of 1.
//!
//! # Clients
//!
//! kube, octocrab and tonic take a tower service: give them a stack with this layer over hyper-util's client or tonic's `Channel`. They
//! keep it in a `Buffer`, which this layer never breaks. Where they wrap errors, ours is in the chain of `source()`; with tonic, in that
//! of the `Status`, whose code is then `Unknown`.
//!
// With an example in reqwest, which only the package `tests/clients` can compile.
#![cfg_attr(not(doctest), doc = include_str!("client/reqwest.md"))]

pub mod audit;
pub mod client;
pub mod engine;
pub mod feedback;
pub mod limiter;

mod error;
mod head;

pub use client::{KeyedThrottle, KeyedThrottleLayer, Pacing, Throttle, ThrottleLayer};
pub use engine::{Adapt, Cause, ConfigError, Learned, Priority, Quota, Spend, WaitReason};
pub use error::{Error, ErrorKind};
pub use head::{RequestHead, ResponseHead};
pub use limiter::keyed::{KeyedBuilder, KeyedLimiter, KeyedPermit, KeyedSnapshot, Overflow};
pub use limiter::{Cost, Deadline, Limiter, LimiterBuilder, Permit, Regime, Snapshot};

/// The error type of the layer's services, as in tower.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeDoctests;
