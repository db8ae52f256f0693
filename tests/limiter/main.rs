//! The limiter by itself, on tokio's paused clock unless a test says otherwise.
#![allow(missing_docs, clippy::unwrap_used, clippy::disallowed_methods)]

#[path = "../support/mod.rs"]
mod support;

mod admission;
mod bounds;
mod cancellation;
mod classes;
mod clocks;
mod costs;
mod live;
mod pauses;
mod progress;
mod quotas;
mod shutdown;
mod start;
mod words;
