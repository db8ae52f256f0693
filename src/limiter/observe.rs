use std::time::Duration;

use super::shared::Shared;
use crate::{
    audit,
    engine::{Answer, Flight, Reading},
    feedback::{Feedback, Scope, Unit},
};

/// After a refusal whose reset has just passed: dates have a grain of one second, so it may still be ahead by that much.
const DATE_GRAIN: Duration = Duration::from_secs(1);

/// Whether a response says nothing about limits, as most do.
pub(crate) fn says_nothing(feedback: &Feedback) -> bool {
    !feedback.refused
        && feedback.hold.is_none()
        && feedback.budgets.is_empty()
        && feedback.malformed_count == 0
}

/// Closes a request whose answer says nothing, if it needs no more than that; saves the look at the clock.
pub(crate) fn answered_silently(shared: &Shared, flight: Flight) -> bool {
    shared
        .touch(|state| state.engine.answer_silent(flight))
        .is_some()
}

/// Applies what a response said, and returns what that changed and how long the request took. `flight` names the request it answers, `seq` its number in the records; without them it counts as news.
pub(crate) fn observe(
    shared: &Shared,
    seq: Option<u64>,
    flight: Option<Flight>,
    feedback: &Feedback,
) -> (audit::Answered, Duration) {
    let readings: Vec<Reading<'_>> = (feedback.budgets.iter())
        .map(|budget| Reading {
            name: budget.name.as_deref(),
            partition: budget.partition.as_deref(),
            limit: budget.limit,
            remaining: budget.remaining,
            reset: budget.reset,
            window: budget.window,
            paces: budget.unit == Unit::Requests,
        })
        .collect();
    let asked = (feedback.hold.as_ref())
        .map(|hold| hold.wait)
        .filter(|wait| !wait.is_zero());
    let answer = Answer {
        refused: feedback.refused,
        wait: asked.or_else(|| feedback.reset_on_refusal()),
        least_backoff: if (readings.iter()).any(|reading| reading.reset == Some(Duration::ZERO)) {
            DATE_GRAIN
        } else {
            Duration::ZERO
        },
        shared: feedback.scope == Scope::Shared,
        readings: &readings,
    };
    let (correction, now, unreadable) = shared.apply(|state, now| {
        let correction = match flight {
            Some(flight) => state.engine.answer(now, flight, &answer),
            None => state.engine.reconcile(now, &answer),
        };
        state.counters.throttled += u64::from(feedback.refused);
        state.counters.malformed += u64::from(feedback.malformed_count);
        state.counters.pauses += u64::from(correction.paused.is_some());
        let unreadable: Vec<u64> = (feedback.malformed.iter())
            .map(|malformed| state.unreadable.count(&malformed.field))
            .collect();
        (correction, now, unreadable)
    });
    for (malformed, count) in feedback.malformed.iter().zip(unreadable) {
        // At the 1st, 2nd, 4th, 8th and so on: a server that is broken in each answer fills no disk.
        if count.is_power_of_two() {
            audit::malformed(&shared.name, seq, malformed, count);
        }
    }
    if let Some(pause) = correction.paused {
        let field = feedback.hold.as_ref().map(|hold| hold.field);
        audit::paused(&shared.name, seq, answer.wait, field, pause, now);
    }
    let answered = audit::Answered {
        refused: feedback.refused,
        correction,
    };
    let elapsed = flight.map_or(Duration::ZERO, |flight| now.since(flight.sent()));
    (answered, elapsed)
}
