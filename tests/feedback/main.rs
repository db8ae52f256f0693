//! The reader against real responses, and what the limiter makes of what it reads.
#![allow(missing_docs, clippy::unwrap_used, clippy::disallowed_methods)]

mod read;
#[path = "../support/mod.rs"]
mod support;

mod application;
mod corpus;
mod far;
mod limits;
mod shapes;
mod windows;
mod worker;
