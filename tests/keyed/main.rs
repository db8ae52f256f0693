//! Budgets by key, through the public face, on tokio's paused clock.
#![allow(missing_docs, clippy::unwrap_used, clippy::disallowed_methods)]

#[path = "../support/mod.rs"]
mod support;

mod forgetting;
mod global;
mod keys;
mod layer;
mod pauses;
mod records;
mod threads;
