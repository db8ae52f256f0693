//! The shared, asynchronous face of one [`Engine`](crate::engine::Engine).
//!
//! Every change goes through one function that takes the lock, changes the engine, releases the lock and then wakes whom the change
//! concerns. Each waiter keeps its own timer, and whoever comes by grants everything that is due, to everybody: no future drives
//! another's progress, so a future that is parked, or dropped, holds nobody up.

pub mod keyed;

mod acquire;
mod alarm;
mod builder;
mod clock;
mod cost;
mod deadline;
mod handle;
mod live;
mod observe;
mod permit;
mod place;
mod recorded;
mod shared;
mod slept;
mod snapshot;
mod unreadable;

pub use acquire::Acquire;
pub use builder::LimiterBuilder;
pub use cost::Cost;
pub use deadline::Deadline;
pub use handle::Limiter;
pub use permit::Permit;
pub use snapshot::{Budget, Counters, QuotaState, Regime, Snapshot};

pub(crate) use alarm::Alarm;
pub(crate) use clock::wall;
pub(crate) use observe::{answered_silently, observe, says_nothing};
pub(crate) use place::Place;
pub(crate) use shared::Shared;
