//! The layer, through tower's own combinators, on tokio's paused clock.
#![allow(missing_docs, clippy::unwrap_used, clippy::disallowed_methods)]

#[path = "../support/mod.rs"]
mod support;

mod adaptation;
mod audit;
mod auto_traits;
mod budgets;
mod contract;
mod guide;
mod headers;
mod pauses;
mod refusals;
mod sharing;
mod stacking;
mod weights;
