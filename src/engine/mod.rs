//! The pacing state machine, without clock, lock, log or runtime.
//!
//! [`Engine`] is handed the time and answers with decisions and the next instant at which to be asked again. It owns the token bucket,
//! the line, reservations, pauses, the budgets the server announced and the rate together, because fairness, cancellation and
//! correction must be one transition. Most users want [`Limiter`](crate::Limiter), which wraps one engine for async code; drive the
//! engine itself to simulate in virtual time or to use another runtime.
//!
//! A caller's way through: [`join`](Engine::join) makes a ticket, [`poll`](Engine::poll) says whether it is granted or when to ask
//! again, [`send`](Engine::send) turns a granted ticket into a request on its way, [`answer`](Engine::answer) brings back what the
//! server said. [`cancel`](Engine::cancel) ends a ticket at any point before it is sent.
//!
//! # A granted ticket that is not sent
//!
//! Its tokens are set aside and go back when it is cancelled. Nobody waits for it: tokens for those behind come all the same. But what
//! really leaves is counted a second time, when it leaves: never more than the burst, and 10 ms worth of tokens for late timers, on
//! top of the rate. A ticket that was held for long may therefore find no room when it is sent, and a pause takes what was set aside,
//! because nothing may be sent inside it. Either way the ticket keeps its number and waits at the front of the line. So neither a
//! service held ready for an hour, nor one called in the middle of a pause, nor a machine that stood still for a minute sends more
//! than the law allows.
//!
//! # Rounding
//!
//! Amounts are exact integers; see `bucket.rs`. Due times round up to the nanosecond, lowered rates round down.
//!
//! ```
//! use std::time::Duration;
//! use tower_throttle::{Quota, engine::{Config, Departure, Engine, Poll, Time}};
//!
//! let mut engine = Engine::new(Config::new(Quota::per_second(1)), Time::ZERO)?;
//! engine.try_send(Time::ZERO, 1).expect("the bucket starts full");
//! let ticket = engine.join(Time::ZERO, 1, None).expect("there is no bound on waiting");
//! let second = Time::ZERO.after(Duration::from_secs(1));
//! assert_eq!(engine.poll(Time::ZERO, ticket), Poll::Wait(second));
//! assert!(matches!(engine.send(second, ticket, false), Departure::Sent(_)));
//! # Ok::<(), tower_throttle::ConfigError>(())
//! ```

mod answer;
mod backoff;
mod bucket;
mod config;
mod correct;
mod costs;
mod flow;
mod gates;
mod lean;
mod learned;
mod line;
mod live;
mod machine;
mod outcome;
mod priority;
mod quota;
mod rate;
mod record;
mod settle;
mod sound;
mod strict;
mod tickets;
mod time;
mod windows;
mod words;

pub use answer::{Answer, Cause, Correction, Flight, Pause, QuotaView, RateCause, Reading, View};
pub use config::{Adapt, Backoff, Config, Spend};
pub use costs::{Costs, QUOTAS};
pub(crate) use lean::{Lean, Plan};
pub use learned::{Adaptation, Learned, Phase};
pub use line::Ask;
pub use machine::Engine;
pub use outcome::{Cancelled, Departure, Grant, Poll, Refusal, WaitReason};
pub use priority::Priority;
pub use quota::{ConfigError, Quota};
pub use record::{After, Decision, Departed, Leave, Record, Step, Told, ToldReading};
pub use sound::Unsound;
pub use tickets::TicketId;
pub use time::Time;
pub use windows::Window;
