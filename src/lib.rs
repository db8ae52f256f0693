//! An outbound throttle for tower HTTP clients.
pub mod audit;
pub mod client;
pub mod engine;
pub mod feedback;
pub mod limiter;

mod error;
mod head;

pub use client::{Pacing, Throttle, ThrottleLayer};
pub use engine::{Adapt, Cause, ConfigError, Quota, Spend, WaitReason};
pub use error::Error;
pub use head::{RequestHead, ResponseHead};
pub use limiter::{Limiter, LimiterBuilder, Permit, Regime, Snapshot};

/// The error type of the layer's services, as in tower.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
