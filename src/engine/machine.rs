use std::{collections::VecDeque, time::Duration};

use super::{
    answer::{Answer, Cause, Correction, Flight, Pause, View},
    bucket::Bucket,
    config::Config,
    correct::Trial,
    costs::{Costs, Sums},
    gates::{Further, Gate},
    line::Ask,
    outcome::{Cancelled, Departure, Grant, Poll, Refusal, WaitReason},
    priority::Line,
    quota::ConfigError,
    rate::Rate,
    strict::Log,
    tickets::{Ejected, List, State, Ticket, TicketId, Tickets},
    time::Time,
    windows::Windows,
};

/// How a caller is let in.
#[derive(Debug, Clone, Copy)]
pub(super) enum Admitted {
    /// It may wait until then.
    Until(Time),
    /// It may leave at once, though it would have to wait so long.
    Passed(Duration),
}

/// The whole pacing state: bucket, line, reservations, pauses, server budgets and rate, changed together and only here.
///
/// Every method that takes `now` lets time pass up to it first; a `now` before the last one counts as no time. After each call the
/// driver must look at [`take_woken`](Self::take_woken): callers named there should ask ([`poll`](Self::poll)) again. Besides, each
/// waiting caller should ask again at the instant it was told. Asking too often or too early does no harm.
#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone)]
pub struct Engine {
    pub(super) config: Config,
    pub(super) bucket: Bucket,
    pub(super) further: Vec<Further>,
    pub(super) rate: Rate,
    pub(super) windows: Windows,
    pub(super) pause: Option<Pause>,
    pub(super) trial: Trial,
    pub(super) tickets: Tickets,
    pub(super) line: Line,
    pub(super) held: List,
    pub(super) now: Time,
    /// Callers waited shortly before; until this instant their lateness is not lost.
    pub(super) busy_until: Time,
    /// Cost granted to callers in line who have not come back since: the lateness is kept for them once nobody waits.
    pub(super) away: u64,
    pub(super) held_cost: u64,
    pub(super) in_flight: u64,
    pub(super) seq: u64,
    pub(super) sent: u64,
    /// Somebody left from the middle of the line, so those behind know too late an instant.
    pub(super) gaps: bool,
    pub(super) closed: bool,
    /// No caller in line has less patience than until then.
    pub(super) soonest: Time,
    /// The application holds everything back.
    pub(super) halted: bool,
    /// Requests that would have waited, had it been enforced.
    pub(super) would_wait: u64,
    pub(super) woken: VecDeque<TicketId>,
}

impl Engine {
    /// A full bucket and an empty line.
    ///
    /// # Errors
    ///
    /// If the configuration is invalid.
    pub fn new(config: Config, now: Time) -> Result<Self, ConfigError> {
        config.validate()?;
        let bucket = Bucket::new(&config.quota, now);
        let mut rate = Rate::new(bucket.full_rate(), config.adapt, config.backoff);
        if let Some(learned) = config.learned {
            rate.resume(bucket.rate_of(learned.per_second()));
        }
        let mut further = Vec::new();
        let all = [&config.quota].into_iter().chain(&config.further);
        for (index, quota) in all.enumerate() {
            let gate = match (index, quota.is_strict()) {
                (_, true) => Gate::Log(Log::new(quota, now)),
                (0, false) => continue,
                (_, false) => Gate::Bucket(Bucket::new(quota, now)),
            };
            further.push(Further { index, gate });
        }
        Ok(Self {
            rate,
            bucket,
            further,
            windows: Windows::default(),
            pause: None,
            trial: Trial::None,
            tickets: Tickets::default(),
            line: Line::EMPTY,
            held: List::EMPTY,
            now,
            busy_until: Time::ZERO,
            away: 0,
            held_cost: 0,
            in_flight: 0,
            seq: 0,
            sent: 0,
            gaps: false,
            closed: false,
            soonest: Time::MAX,
            halted: false,
            would_wait: 0,
            woken: VecDeque::new(),
            config,
        })
    }

    /// The configuration it was built from.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Joins the line for `cost` of each quota. The caller is granted at once if nobody waits and tokens are there; ask with
    /// [`poll`](Self::poll).
    ///
    /// `patience` bounds the wait of this caller, besides the limiter's own `max_wait`.
    ///
    /// # Errors
    ///
    /// If the caller can or should never be served; it then has taken nothing. The number is the caller's.
    pub fn join(
        &mut self,
        now: Time,
        cost: u32,
        patience: Option<Duration>,
    ) -> Result<TicketId, (u64, Refusal)> {
        let ask = Ask {
            costs: Costs::each(cost),
            patience,
            ..Ask::default()
        };
        self.join_as(now, &ask)
    }

    /// As [`join`](Self::join), with all a caller can want.
    ///
    /// # Errors
    ///
    /// As with [`join`](Self::join).
    pub fn join_as(&mut self, now: Time, ask: &Ask) -> Result<TicketId, (u64, Refusal)> {
        self.advance(now);
        self.seq += 1;
        let seq = self.seq;
        let costs = ask.costs;
        self.away = self.away.saturating_sub(u64::from(costs.first()));
        let admitted = if self.config.observe {
            self.observe(ask)
        } else {
            self.admit(ask).map(Admitted::Until)
        };
        let deadline = match admitted {
            Ok(Admitted::Until(deadline)) => deadline,
            Ok(Admitted::Passed(wait)) => self.now.after(wait),
            Err(refusal) => return Err((seq, refusal)),
        };
        let ticket = Ticket::new(seq, costs, ask.priority, self.now, deadline);
        let id = self
            .tickets
            .insert(ticket)
            .ok_or((seq, Refusal::QueueFull(Duration::ZERO)))?;
        if let Ok(Admitted::Passed(_)) = admitted {
            self.set_state(id, State::Passed);
        } else if self.line.is_empty() && self.can_take(&costs) {
            self.grant(id, &costs);
        } else {
            self.enqueue(id);
            self.grant_due();
        }
        Ok(id)
    }

    /// Where a caller stands. A caller that lost what it held stands at the front of the line again.
    pub fn poll(&mut self, now: Time, id: TicketId) -> Poll {
        self.advance(now);
        self.requeue_revoked(id);
        let Some(ticket) = self.tickets.get(id) else {
            return Poll::Refused(Refusal::Closed);
        };
        match ticket.state {
            State::Held | State::Passed => Poll::Granted,
            State::Refused(why) => {
                let refusal = self.ejection(why);
                self.tickets.remove(id);
                Poll::Refused(refusal)
            }
            _ if ticket.deadline <= self.now => {
                let wait = self.turn_of(ticket).since(self.now);
                self.leave(id);
                Poll::Refused(Refusal::TimedOut(wait))
            }
            _ => {
                let until = self.turn_of(ticket).min(ticket.deadline);
                if let Some(ticket) = self.tickets.get_mut(id) {
                    ticket.armed = until;
                    ticket.called = false;
                }
                Poll::Wait(until)
            }
        }
    }

    /// Bounds the wait of a ticket anew: it is refused if its turn comes later, or the time has come. The number is the caller's.
    pub fn hurry(&mut self, now: Time, id: TicketId, deadline: Time) -> Option<(u64, Refusal)> {
        self.advance(now);
        self.requeue_revoked(id);
        let now = self.now;
        let ticket = self.tickets.get_mut(id)?;
        let seq = ticket.seq;
        if ticket.state == State::Passed {
            return None;
        }
        ticket.deadline = ticket.deadline.min(deadline);
        self.soonest = self.soonest.min(ticket.deadline);
        let ticket = self.tickets.get(id)?;
        // As if it were the first in line, which it mostly is.
        let turn = match ticket.state {
            State::Waiting => self.due(&Sums::NONE.plus(&ticket.costs)),
            _ => now,
        };
        let refusal = if deadline <= now {
            Refusal::TimedOut(turn.since(now))
        } else if turn <= deadline {
            return None;
        } else {
            Refusal::WouldWait(turn.since(now))
        };
        self.leave(id);
        Some((seq, refusal))
    }

    /// Turns a granted ticket into a request that is sent now. With `tracked` the request counts as in flight until it is closed, which
    /// then must happen; without, the server's budgets are charged at once, and it may be answered or not.
    pub fn send(&mut self, now: Time, id: TicketId, tracked: bool) -> Departure {
        match self.poll(now, id) {
            Poll::Wait(until) => Departure::Wait(until),
            Poll::Refused(refusal) => Departure::Refused(refusal),
            Poll::Granted => self.send_held(id, tracked),
        }
    }

    /// Sends `cost` of each quota at once or not at all; never passes a line.
    ///
    /// # Errors
    ///
    /// If that would take a wait, or can never be. The number is the caller's.
    pub fn try_send(&mut self, now: Time, cost: u32) -> Result<Grant, (u64, Refusal)> {
        self.try_send_as(now, &Ask::from(Costs::each(cost)))
    }

    /// As [`try_send`](Self::try_send), with all a caller can want; its patience is none.
    ///
    /// # Errors
    ///
    /// As with [`try_send`](Self::try_send).
    pub fn try_send_as(&mut self, now: Time, ask: &Ask) -> Result<Grant, (u64, Refusal)> {
        self.advance(now);
        self.seq += 1;
        let seq = self.seq;
        let costs = ask.costs;
        self.away = self.away.saturating_sub(u64::from(costs.first()));
        let ask = Ask {
            patience: Some(Duration::ZERO),
            ..*ask
        };
        let mut would_wait = Duration::ZERO;
        if self.config.observe {
            if let Admitted::Passed(wait) = self.observe(&ask).map_err(|refusal| (seq, refusal))? {
                would_wait = wait;
            }
        } else {
            self.admit(&ask).map_err(|refusal| (seq, refusal))?;
        }
        if would_wait.is_zero() {
            self.take(&costs);
            if !self.let_go(&costs, self.now) {
                self.put_off(&costs, self.now);
                let wait = self.due(&Sums::NONE.plus(&costs)).since(self.now);
                return Err((seq, Refusal::WouldWait(wait)));
            }
        }
        let mut grant = self.depart(seq, &costs, Duration::ZERO, WaitReason::None, false);
        grant.would_wait = would_wait;
        if !would_wait.is_zero() {
            grant.costs = Costs::NONE;
        }
        Ok(grant)
    }

    /// Leaves before being sent; what was held goes to those who wait.
    pub fn cancel(&mut self, now: Time, id: TicketId) -> Option<Cancelled> {
        self.advance(now);
        let ticket = self.tickets.get(id)?;
        let cancelled = Cancelled {
            seq: ticket.seq,
            waited: self.now.since(ticket.arrived),
            held: matches!(ticket.state, State::Held | State::Passed),
        };
        self.leave(id);
        Some(cancelled)
    }

    /// The answer to a request has come.
    pub fn answer(&mut self, now: Time, flight: Flight, answer: &Answer<'_>) -> Correction {
        self.advance(now);
        self.land(flight);
        self.correct(Some(flight), answer)
    }

    /// The answer to a request has come and says nothing about limits. `None` if the engine has to be told by
    /// [`answer`](Self::answer), with the time; otherwise that would change nothing else.
    pub fn answer_silent(&mut self, flight: Flight) -> Option<()> {
        if !self.windows.is_empty() || !self.rate.accepted_unchallenged() {
            return None;
        }
        self.in_flight = self.in_flight.saturating_sub(u64::from(flight.cost));
        Some(())
    }

    /// A request ended without an answer: it failed or was given up. It counts as used.
    pub fn unanswered(&mut self, now: Time, flight: Flight) {
        self.advance(now);
        self.land(flight);
        let tested = self.end_trial(flight);
        self.windows.charge_unread(u64::from(flight.cost), &[]);
        self.hold_if_spent();
        if tested {
            self.loosened();
        } else {
            self.settle_line();
        }
    }

    fn land(&mut self, flight: Flight) {
        self.in_flight = self.in_flight.saturating_sub(u64::from(flight.cost));
        self.windows.landed(flight);
    }

    /// Takes in what the server said outside any request of ours.
    pub fn reconcile(&mut self, now: Time, answer: &Answer<'_>) -> Correction {
        self.advance(now);
        self.correct(None, answer)
    }

    /// Holds everything back for `wait`. A pause under way is never shortened. Returns the pause if it was set or extended.
    pub fn penalize(&mut self, now: Time, wait: Duration) -> Option<Pause> {
        self.advance(now);
        self.rate.settle(self.sent);
        self.hold(wait, Cause::Penalty)
    }

    /// Ends it: everybody who waits or comes is refused.
    pub fn close(&mut self, now: Time) {
        self.refill(now);
        self.closed = true;
        self.eject(Ejected::Closed);
    }

    /// Lets time pass and grants everybody whose turn has come.
    pub fn advance(&mut self, now: Time) {
        self.refill(now);
        self.grant_due();
    }

    /// The next caller that should ask again, if any.
    pub fn take_woken(&mut self) -> Option<TicketId> {
        self.woken.pop_front()
    }

    /// The number of a caller that is still here, and how long it has been.
    #[must_use]
    pub fn standing(&self, id: TicketId) -> Option<(u64, Duration)> {
        self.tickets
            .get(id)
            .map(|ticket| (ticket.seq, self.now.since(ticket.arrived)))
    }

    /// Whether a caller holds what it asked for, as of the last `now`.
    #[must_use]
    pub fn is_granted(&self, id: TicketId) -> bool {
        self.tickets
            .get(id)
            .is_some_and(|ticket| ticket.state == State::Held)
    }

    /// The pause under way at the last `now`.
    #[must_use]
    pub fn pause(&self) -> Option<Pause> {
        self.pause.filter(|pause| pause.until > self.now)
    }

    /// How many slots tickets may name; see [`TicketId::slot`].
    #[must_use]
    pub fn slots(&self) -> usize {
        self.tickets.slots()
    }

    /// A look at the state at `now`.
    pub fn view(&mut self, now: Time) -> View {
        self.advance(now);
        let pause = self.pause();
        let level = if pause.is_some() || self.halted {
            self.bucket.level().min(0)
        } else {
            self.bucket.level()
        };
        View {
            level: level as f64 / self.bucket.token() as f64,
            rate: self.bucket.per_second(self.rate_now()),
            queue_len: self.line.len(),
            held: self.held_cost,
            in_flight: self.in_flight,
            sent: self.sent,
            pause,
            halted: self.halted,
            quotas: self.quota_views(),
            would_wait: self.would_wait,
            windows: self.windows.view(),
            adaptation: self
                .rate
                .view(|rate| self.bucket.per_second(rate), self.bucket.token()),
        }
    }
}
