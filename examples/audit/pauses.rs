//! Pauses: when one began, what set it, and how long it was held.

use std::collections::BTreeMap;

use tower_throttle::{
    Cause,
    engine::{Decision, Pause, Time},
};

use crate::follow::Seen;

/// What one pause was, once it is over or another has taken its place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) from: u64,
    pub(crate) until: u64,
    pub(crate) cause: Cause,
    /// The caller whose answer set it, if one.
    pub(crate) by: Option<u64>,
}

/// The pause under way, step by step.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    pub(crate) now: Option<Span>,
}

impl Tracker {
    /// Tells a pause that ended or was taken over.
    pub(crate) fn step(&mut self, seen: &Seen<'_>) -> Option<Span> {
        let set = match &seen.record.decision {
            Decision::Corrected { paused, .. } | Decision::Paused(paused) => *paused,
            // The one that tests the server holds the others back, which no decision tells.
            Decision::Sent(_) => trial(seen),
            _ => None,
        };
        let until = seen.record.after.paused_until.map(Time::as_nanos);
        let mut over = None;
        if let Some(mut span) = self.now {
            // It may have been cut short by an answer.
            let ended = until.is_none();
            if ended || set.is_some() {
                span.until = span.until.min(seen.at);
                over = Some(span);
                self.now = None;
            }
        }
        if let Some(pause) = set {
            self.now = Some(Span {
                from: seen.at,
                until: pause.until.as_nanos(),
                cause: pause.cause,
                by: seen.seq,
            });
        }
        over
    }
}

fn trial(seen: &Seen<'_>) -> Option<Pause> {
    let before = seen.before.and_then(|before| before.paused_until);
    let until = seen
        .record
        .after
        .paused_until
        .filter(|_| before.is_none_or(|until| until.as_nanos() <= seen.at))?;
    Some(Pause {
        until,
        cause: Cause::Trial,
    })
}

/// All pauses of a limiter, by what set them.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    tracker: Tracker,
    /// How many, the longest, and the time in all.
    pub(crate) kinds: BTreeMap<&'static str, (u64, u64, u64)>,
    pub(crate) servers: u64,
    /// Requests that left inside one, and the first.
    pub(crate) broken: u64,
    pub(crate) first_broken: Option<(u64, u64)>,
    /// The same, where nothing was enforced.
    pub(crate) unenforced: u64,
}

impl Pauses {
    /// `observed`: nothing is enforced at this time.
    pub(crate) fn step(&mut self, seen: &Seen<'_>, observed: bool) {
        let before = seen.before.and_then(|before| before.paused_until);
        let inside = before.is_some_and(|until| until.as_nanos() > seen.at);
        if let (true, Decision::Sent(leave)) = (inside, &seen.record.decision) {
            if observed || !leave.would_wait.is_zero() {
                self.unenforced += 1;
            } else {
                self.broken += 1;
                self.first_broken.get_or_insert((leave.seq, seen.at));
            }
        }
        if let Some(span) = self.tracker.step(seen) {
            self.count(span);
        }
    }

    /// A limiter opened anew knows nothing of it.
    pub(crate) fn end(&mut self, at: u64) {
        if let Some(mut span) = self.tracker.now.take() {
            span.until = span.until.min(at);
            self.count(span);
        }
    }

    pub(crate) fn total(&self) -> u64 {
        self.kinds.values().map(|kind| kind.0).sum()
    }

    fn count(&mut self, span: Span) {
        let length = span.until.saturating_sub(span.from);
        let kind = self
            .kinds
            .entry(crate::text::cause(span.cause))
            .or_default();
        kind.0 += 1;
        kind.1 = kind.1.max(length);
        kind.2 = kind.2.saturating_add(length);
        if matches!(span.cause, Cause::Server | Cause::Budget) {
            self.servers += 1;
        }
    }
}
