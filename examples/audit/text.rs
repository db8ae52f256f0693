//! Values as people read them.

use std::{borrow::Cow, time::Duration};

use tower_throttle::{
    Cause, WaitReason,
    engine::{Costs, QUOTAS, Refusal},
};

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Four digits are enough for people.
pub(crate) fn time(nanos: u64) -> String {
    let seconds = nanos as f64 / 1e9;
    match nanos {
        0 => "0 s".to_owned(),
        1..1_000 => format!("{nanos} ns"),
        1_000..1_000_000 => format!("{:.1} us", seconds * 1e6),
        1_000_000..1_000_000_000 => format!("{} ms", short(seconds * 1e3)),
        _ => format!("{} s", short(seconds)),
    }
}

/// A number without zeros at its end.
pub(crate) fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Seconds to the nanosecond.
pub(crate) fn seconds(nanos: u64) -> String {
    format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

/// What comes from a file must not move a terminal's cursor or make a line of its own.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if text.contains(char::is_control) {
        Cow::Owned(text.replace(char::is_control, "?"))
    } else {
        Cow::Borrowed(text)
    }
}

pub(crate) const fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::Server => "the server named a time to wait",
        Cause::Budget => "the server said that nothing is left",
        Cause::Backoff => {
            "the server refused without a time, or went on refusing after those it named"
        }
        Cause::Trial => "one request tested the server",
        Cause::Penalty => "the application asked for it",
        _ => "another cause",
    }
}

pub(crate) const fn reason(reason: WaitReason) -> &'static str {
    match reason {
        WaitReason::None => "none",
        WaitReason::Rate => "rate",
        WaitReason::Pause(Cause::Server) => "pause: server",
        WaitReason::Pause(Cause::Budget) => "pause: budget",
        WaitReason::Pause(Cause::Backoff) => "pause: backoff",
        WaitReason::Pause(Cause::Trial) => "pause: trial",
        WaitReason::Pause(Cause::Penalty) => "pause: penalty",
        _ => "other",
    }
}

pub(crate) const fn refusal(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::Closed => "the limiter was closed",
        Refusal::TooExpensive { .. } => "cost above the burst",
        Refusal::WouldWait(_) => "the wait would have been too long",
        Refusal::QueueFull(_) => "the line was full",
        Refusal::Paused(_) => "the server's pause was too long",
        Refusal::TimedOut(_) => "its patience ended in line",
        _ => "another reason",
    }
}

pub(crate) fn costs(costs: &Costs, names: &[String]) -> String {
    let each = (names.iter().enumerate().take(QUOTAS))
        .map(|(index, name)| format!("{} {}", costs.of(index), plain(name)));
    each.collect::<Vec<_>>().join(", ")
}

/// Nanoseconds since 1970 of a time as the journal writes it, `2026-11-30T15:20:23.000000000Z`.
pub(crate) fn wall(text: &str) -> Option<u64> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<u64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let clock = number(11..13)? * 3_600 + number(14..16)? * 60 + number(17..19)?;
    // Years that begin in March have their odd day at the end.
    let (year, month) = if month > 2 {
        (year, month.checked_sub(3)?)
    } else {
        (year.checked_sub(1)?, month + 9)
    };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day;
    let seconds = days.checked_sub(719_469)?.checked_mul(86_400)? + clock;
    let part = text.get(20..).unwrap_or_default().trim_end_matches('Z');
    let part = format!("{part:0<9}");
    let part = part.get(..9)?.parse::<u64>().ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(part)
}
