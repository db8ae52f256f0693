//! Real clients over real sockets, and the public types.
#![allow(missing_docs, clippy::unwrap_used, clippy::disallowed_methods)]

mod auto_traits;
mod clients;
mod nginx;
mod server;
mod stacks;
