use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::time::Instant;

use super::{alarm::Alarm, recorded::Recorded, shared::Shared};
use crate::{
    audit,
    engine::{Ask, Costs, Departure, Grant, Poll as Standing, TicketId, Time},
    error::Error,
};

/// A wait this long is reported while it lasts.
const LONG_WAIT: Duration = Duration::from_secs(30);

/// One caller's place in a limiter: not in it, in line, or granted. Dropping it gives everything back.
#[derive(Debug)]
pub(crate) struct Place {
    shared: Arc<Shared>,
    ticket: Option<TicketId>,
    /// When a wait that goes on is reported next.
    report: Time,
}

impl Place {
    pub(crate) const fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            ticket: None,
            report: Time::MAX,
        }
    }

    pub(crate) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Gives back what was set aside for a request that is refused for another reason. Returns its number; the refusal is the one record of
    /// its end.
    pub(crate) fn withdraw(&mut self) -> u64 {
        let Some(id) = self.ticket.take() else {
            return 0;
        };
        let (cancelled, waker) = self.shared.apply(|state, now| {
            state.counters.refused += 1;
            (state.engine.cancel(now, id), state.forget(id))
        });
        drop(waker);
        cancelled.map_or(0, |cancelled| cancelled.seq)
    }

    pub(crate) const fn ticket(&self) -> Option<TicketId> {
        self.ticket
    }

    /// Forgets a ticket that is gone: sent or refused.
    pub(crate) const fn over(&mut self) {
        self.ticket = None;
    }

    pub(crate) const fn is_taken(&self) -> bool {
        self.ticket.is_some()
    }

    /// Joins the line; true if granted at once. On refusal the caller's number comes with the error.
    pub(crate) fn join(&mut self, ask: &Ask) -> Result<bool, (u64, Error)> {
        debug_assert!(self.ticket.is_none(), "one ticket at a time");
        self.shared.admit().map_err(|error| (0, error))?;
        let (ticket, granted, now) = self.shared.apply(|state, now| {
            let ticket = state.engine.join_as(now, ask);
            let granted = ticket.is_ok_and(|id| state.engine.is_granted(id));
            state.counters.refused += u64::from(ticket.is_err());
            (ticket, granted, now)
        });
        let id = ticket.map_err(|(seq, refusal)| (seq, Error::refused(refusal)))?;
        self.wait_as(id, now);
        Ok(granted)
    }

    /// Joins the line, and is counted as sent if it is granted at once.
    pub(crate) fn join_or_send(&mut self, ask: &Ask) -> Result<Option<Grant>, (u64, Error)> {
        self.shared.admit().map_err(|error| (0, error))?;
        let (joined, now) = self.shared.apply(|state, now| {
            let joined = state.engine.join_as(now, ask).map(|id| {
                match state
                    .engine
                    .is_granted(id)
                    .then(|| state.engine.send(now, id, false))
                {
                    Some(Departure::Sent(grant)) => Ok(grant),
                    _ => Err(id),
                }
            });
            state.counters.refused += u64::from(joined.is_err());
            (joined, now)
        });
        match joined.map_err(|(seq, refusal)| (seq, Error::refused(refusal)))? {
            Ok(grant) => Ok(Some(grant)),
            Err(id) => {
                self.wait_as(id, now);
                Ok(None)
            }
        }
    }

    /// Gives up waiting at `deadline`, or at once if the turn comes later.
    pub(crate) fn hurry(&mut self, deadline: Instant) -> Result<(), (u64, Error)> {
        let Some(id) = self.ticket else {
            return Ok(());
        };
        let deadline = self.shared.clock.time(deadline);
        let (refusal, waker) = self.shared.apply(|state, now| {
            let refusal = state.engine.hurry(now, id, deadline);
            state.counters.refused += u64::from(refusal.is_some());
            let waker = refusal.and_then(|_| state.forget(id));
            (refusal, waker)
        });
        drop(waker);
        let Some((seq, refusal)) = refusal else {
            return Ok(());
        };
        self.ticket = None;
        Err((seq, Error::refused(refusal)))
    }

    fn wait_as(&mut self, id: TicketId, now: Time) {
        self.ticket = Some(id);
        self.report = if audit::enabled() {
            now.after(LONG_WAIT)
        } else {
            Time::MAX
        };
    }

    /// Ready when granted. The grant stays held.
    pub(crate) fn poll_granted(
        &mut self,
        alarm: Pin<&mut Alarm>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), (u64, Error)>> {
        self.poll_until(alarm, cx, |engine, now, id| match engine.poll(now, id) {
            Standing::Granted => Departure::Sent(()),
            Standing::Wait(until) => Departure::Wait(until),
            Standing::Refused(refusal) => Departure::Refused(refusal),
        })
    }

    /// Ready when granted and counted as sent. `real`: what it costs, if that is not what was asked for.
    pub(crate) fn poll_sent(
        &mut self,
        alarm: Pin<&mut Alarm>,
        cx: &mut Context<'_>,
        tracked: bool,
        real: Option<&Costs>,
    ) -> Poll<Result<Grant, (u64, Error)>> {
        let sent = ready!(self.poll_until(alarm, cx, |engine, now, id| {
            send(engine, now, id, tracked, real)
        }));
        self.ticket = None;
        Poll::Ready(sent)
    }

    /// Counts a granted place as sent, if what was granted is still there. Otherwise the place stands in line again. `real`: what it costs,
    /// if that is not what was asked for.
    pub(crate) fn send(
        &mut self,
        tracked: bool,
        real: Option<&Costs>,
    ) -> Option<Result<Grant, (u64, Error)>> {
        let id = self.ticket?;
        let (departure, seq, waker) = self.shared.apply(|state, now| {
            let seq = state.engine.standing(id).map_or(0, |(seq, _)| seq);
            let departure = send(&mut state.engine, now, id, tracked, real);
            let waker = state.settle(id, &departure);
            (departure, seq, waker)
        });
        drop(waker);
        match departure {
            Departure::Sent(grant) => {
                self.ticket = None;
                Some(Ok(grant))
            }
            Departure::Wait(_) => None,
            Departure::Refused(refusal) => {
                self.ticket = None;
                Some(Err((seq, Error::refused(refusal))))
            }
        }
    }

    fn poll_until<T>(
        &mut self,
        mut alarm: Pin<&mut Alarm>,
        cx: &mut Context<'_>,
        ask: impl Fn(&mut Recorded, Time, TicketId) -> Departure<T>,
    ) -> Poll<Result<T, (u64, Error)>> {
        let Some(id) = self.ticket else {
            return Poll::Ready(Err((0, Error::not_ready())));
        };
        loop {
            let (departure, now, seq, waker) = self.shared.apply(|state, now| {
                let seq = state.engine.standing(id).map_or(0, |(seq, _)| seq);
                let departure = ask(&mut state.engine, now, id);
                let waker = match departure {
                    Departure::Wait(_) => state.remember(id, cx),
                    _ => state.settle(id, &departure),
                };
                (departure, now, seq, waker)
            });
            drop(waker);
            match departure {
                Departure::Sent(value) => {
                    alarm.stop();
                    return Poll::Ready(Ok(value));
                }
                Departure::Refused(refusal) => {
                    self.ticket = None;
                    alarm.stop();
                    return Poll::Ready(Err((seq, Error::refused(refusal))));
                }
                Departure::Wait(until) => {
                    if now >= self.report {
                        self.report_wait(id, now, until);
                    }
                    let at = until.min(self.report);
                    ready!(alarm.as_mut().poll_at(&self.shared.clock, at, cx));
                }
            }
        }
    }

    fn report_wait(&mut self, id: TicketId, now: Time, until: Time) {
        let (standing, pause) = self
            .shared
            .apply(|state, _| (state.engine.standing(id), state.engine.pause()));
        if let Some((seq, waited)) = standing {
            audit::waiting(&self.shared.name, seq, waited, until.since(now), pause);
            self.report = now.after(waited.max(LONG_WAIT));
        }
    }
}

fn send(
    engine: &mut Recorded,
    now: Time,
    id: TicketId,
    tracked: bool,
    real: Option<&Costs>,
) -> Departure {
    let mut departure = engine.send(now, id, tracked);
    if let (Departure::Sent(grant), Some(real)) = (&mut departure, real) {
        engine.reprice(now, grant, real);
    }
    departure
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(id) = self.ticket else { return };
        let (cancelled, waker) = self.shared.apply(|state, now| {
            let cancelled = state.engine.cancel(now, id);
            if cancelled.is_some() {
                state.counters.cancelled += 1;
            }
            (cancelled, state.forget(id))
        });
        drop(waker);
        if let Some(cancelled) = cancelled {
            audit::cancelled(&self.shared.name, &cancelled);
        }
    }
}
