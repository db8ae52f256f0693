//! The events themselves.

use std::time::Duration;

use tracing::Level;

use crate::{
    engine::{Cancelled, Cause, Correction, Grant, Pause, RateCause, Time, WaitReason},
    error::Error,
    feedback::Malformed,
    head::RequestHead,
};

/// The target of all audit events.
pub const TARGET: &str = "tower_throttle::audit";

/// What an answer was and what it changed.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) refused: bool,
    pub(crate) correction: Correction,
}

/// Whether anybody listens.
pub(crate) fn enabled() -> bool {
    tracing::enabled!(target: TARGET, Level::INFO)
}

pub(crate) fn sent(limiter: &str, grant: &Grant, request: &impl RequestHead) {
    tracing::info!(
        target: TARGET,
        event = "sent",
        limiter,
        seq = grant.seq,
        method = request.method(),
        scheme = request.scheme(),
        host = request.host(),
        port = request.port(),
        path = request.path(),
        cost = grant.cost,
        waited_us = micros(grant.waited),
        would_wait_us = would_wait(grant),
        reason = reason(grant.reason),
        level_after = grant.level(),
        rate = grant.rate(),
    );
}

pub(crate) fn acquired(limiter: &str, grant: &Grant) {
    tracing::info!(
        target: TARGET,
        event = "acquired",
        limiter,
        seq = grant.seq,
        cost = grant.cost,
        waited_us = micros(grant.waited),
        would_wait_us = would_wait(grant),
        reason = reason(grant.reason),
        level_after = grant.level(),
        rate = grant.rate(),
    );
}

pub(crate) fn answered(
    limiter: &str,
    seq: u64,
    status: u16,
    elapsed: Duration,
    answered: &Answered,
) {
    let Answered {
        refused,
        correction,
    } = answered;
    tracing::info!(
        target: TARGET,
        event = "answered",
        limiter,
        seq,
        status,
        elapsed_us = micros(elapsed),
        throttled = refused,
        stale = correction.stale,
        rate_before = correction.rate_before,
        rate_after = correction.rate_after,
        because = correction.because.map(because),
        paused = correction.paused.is_some(),
    );
}

/// What a request took was corrected to what it really cost.
pub(crate) fn settled(limiter: &str, seq: u64, took: u32, real: u32) {
    tracing::info!(target: TARGET, event = "settled", limiter, seq, took, real);
}

/// What a request really cost could not be charged.
pub(crate) fn unsettled(limiter: &str, seq: u64, error: &Error) {
    tracing::warn!(target: TARGET, event = "unsettled", limiter, seq, why = error.reason());
}

/// The limiter was changed while it ran.
pub(crate) fn changed(limiter: &str, what: &str) {
    tracing::info!(target: TARGET, event = "changed", limiter, what);
}

pub(crate) fn failed(limiter: &str, seq: u64, elapsed: Duration) {
    tracing::info!(target: TARGET, event = "failed", limiter, seq, elapsed_us = micros(elapsed));
}

pub(crate) fn abandoned(limiter: &str, seq: u64, elapsed: Duration) {
    tracing::info!(target: TARGET, event = "abandoned", limiter, seq, elapsed_us = micros(elapsed));
}

pub(crate) fn refused(limiter: &str, seq: u64, cost: u32, error: &Error) {
    tracing::info!(
        target: TARGET,
        event = "refused",
        limiter,
        seq,
        cost,
        why = error.reason(),
        retry_after_us = error.retry_after().map(micros),
    );
}

pub(crate) fn refused_request(
    limiter: &str,
    seq: u64,
    cost: u32,
    error: &Error,
    request: &impl RequestHead,
) {
    tracing::info!(
        target: TARGET,
        event = "refused",
        limiter,
        seq,
        method = request.method(),
        scheme = request.scheme(),
        host = request.host(),
        port = request.port(),
        path = request.path(),
        cost,
        why = error.reason(),
        retry_after_us = error.retry_after().map(micros),
    );
}

pub(crate) fn cancelled(limiter: &str, cancelled: &Cancelled) {
    tracing::info!(
        target: TARGET,
        event = "cancelled",
        limiter,
        seq = cancelled.seq,
        waited_us = micros(cancelled.waited),
        held = cancelled.held,
    );
}

pub(crate) fn waiting(
    limiter: &str,
    seq: u64,
    waited: Duration,
    expected: Duration,
    pause: Option<Pause>,
) {
    tracing::info!(
        target: TARGET,
        event = "waiting",
        limiter,
        seq,
        waited_us = micros(waited),
        expected_us = micros(expected),
        reason = pause.map_or("rate", |pause| cause(pause.cause)),
    );
}

/// `asked` is what the server asked for, if it did, in `field`; what is honoured is what the pause is now.
pub(crate) fn paused(
    limiter: &str,
    seq: Option<u64>,
    asked: Option<Duration>,
    field: Option<&str>,
    pause: Pause,
    now: Time,
) {
    tracing::warn!(
        target: TARGET,
        event = "paused",
        limiter,
        seq,
        cause = cause(pause.cause),
        field,
        asked_us = asked.map(micros),
        honoured_us = micros(pause.until.since(now)),
    );
}

/// `count`: how many values of this field could not be read so far.
pub(crate) fn malformed(limiter: &str, seq: Option<u64>, malformed: &Malformed, count: u64) {
    tracing::warn!(
        target: TARGET,
        event = "malformed",
        limiter,
        seq,
        field = %malformed.field,
        why = ?malformed.why,
        count,
    );
}

pub(crate) fn closed(limiter: &str) {
    tracing::info!(target: TARGET, event = "closed", limiter);
}

/// In a trial run, for those that would have had to wait.
fn would_wait(grant: &Grant) -> Option<u64> {
    (!grant.would_wait.is_zero()).then(|| micros(grant.would_wait))
}

const fn reason(reason: WaitReason) -> &'static str {
    match reason {
        WaitReason::None => "none",
        WaitReason::Rate => "rate",
        WaitReason::Pause(by) => cause(by),
    }
}

const fn because(cause: RateCause) -> &'static str {
    match cause {
        RateCause::Refusal => "refusal",
        RateCause::Measurement => "measurement",
        RateCause::Probe => "probe",
        RateCause::Budget => "budget",
    }
}

const fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::Server => "server_pause",
        Cause::Budget => "server_budget",
        Cause::Backoff => "backoff",
        Cause::Trial => "trial",
        Cause::Penalty => "penalty",
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
