use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use super::{
    permit::{Above, KeyedPermit},
    wider::Wider,
};
use crate::{
    audit,
    engine::{Ask, Costs, Departure, Grant, Poll as Standing, Time},
    error::Error,
    limiter::{Alarm, Place, Shared},
};

/// One caller's way past the limiter of its key and the one above all keys. Dropping it gives everything back.
///
/// First it waits for its key, and has nothing of the global budget. When its turn has come it asks the global limiter, and joins the
/// line there if it must; what its key granted stays set aside, as for a service that is held ready. When both are there they are sent
/// under both locks, in one instant, or neither is: if the key has lost its turn meanwhile, the global one is given back at once.
#[derive(Debug)]
pub(crate) struct Pass {
    key: Place,
    above: Option<Place>,
    wider: Wider,
    cost: u32,
    /// When the caller's patience ends, by the keys' clock.
    deadline: Option<Time>,
}

/// Both have let the caller through.
#[derive(Debug)]
pub(crate) struct Passed {
    pub(crate) grant: Grant,
    pub(crate) above: Option<Above>,
}

/// One of them, `shared`, has refused it.
#[derive(Debug)]
pub(crate) struct Stopped {
    pub(crate) shared: Arc<Shared>,
    pub(crate) seq: u64,
    pub(crate) error: Error,
}

enum Next {
    Sent(Passed),
    Stopped(Stopped),
    /// Ask again where it stands now.
    Ask,
}

impl Pass {
    pub(super) fn new(key: Arc<Shared>, wider: Wider) -> Self {
        let above = (wider.above.as_ref()).map(|above| Place::new(Arc::clone(above.shared())));
        Self {
            key: Place::new(key),
            above,
            wider,
            cost: 0,
            deadline: None,
        }
    }

    /// The limiter of the key.
    pub(crate) const fn key(&self) -> &Arc<Shared> {
        self.key.shared()
    }

    /// Where answers go that concern more than the key.
    pub(crate) const fn wider(&self) -> &Wider {
        &self.wider
    }

    /// Joins the key's line; goes through at once if both let it.
    pub(crate) fn start(
        &mut self,
        cost: u32,
        patience: Option<Duration>,
        tracked: bool,
    ) -> Result<Option<Passed>, Stopped> {
        self.cost = cost;
        self.deadline = patience.map(|patience| self.key().clock.now().after(patience));
        self.wider.all.holds_back(self.key());
        match self.key.join(&ask(cost, patience)) {
            Ok(false) => return Ok(None),
            Ok(true) => {}
            Err(refused) => return Err(self.stopped_by_key(refused)),
        }
        match self.after_key(tracked) {
            Next::Sent(passed) => Ok(Some(passed)),
            Next::Stopped(stopped) => Err(stopped),
            Next::Ask => Ok(None),
        }
    }

    /// Ready when both have let the caller through, and it is counted as sent.
    pub(crate) fn poll_sent(
        &mut self,
        mut alarm: Pin<&mut Alarm>,
        cx: &mut Context<'_>,
        tracked: bool,
    ) -> Poll<Result<Passed, Stopped>> {
        loop {
            let next = match self.above.as_mut().filter(|above| above.is_taken()) {
                Some(above) => match ready!(above.poll_granted(alarm.as_mut(), cx)) {
                    Ok(()) => self.after_above(tracked),
                    Err(refused) => Next::Stopped(self.stopped_by_above(refused)),
                },
                None => match ready!(self.key.poll_granted(alarm.as_mut(), cx)) {
                    Ok(()) => self.after_key(tracked),
                    Err(refused) => Next::Stopped(self.stopped_by_key(refused)),
                },
            };
            match next {
                Next::Sent(passed) => return Poll::Ready(Ok(passed)),
                Next::Stopped(stopped) => return Poll::Ready(Err(stopped)),
                Next::Ask => {}
            }
        }
    }

    /// The key has granted it.
    fn after_key(&mut self, tracked: bool) -> Next {
        if self.wider.all.holds_back(self.key.shared()) {
            return Next::Ask;
        }
        let Some(above) = &mut self.above else {
            return match self.key.send(tracked, None) {
                Some(Ok(grant)) => Next::Sent(Passed { grant, above: None }),
                Some(Err(refused)) => Next::Stopped(self.stopped_by_key(refused)),
                None => Next::Ask,
            };
        };
        let now = self.key.shared().clock.now();
        let patience = self.deadline.map(|deadline| deadline.since(now));
        match above.join(&ask(self.cost, patience)) {
            Ok(true) => self.after_above(tracked),
            Ok(false) => Next::Ask,
            Err(refused) => Next::Stopped(self.stopped_by_above(refused)),
        }
    }

    /// Both have granted it, as far as is known.
    fn after_above(&mut self, tracked: bool) -> Next {
        let Some(above) = &mut self.above else {
            return Next::Ask;
        };
        if self.wider.all.holds_back(self.key.shared()) {
            release(above);
            return Next::Ask;
        }
        match both(&mut self.key, above, tracked) {
            Both::Sent(mut grant, by_above) => {
                if !by_above.waited.is_zero() {
                    grant.waited = grant.waited.saturating_add(by_above.waited);
                    grant.reason = by_above.reason;
                }
                audit::acquired(&above.shared().name, &by_above);
                Next::Sent(Passed {
                    grant,
                    above: Some(Above::of(&by_above)),
                })
            }
            Both::KeyWaits => {
                // Nothing of the global budget while it waits for its key.
                release(above);
                Next::Ask
            }
            Both::AboveWaits => Next::Ask,
            Both::KeyRefuses(seq, error) => Next::Stopped(self.stopped_by_key((seq, error))),
            Both::AboveRefuses(seq, error) => Next::Stopped(self.stopped_by_above((seq, error))),
        }
    }

    fn stopped_by_key(&mut self, (seq, error): (u64, Error)) -> Stopped {
        if let Some(above) = &mut self.above {
            release(above);
        }
        let shared = Arc::clone(self.key.shared());
        Stopped { shared, seq, error }
    }

    fn stopped_by_above(&mut self, (seq, error): (u64, Error)) -> Stopped {
        release(&mut self.key);
        let above = self.above.as_ref().unwrap_or(&self.key);
        let shared = Arc::clone(above.shared());
        Stopped { shared, seq, error }
    }
}

impl Passed {
    /// The permit, recorded.
    pub(super) fn permit(self, key: &Shared) -> KeyedPermit {
        audit::acquired(&key.name, &self.grant);
        KeyedPermit::new(self.grant, self.above)
    }
}

fn ask(cost: u32, patience: Option<Duration>) -> Ask {
    Ask {
        costs: Costs::each(cost),
        patience,
        ..Ask::default()
    }
}

/// Gives up a place, at once.
fn release(place: &mut Place) {
    let fresh = Place::new(Arc::clone(place.shared()));
    drop(std::mem::replace(place, fresh));
}

#[expect(
    clippy::large_enum_variant,
    reason = "moved once, where a box would cost an allocation for each request"
)]
enum Both {
    Sent(Grant, Grant),
    KeyWaits,
    AboveWaits,
    KeyRefuses(u64, Error),
    AboveRefuses(u64, Error),
}

/// Sends two granted places in one instant, or neither.
///
/// The lock of the key is taken first, then that of the global limiter, here and everywhere; tasks are woken after both are released.
fn both(key: &mut Place, above: &mut Place, tracked: bool) -> Both {
    let (Some(key_id), Some(above_id)) = (key.ticket(), above.ticket()) else {
        return Both::KeyWaits;
    };
    let global = Arc::clone(above.shared());
    let global_now = global.clock.now();
    let (outcome, wakers) = key.shared().apply(|state, now| {
        let seq = state.engine.standing(key_id).map_or(0, |(seq, _)| seq);
        match state.engine.poll(now, key_id) {
            Standing::Granted if state.engine.has_room(key_id) => {}
            Standing::Granted => {
                // Puts it back in line.
                let departure = state.engine.send(now, key_id, tracked);
                let waker = state.settle(key_id, &departure);
                let outcome = match departure {
                    Departure::Refused(refusal) => Both::KeyRefuses(seq, Error::refused(refusal)),
                    Departure::Wait(_) | Departure::Sent(_) => Both::KeyWaits,
                };
                return (outcome, [waker, None]);
            }
            Standing::Wait(_) => return (Both::KeyWaits, [None, None]),
            Standing::Refused(refusal) => {
                state.counters.refused += 1;
                let waker = state.forget(key_id);
                let outcome = Both::KeyRefuses(seq, Error::refused(refusal));
                return (outcome, [waker, None]);
            }
        }
        let (departure, seq, woken) = global.touch(|global| {
            let seq = global.engine.standing(above_id).map_or(0, |(seq, _)| seq);
            let departure = global.engine.send(global_now, above_id, false);
            let woken = global.settle(above_id, &departure);
            (departure, seq, woken)
        });
        let by_above = match departure {
            Departure::Sent(grant) => grant,
            Departure::Wait(_) => return (Both::AboveWaits, [None, woken]),
            Departure::Refused(refusal) => {
                let outcome = Both::AboveRefuses(seq, Error::refused(refusal));
                return (outcome, [None, woken]);
            }
        };
        let departure = state.engine.send(now, key_id, tracked);
        let waker = state.settle(key_id, &departure);
        let outcome = match departure {
            Departure::Sent(grant) => Both::Sent(grant, by_above),
            // There is room, as was seen a moment ago under the same lock.
            Departure::Wait(_) | Departure::Refused(_) => Both::KeyWaits,
        };
        (outcome, [waker, woken])
    });
    drop(wakers);
    // Wakes those in the global line whom this concerns.
    global.apply(|_, _| ());
    match outcome {
        Both::Sent(..) => {
            key.over();
            above.over();
        }
        Both::KeyRefuses(..) => key.over(),
        Both::AboveRefuses(..) => above.over(),
        Both::KeyWaits | Both::AboveWaits => {}
    }
    outcome
}
