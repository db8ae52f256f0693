//! The tower face: [`ThrottleLayer`], [`Throttle`] and its [`ResponseFuture`].
//!
//! What happens to one request:
//!
//! 1. `poll_ready` joins the limiter's line for one unit, waits its turn, then waits for the inner service.
//! 2. `call` counts the request as sent, records it and calls the inner service.
//! 3. When the response head arrives, its status and rate-limit fields are read and applied to the shared limiter, before the caller
//!    sees the response. The body is not touched. What was decided is in the response's extensions as [`Pacing`].
//!
//! Dropping the service or the response future at any point gives back what was not sent, and counts what was sent as used.

pub mod keyed;

mod flight;
mod future;

mod layer;
mod options;
mod receipt;
mod service;

pub use crate::head::{RequestHead, ResponseHead};
pub use flight::Pacing;
pub use future::ResponseFuture;
pub use keyed::{KeyedThrottle, KeyedThrottleLayer};
pub use layer::ThrottleLayer;
pub use receipt::Receipt;
pub use service::Throttle;
