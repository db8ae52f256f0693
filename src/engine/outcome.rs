use std::time::Duration;

use super::{
    answer::{Cause, Flight},
    costs::Costs,
    time::Time,
};

/// Where a caller stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Poll {
    /// It may send now.
    Granted,
    /// It should ask again at this instant at the latest.
    Wait(Time),
    /// It will never be granted; the ticket is gone.
    Refused(Refusal),
}

/// What became of an attempt to send.
#[derive(Debug, Clone, PartialEq)]
pub enum Departure<T = Grant> {
    /// It is sent; the ticket is gone.
    Sent(T),
    /// What it had been granted is gone (a pause came, or others used the room meanwhile); it waits at the front of the line.
    Wait(Time),
    /// It will never be granted; the ticket is gone.
    Refused(Refusal),
}

/// A request that may be sent, and was counted as sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grant {
    /// The caller's number, in order of arrival.
    pub seq: u64,
    /// The request, to be named again when its answer comes.
    pub flight: Flight,
    /// What it took of the first quota.
    pub cost: u32,
    /// What it took of each.
    pub costs: Costs,
    /// How long the caller waited in line.
    pub waited: Duration,
    /// How long it would have waited at least, where nothing is enforced; it then took nothing.
    pub would_wait: Duration,
    /// What it waited for last.
    pub reason: WaitReason,
    pub(super) level: i128,
    pub(super) token: i128,
    pub(super) rate: u64,
}

impl Grant {
    /// Tokens left after this request.
    #[must_use]
    pub fn level(&self) -> f64 {
        self.level as f64 / self.token as f64
    }

    /// Tokens a second at the time of this request.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rate as f64 * 1e9 / self.token as f64
    }
}

/// What a caller waited for.
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitReason {
    /// It did not wait.
    None,
    /// The limiter's own rate and those ahead in line.
    Rate,
    /// A pause; who or what set it.
    Pause(Cause),
}

/// Why a caller is not served.
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The limiter was closed.
    Closed,
    /// The cost is above the burst: the bucket can never hold it.
    TooExpensive {
        /// What was asked.
        cost: u32,
        /// What the bucket can hold.
        burst: u32,
    },
    /// Nothing can be had without waiting, or the wait would be longer than the caller's or the limiter's patience.
    WouldWait(Duration),
    /// The line is full; the wait it would be.
    QueueFull(Duration),
    /// The server asked for a pause longer than is tolerated; what is left of it.
    Paused(Duration),
    /// The caller's patience ended while it waited; how much longer it would have had to wait.
    TimedOut(Duration),
}

/// A caller that left before it was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cancelled {
    /// The caller's number.
    pub seq: u64,
    /// How long it had waited.
    pub waited: Duration,
    /// It had been granted, and what it held went back.
    pub held: bool,
}
