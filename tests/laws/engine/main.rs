//! The pacing state machine in virtual time: its laws over random traces, and against a naive model.
#![allow(missing_docs, clippy::unwrap_used)]

mod answers;
mod classes;
mod drive;
mod feedback;
mod laws;
mod ledger;
mod live;
mod mixed;
mod model;
mod observe;
mod ops;
mod properties;
mod quotas;
mod restore;
mod strict;
mod trial;

/// How many random traces a law is tried on. `THROTTLE_CASES` sets it for long runs.
fn cases() -> u32 {
    (std::env::var("THROTTLE_CASES").ok())
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(2000)
}
