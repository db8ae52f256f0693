use std::time::Duration;

use super::{
    EVIDENCE, HAIR, MOVED,
    episode::Episode,
    probe::Guess,
    tally::{Tally, rate, tokens_in},
};
use crate::engine::time::Time;

/// What one episode after another says of the limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measurement {
    /// In credits a nanosecond.
    pub(super) limit: u64,
    /// How much more it may be; zero if that is little.
    pub(super) unsure: u64,
    /// It is a bound rather than a measurement.
    pub(super) weak: bool,
}

/// Measures the limit from what was accepted up to the end of `episode`. `last` is what was known when it began.
pub(super) fn measure(
    now: Time,
    tally: &Tally,
    episode: &Episode,
    last: Option<&Guess>,
    token: i128,
) -> Measurement {
    let before = episode.before;
    let accepted = tally.accepted.saturating_sub(1);
    let (mut limit, mut most) = count(now, tally, episode, token);
    if let Some(risen) = last.and_then(|last| count_risen(tally, episode, last, token))
        && risen.0 > limit
    {
        if risen.0 > limit.saturating_add(limit / MOVED) {
            most = most.max(risen.1);
        }
        limit = risen.0;
    }
    let volley = episode.volley_rate(token);
    if let Some(rate) = volley {
        limit = rate;
        most = rate.saturating_add(rate / 8);
    }

    // What a single episode may change: the less it rests on, the less.
    let few = accepted < EVIDENCE;
    let once = episode.tries == 1;
    // A probe may have gone far above what was known.
    let met = last.map_or(before, |last| before.min(last.limit.saturating_mul(2)));
    let lowest = match last {
        None if volley.is_some() => 0,
        Some(last) if !last.weak && once && few => met - met / 4,
        _ if few => met / 2,
        _ => met / 8,
    };
    let highest = match last {
        None => before / 2,
        // A single refusal of a rate that was thought safe: somebody else takes part of the limit, so we yield.
        Some(last) if once && last.unsure == 0 && before <= last.limit => before - before / MOVED,
        Some(_) => before - before / HAIR,
    };
    let bounded = limit < lowest;
    let weak = match last {
        None => volley.is_none(),
        Some(last) => last.weak && bounded,
    };
    let limit = limit.min(highest).max(lowest.min(highest));

    let unsure = if weak || bounded {
        limit / 4
    } else {
        most.saturating_sub(limit).min(limit / 4)
    };
    // Two that agree leave no doubt.
    let again = |last: &Guess| !last.weak && limit.abs_diff(last.limit) <= unsure / 2;
    let unsure = if unsure <= limit / MOVED || last.is_some_and(again) {
        0
    } else {
        unsure
    };
    Measurement {
        limit,
        unsure,
        weak,
    }
}

/// From the end of one episode to the end of the next: the likely limit, and the highest possible.
fn count(now: Time, tally: &Tally, episode: &Episode, token: i128) -> (u64, u64) {
    // The request that ends an episode belongs to the time after.
    let accepted = tally.accepted.saturating_sub(1);
    let served = tally.served.saturating_sub(1);
    let busy = tally.busy;
    // How late a pause of our own choice ended is not known to a round trip.
    let tested = if episode.told {
        episode.tested.min(busy / 2)
    } else {
        Duration::ZERO
    };
    let busy = busy - tested;
    let late = episode.late.min(busy / 2);
    // What came while nobody waited counts too where that makes it more, as with windows.
    let whole = now.since(tally.since).saturating_sub(late / 2);
    let limit = rate(accepted, busy - late / 2, token).max(rate(served, whole, token));
    let unknown = if episode.told { late / 2 } else { late };
    let most = rate(accepted, busy - unknown, token);
    // One more or less makes a difference.
    (limit, most.saturating_add(most / accepted.max(1)))
}

/// From the step of the probe before the last: the limit if it has risen since it was measured, likely and highest.
fn count_risen(tally: &Tally, episode: &Episode, last: &Guess, token: i128) -> Option<(u64, u64)> {
    let from = last.fast?.before?;
    let busy: Duration = tally.busy.saturating_sub(from.busy);
    // In a window that has just begun more is accepted than the limit allows.
    if episode.tries != 1 && busy < episode.paused.saturating_mul(4) {
        return None;
    }
    let accepted = (tally.accepted.saturating_sub(1)).saturating_sub(from.accepted);
    // What the server saved for us during the pause before is no part of its rate.
    let saved = tokens_in(last.limit, last.cost.paused, token);
    Some((
        rate(accepted.saturating_sub(saved), busy, token),
        rate(accepted, busy, token),
    ))
}
