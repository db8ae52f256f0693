//! Real clients over real sockets.
#![allow(missing_docs, clippy::unwrap_used, clippy::disallowed_methods)]

#[path = "../support/mod.rs"]
mod support;

mod clients;
mod nginx;
mod redirects;
mod server;
mod stacks;
