//! The line: joining, being granted, leaving.

use std::time::Duration;

use super::{
    answer::Flight,
    bucket::SLACK,
    costs::{Costs, Sums},
    machine::Engine,
    outcome::{Departure, Grant, Poll, Refusal, WaitReason},
    priority::Priority,
    tickets::{Ejected, State, Ticket, TicketId},
    time::Time,
};

/// How many callers near the front of a class are told when their turn comes earlier than they know; see [`Engine::retime`].
const RETIME: usize = 16;

/// What a caller wants.
#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ask {
    /// What it takes.
    pub costs: Costs,
    /// The longest wait, besides the limiter's own bound.
    pub patience: Option<Duration>,
    /// Refuse if so many of all classes wait already, besides the limiter's own bound.
    pub max_queue: Option<usize>,
    /// Refuse during a server pause of which more is left, besides the limiter's own bound.
    pub max_pause: Option<Duration>,
    /// The class.
    pub priority: Priority,
}

impl From<Costs> for Ask {
    fn from(costs: Costs) -> Self {
        Self {
            costs,
            ..Self::default()
        }
    }
}

impl Engine {
    /// Checks whether the caller may join the line, and returns when its patience ends.
    pub(super) fn admit(&self, ask: &Ask) -> Result<Time, Refusal> {
        if self.closed {
            return Err(Refusal::Closed);
        }
        self.afford(&ask.costs)?;
        self.tolerate_pause(ask.max_pause)?;
        let max_queue = least(ask.max_queue, self.config.max_queue);
        let patience = match least(ask.patience, self.config.max_wait) {
            Some(patience) => patience,
            // Without patience or bound nothing has to be known about the wait.
            None if max_queue.is_none() => return Ok(Time::MAX),
            None => Duration::MAX,
        };
        if self.line.is_empty() && self.can_take(&ask.costs) {
            return Ok(self.now.after(patience));
        }
        let ahead = self.line.ahead(ask.priority).plus(&ask.costs);
        let wait = self.due(&ahead).since(self.now);
        if wait > patience || (wait.is_zero() && patience.is_zero()) {
            return Err(Refusal::WouldWait(wait));
        }
        if max_queue.is_some_and(|bound| self.line.len() >= bound) {
            return Err(Refusal::QueueFull(wait));
        }
        Ok(self.now.after(patience))
    }

    /// Whether the quotas can ever hold what it costs.
    pub(super) fn afford(&self, costs: &Costs) -> Result<(), Refusal> {
        let check = |cost: u32, burst: u32| {
            if cost > burst {
                Err(Refusal::TooExpensive { cost, burst })
            } else {
                Ok(())
            }
        };
        check(costs.first(), self.config.quota.burst_size())?;
        for (index, quota) in self.config.further.iter().enumerate() {
            check(costs.of(index + 1), quota.burst_size())?;
        }
        Ok(())
    }

    pub(super) fn tolerate_pause(&self, bound: Option<Duration>) -> Result<(), Refusal> {
        let bound = bound.map_or(self.config.max_pause, |bound| {
            bound.min(self.config.max_pause)
        });
        match self.pause() {
            Some(pause) if pause.until.since(self.now) > bound => {
                Err(Refusal::Paused(pause.until.since(self.now)))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn enqueue(&mut self, id: TicketId) {
        let ticket = self
            .tickets
            .get(id)
            .expect("a ticket is queued right after it was made");
        let (costs, priority) = (ticket.costs, ticket.priority);
        self.soonest = self.soonest.min(ticket.deadline);
        self.line.joining(priority);
        let class = self.line.class_mut(priority);
        // Numbers grow along the line.
        let last = (self.tickets.back(&class.list))
            .and_then(|id| self.tickets.get(id))
            .map_or(Sums::NONE, |last| last.queued_through);
        class.cost = class.cost.plus(&costs);
        self.tickets.push_back(&mut class.list, id);
        if let Some(ticket) = self.tickets.get_mut(id) {
            ticket.queued_through = last.plus(&costs);
        }
    }

    /// A ticket whose tokens are gone goes back to where its number belongs.
    pub(super) fn requeue_revoked(&mut self, id: TicketId) {
        let Some(ticket) = self.tickets.get(id) else {
            return;
        };
        if ticket.state != State::Revoked {
            return;
        }
        let (costs, priority, deadline) = (ticket.costs, ticket.priority, ticket.deadline);
        let base = self.passed(priority);
        if let Some(ticket) = self.tickets.get_mut(id) {
            ticket.queued_through = base;
            ticket.armed = Time::MAX;
        }
        if self.closed {
            self.set_state(id, State::Refused(Ejected::Closed));
        } else if self.config.observe {
            self.let_pass(id);
        } else if let Err(Refusal::TooExpensive { cost, burst }) = self.afford(&costs) {
            // The burst was lowered meanwhile.
            self.set_state(id, State::Refused(Ejected::TooExpensive { cost, burst }));
        } else if self.tolerate_pause(None).is_err() {
            self.set_state(id, State::Refused(Ejected::Paused));
        } else if self.is_hopeless(deadline) {
            self.set_state(id, State::Refused(Ejected::Hopeless));
        } else {
            self.set_state(id, State::Waiting);
            self.soonest = self.soonest.min(deadline);
            self.line.joining(priority);
            let class = self.line.class_mut(priority);
            class.cost = class.cost.plus(&costs);
            self.tickets.insert_by_seq(&mut class.list, id);
            self.grant_due();
            if self.line.waiting().nth(1).is_some() {
                // It takes a turn of its class: those of others may be earlier than the class's next.
                self.retime();
            }
        }
    }

    /// Lets a ticket that is in no list leave when it likes: nothing is enforced.
    pub(super) fn let_pass(&mut self, id: TicketId) {
        let now = self.now;
        if let Some(ticket) = self.tickets.get_mut(id) {
            ticket.state = State::Passed;
            // Never none: that would look as if it had not had to wait.
            ticket.deadline = now.max(ticket.arrived.after(Duration::from_nanos(1)));
        }
        self.would_wait += 1;
    }

    /// A ticket that was served did not leave after all: its class has its turn back.
    pub(super) fn unserve(&mut self, id: TicketId) {
        if let Some(ticket) = self.tickets.get_mut(id)
            && std::mem::take(&mut ticket.served)
        {
            self.line.unserved(ticket.priority, &ticket.costs);
        }
    }

    pub(super) fn send_held(&mut self, id: TicketId, tracked: bool) -> Departure {
        let ticket = self
            .tickets
            .get(id)
            .expect("a granted ticket is in the slab");
        let (costs, seq, granted) = (ticket.costs, ticket.seq, ticket.granted);
        let waited = granted.since(ticket.arrived);
        let reason = self.reason(ticket);
        if ticket.state == State::Passed {
            // How long it would have waited is kept in its deadline.
            let would_wait = ticket.deadline.since(ticket.arrived);
            self.tickets.remove(id);
            let mut grant = self.depart(seq, &costs, Duration::ZERO, WaitReason::None, tracked);
            // It took nothing.
            grant.costs = Costs::NONE;
            grant.would_wait = would_wait;
            return Departure::Sent(grant);
        }
        self.tickets.unlink(&mut self.held, id);
        self.held_cost -= u64::from(costs.first());
        if self.let_go(&costs, granted) {
            self.tickets.remove(id);
            return Departure::Sent(self.depart(seq, &costs, waited, reason, tracked));
        }
        // Granted more than could leave at once: its turn is the next there is room for.
        self.put_off(&costs, granted);
        self.unserve(id);
        self.set_state(id, State::Revoked);
        // In line before what came back can go to those behind it, who are told of the rest.
        self.requeue_revoked(id);
        self.retime();
        match self.poll(self.now, id) {
            Poll::Refused(refusal) => Departure::Refused(refusal),
            Poll::Wait(until) => Departure::Wait(until),
            Poll::Granted => match self.tickets.get(id) {
                // Nothing is enforced.
                Some(ticket) if ticket.state == State::Passed => self.send_held(id, tracked),
                // Not before there is room, and there is none now.
                _ => Departure::Wait(self.now),
            },
        }
    }

    /// Takes a ticket out, whatever its state, and lets others profit.
    pub(super) fn leave(&mut self, id: TicketId) {
        let Some(ticket) = self.tickets.get(id) else {
            return;
        };
        let (state, costs, priority) = (ticket.state, ticket.costs, ticket.priority);
        let granted = ticket.granted;
        match state {
            State::Waiting => {
                let class = self.line.class_mut(priority);
                let first = self.tickets.front(&class.list) == Some(id);
                self.gaps |= !first;
                self.tickets.unlink(&mut class.list, id);
                class.cost = class.cost.minus(&costs);
            }
            State::Held => {
                self.tickets.unlink(&mut self.held, id);
                self.held_cost -= u64::from(costs.first());
                self.give_back(&costs, granted);
                self.unserve(id);
            }
            State::Revoked | State::Passed | State::Refused(_) | State::Free => {}
        }
        self.tickets.remove(id);
        if matches!(state, State::Waiting | State::Held) {
            self.loosened();
        }
    }

    /// Counts a request as sent. Its tokens have been taken.
    pub(super) fn depart(
        &mut self,
        seq: u64,
        costs: &Costs,
        waited: Duration,
        reason: WaitReason,
        tracked: bool,
    ) -> Grant {
        self.sent += 1;
        let cost = costs.first();
        if tracked {
            self.in_flight += u64::from(cost);
        } else {
            self.windows.charge_unread(u64::from(cost), &[]);
            self.hold_if_spent();
        }
        self.begin_trial(tracked);
        Grant {
            seq,
            flight: Flight {
                number: self.sent,
                sent: self.now,
                cost: if tracked { cost } else { 0 },
            },
            cost,
            costs: *costs,
            waited,
            would_wait: Duration::ZERO,
            reason,
            level: self.bucket.level(),
            token: self.bucket.token(),
            rate: self.rate_now(),
        }
    }

    pub(super) fn eject(&mut self, why: Ejected) {
        for priority in self.line.waiting() {
            while let Some(id) = self.tickets.front(&self.line.class(priority).list) {
                let list = &mut self.line.class_mut(priority).list;
                self.tickets.unlink(list, id);
                self.set_state(id, State::Refused(why));
                self.woken.push_back(id);
            }
        }
        self.line.clear();
        self.gaps = false;
    }

    pub(super) fn ejection(&self, why: Ejected) -> Refusal {
        match why {
            Ejected::Closed => Refusal::Closed,
            Ejected::TooExpensive { cost, burst } => Refusal::TooExpensive { cost, burst },
            Ejected::Paused => Refusal::Paused(self.pause_left()),
            Ejected::Hopeless => Refusal::WouldWait(self.pause_left()),
        }
    }

    pub(super) fn grant_due(&mut self) {
        if !self.line.is_empty() {
            self.busy_until = self.now.after(SLACK);
        }
        let mut granted = false;
        while let Some(priority) = self.line.next() {
            let Some(id) = self.tickets.front(&self.line.class(priority).list) else {
                break;
            };
            let costs = self
                .tickets
                .get(id)
                .map_or(Costs::NONE, |ticket| ticket.costs);
            if !self.can_take(&costs) {
                break;
            }
            let class = self.line.class_mut(priority);
            self.tickets.unlink(&mut class.list, id);
            class.cost = class.cost.minus(&costs);
            self.line.served(priority, &costs);
            if let Some(ticket) = self.tickets.get_mut(id) {
                ticket.served = true;
            }
            self.away = self.away.saturating_add(u64::from(costs.first()));
            self.grant(id, &costs);
            self.woken.push_back(id);
            granted = true;
        }
        self.clamp();
        if self.line.is_empty() {
            self.gaps = false;
        } else if granted && self.gaps {
            self.retime();
        }
    }

    /// Sets tokens aside for a ticket that is in no list.
    pub(super) fn grant(&mut self, id: TicketId, costs: &Costs) {
        self.take(costs);
        self.held_cost += u64::from(costs.first());
        self.tickets.push_back(&mut self.held, id);
        if let Some(ticket) = self.tickets.get_mut(id) {
            ticket.state = State::Held;
            ticket.granted = self.now;
        }
    }

    pub(super) fn can_take(&self, costs: &Costs) -> bool {
        let cost = u64::from(costs.first());
        !self.is_closed_at(self.now)
            && self.have(costs)
            && (cost == 0
                || self
                    .windows
                    .closed_until(self.in_flight + self.held_cost, cost)
                    == Time::ZERO)
    }

    /// Turns may have come earlier: grant what is due and tell those near the front.
    pub(super) fn loosened(&mut self) {
        self.grant_due();
        self.retime();
    }

    /// Wakes callers near the front whose turn is earlier than the instant they will ask at.
    ///
    /// Only the first few of each class, so that leaving stays cheap with many in line: each grant brings the next ones into view.
    /// Callers that were told and did not ask are passed over, as their task may be parked.
    pub(super) fn retime(&mut self) {
        for priority in self.line.waiting() {
            self.retime_class(priority);
        }
    }

    fn retime_class(&mut self, priority: Priority) {
        let base = self.passed(priority);
        let mut next = self.tickets.front(&self.line.class(priority).list);
        let first = self.first_of_others(priority);
        let mut ahead = Sums::NONE;
        let mut told = 0;
        for _ in 0..4 * RETIME {
            let Some(id) = next else { break };
            let Some(ticket) = self.tickets.get_mut(id) else {
                break;
            };
            ahead = ahead.plus(&ticket.costs);
            // Without those who left in between.
            ticket.queued_through = base.add_wrapping(ahead);
            let (called, armed) = (ticket.called, ticket.armed);
            if !called && armed > self.due(&ahead.plus(&first)) {
                if let Some(ticket) = self.tickets.get_mut(id) {
                    ticket.called = true;
                }
                self.woken.push_back(id);
                told += 1;
                if told == RETIME {
                    break;
                }
            }
            next = self.tickets.next(id);
        }
        // Those further back may know too late an instant, too.
        self.gaps |= told > 0 && next.is_some();
    }

    /// When a waiting caller's turn comes at the earliest: of other classes only the first is counted, if it is its turn. Those who left
    /// from the middle are counted as if they were still there.
    pub(super) fn turn_of(&self, ticket: &Ticket) -> Time {
        // Numbers grow along the line; if they did not, asking early would do no harm.
        let ahead = ticket.queued_through.since(self.passed(ticket.priority));
        let first = (self.tickets.front(&self.line.class(ticket.priority).list))
            .and_then(|id| self.tickets.get(id))
            .map_or(Costs::NONE, |head| head.costs);
        let ahead = ahead.max(&first).max(&ticket.costs);
        self.due(&ahead.plus(&self.first_of_others(ticket.priority)))
    }

    /// What the first of all in line costs, if it is of another class. Whoever asks while it is not there yet would be told to ask again
    /// at once, if that were not counted.
    fn first_of_others(&self, priority: Priority) -> Costs {
        (self.line.next())
            .filter(|&next| next != priority)
            .and_then(|next| self.tickets.front(&self.line.class(next).list))
            .and_then(|id| self.tickets.get(id))
            .map_or(Costs::NONE, |first| first.costs)
    }

    /// The count of queued cost up to the front of a class.
    pub(super) fn passed(&self, priority: Priority) -> Sums {
        (self.tickets.front(&self.line.class(priority).list))
            .and_then(|id| self.tickets.get(id))
            .map_or(Sums::NONE, |head| head.queued_through.minus(&head.costs))
    }

    /// When `sums` in all can have left from now on.
    pub(super) fn due(&self, sums: &Sums) -> Time {
        let outstanding = self.in_flight + self.held_cost;
        (self.due_by_quota(sums)).max(self.windows.closed_until(outstanding, sums.of(0)))
    }

    /// What a caller waited for: the last pause, if it stood in line during it.
    pub(super) fn reason(&self, ticket: &Ticket) -> WaitReason {
        if ticket.granted <= ticket.arrived {
            return WaitReason::None;
        }
        match self.pause {
            Some(pause) if pause.until > ticket.arrived => WaitReason::Pause(pause.cause),
            _ => WaitReason::Rate,
        }
    }

    pub(super) fn set_state(&mut self, id: TicketId, state: State) {
        if let Some(ticket) = self.tickets.get_mut(id) {
            ticket.state = state;
        }
    }
}

fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
