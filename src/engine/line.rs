//! The line: joining, being granted, leaving.

use std::time::Duration;

use super::{
    answer::Flight,
    bucket::SLACK,
    machine::Engine,
    outcome::{Departure, Grant, Poll, Refusal, WaitReason},
    tickets::{Ejected, State, Ticket, TicketId},
    time::Time,
};

/// How many callers near the front are told when their turn comes earlier than they know; see [`Engine::retime`].
const RETIME: usize = 16;

impl Engine {
    /// Checks whether the caller may join the line, and returns when its patience ends.
    pub(super) fn admit(&self, cost: u32, patience: Option<Duration>) -> Result<Time, Refusal> {
        if self.closed {
            return Err(Refusal::Closed);
        }
        let burst = self.config.quota.burst_size();
        if cost > burst {
            return Err(Refusal::TooExpensive { cost, burst });
        }
        self.tolerate_pause()?;
        let patience = match (patience, self.config.max_wait) {
            (Some(caller), Some(limiter)) => caller.min(limiter),
            (caller, limiter) => match caller.or(limiter) {
                Some(patience) => patience,
                // Without patience or bound nothing has to be known about the wait.
                None if self.config.max_queue.is_none() => return Ok(Time::MAX),
                None => Duration::MAX,
            },
        };
        if self.waiting.is_empty() && self.can_take(cost) {
            return Ok(self.now.after(patience));
        }
        let wait = self.due(self.queued_cost + u64::from(cost)).since(self.now);
        if wait > patience || (wait.is_zero() && patience.is_zero()) {
            return Err(Refusal::WouldWait(wait));
        }
        if (self.config.max_queue).is_some_and(|bound| self.waiting.len() >= bound) {
            return Err(Refusal::QueueFull(wait));
        }
        Ok(self.now.after(patience))
    }

    pub(super) fn tolerate_pause(&self) -> Result<(), Refusal> {
        match self.pause() {
            Some(pause) if pause.until.since(self.now) > self.config.max_pause => {
                Err(Refusal::Paused(pause.until.since(self.now)))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn enqueue(&mut self, id: TicketId) {
        // Numbers grow along the line.
        let last = (self.tickets.back(&self.waiting))
            .and_then(|id| self.tickets.get(id))
            .map_or(0, |last| last.queued_through);
        let ticket = self
            .tickets
            .get_mut(id)
            .expect("a ticket is queued right after it was made");
        let cost = u64::from(ticket.cost);
        self.queued_cost += cost;
        ticket.queued_through = last.wrapping_add(cost);
        self.tickets.push_back(&mut self.waiting, id);
    }

    /// A ticket whose tokens are gone goes back to where its number belongs.
    pub(super) fn requeue_revoked(&mut self, id: TicketId) {
        let base = self.passed();
        let Some(ticket) = self.tickets.get_mut(id) else {
            return;
        };
        if ticket.state != State::Revoked {
            return;
        }
        let cost = u64::from(ticket.cost);
        ticket.queued_through = base;
        ticket.armed = Time::MAX;
        if let Err(Refusal::Paused(_)) = self.tolerate_pause() {
            self.set_state(id, State::Refused(Ejected::Paused));
        } else if self.closed {
            self.set_state(id, State::Refused(Ejected::Closed));
        } else {
            self.set_state(id, State::Waiting);
            self.queued_cost += cost;
            self.tickets.insert_by_seq(&mut self.waiting, id);
            self.grant_due();
        }
    }

    pub(super) fn send_held(&mut self, id: TicketId, tracked: bool) -> Departure {
        let ticket = self
            .tickets
            .get(id)
            .expect("a granted ticket is in the slab");
        let (cost, seq) = (ticket.cost, ticket.seq);
        let waited = ticket.granted.since(ticket.arrived);
        let idle = self.now.since(ticket.granted) > SLACK;
        let reason = self.reason(ticket);
        let credits = self.bucket.credits(u64::from(cost));
        let rate = self.segment(self.now).rate;
        self.tickets.unlink(&mut self.held, id);
        self.held_cost -= u64::from(cost);
        if self.bucket.depart(credits, idle, rate) {
            self.tickets.remove(id);
            return Departure::Sent(self.depart(seq, cost, waited, reason, tracked));
        }
        // Granted more than could leave at once: its turn is the next there is room for.
        self.bucket.put_off(credits, rate);
        self.set_state(id, State::Revoked);
        // In line before what came back can go to those behind it, who are told of the rest.
        self.requeue_revoked(id);
        self.retime();
        match self.poll(self.now, id) {
            Poll::Refused(refusal) => Departure::Refused(refusal),
            Poll::Wait(until) => Departure::Wait(until),
            // Not before there is room, and there is none now.
            Poll::Granted => Departure::Wait(self.now),
        }
    }

    /// Takes a ticket out, whatever its state, and lets others profit.
    pub(super) fn leave(&mut self, id: TicketId) {
        let Some(ticket) = self.tickets.get(id) else {
            return;
        };
        let (state, cost) = (ticket.state, u64::from(ticket.cost));
        match state {
            State::Waiting => {
                let first = self.tickets.front(&self.waiting) == Some(id);
                self.gaps |= !first;
                self.tickets.unlink(&mut self.waiting, id);
                self.queued_cost -= cost;
            }
            State::Held => {
                self.tickets.unlink(&mut self.held, id);
                self.held_cost -= cost;
                let rate = self.segment(self.now).rate;
                self.bucket.give_back(self.bucket.credits(cost), rate);
            }
            State::Revoked | State::Refused(_) | State::Free => {}
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
        cost: u32,
        waited: Duration,
        reason: WaitReason,
        tracked: bool,
    ) -> Grant {
        self.sent += 1;
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
            waited,
            reason,
            level: self.bucket.level(),
            token: self.bucket.token(),
            rate: self.segment(self.now).rate,
        }
    }

    pub(super) fn eject(&mut self, why: Ejected) {
        while let Some(id) = self.tickets.front(&self.waiting) {
            self.tickets.unlink(&mut self.waiting, id);
            self.set_state(id, State::Refused(why));
            self.woken.push_back(id);
        }
        self.queued_cost = 0;
        self.gaps = false;
    }

    pub(super) fn ejection(&self, why: Ejected) -> Refusal {
        match why {
            Ejected::Closed => Refusal::Closed,
            Ejected::Paused => Refusal::Paused(
                self.pause()
                    .map_or(Duration::ZERO, |pause| pause.until.since(self.now)),
            ),
        }
    }

    pub(super) fn grant_due(&mut self) {
        if !self.waiting.is_empty() {
            self.busy_until = self.now.after(SLACK);
        }
        let mut granted = false;
        while let Some(id) = self.tickets.front(&self.waiting) {
            let cost = self.tickets.get(id).map_or(0, |ticket| ticket.cost);
            if !self.can_take(cost) {
                break;
            }
            self.tickets.unlink(&mut self.waiting, id);
            self.queued_cost -= u64::from(cost);
            self.away = self.away.saturating_add(u64::from(cost));
            self.grant(id, cost);
            self.woken.push_back(id);
            granted = true;
        }
        self.bucket.clamp(self.cap(self.now));
        if self.waiting.is_empty() {
            self.gaps = false;
        } else if granted && self.gaps {
            self.retime();
        }
    }

    /// Sets tokens aside for a ticket that is in no list.
    pub(super) fn grant(&mut self, id: TicketId, cost: u32) {
        self.bucket.take(self.bucket.credits(u64::from(cost)));
        self.held_cost += u64::from(cost);
        self.tickets.push_back(&mut self.held, id);
        if let Some(ticket) = self.tickets.get_mut(id) {
            ticket.state = State::Held;
            ticket.granted = self.now;
        }
    }

    pub(super) fn can_take(&self, cost: u32) -> bool {
        let cost = u64::from(cost);
        self.pause().is_none()
            && self.bucket.level() >= self.bucket.credits(cost)
            && (cost == 0
                || self
                    .windows
                    .closed_until(self.in_flight + self.held_cost + cost)
                    == Time::ZERO)
    }

    /// Turns may have come earlier: grant what is due and tell those near the front.
    pub(super) fn loosened(&mut self) {
        self.grant_due();
        self.retime();
    }

    /// Wakes callers near the front whose turn is earlier than the instant they will ask at.
    ///
    /// Only the first few, so that leaving stays cheap with many in line: each grant brings the next ones into view. Callers that
    /// were told and did not ask are passed over, as their task may be parked.
    pub(super) fn retime(&mut self) {
        let base = self.passed();
        let mut next = self.tickets.front(&self.waiting);
        let mut ahead = 0;
        let mut told = 0;
        for _ in 0..4 * RETIME {
            let Some(id) = next else { break };
            let Some(ticket) = self.tickets.get_mut(id) else {
                break;
            };
            ahead += u64::from(ticket.cost);
            // Without those who left in between.
            ticket.queued_through = base.wrapping_add(ahead);
            let (called, armed) = (ticket.called, ticket.armed);
            if !called && armed > self.due(ahead) {
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

    /// When a waiting caller's turn comes, counting those who left from the middle as if they were still there.
    pub(super) fn turn_of(&self, ticket: &Ticket) -> Time {
        // Numbers grow along the line; if they did not, asking early would do no harm.
        let ahead = ticket.queued_through.wrapping_sub(self.passed());
        let ahead = u64::try_from(ahead as i64).unwrap_or(0);
        let first = (self.tickets.front(&self.waiting))
            .and_then(|id| self.tickets.get(id))
            .map_or(0, |head| u64::from(head.cost));
        self.due(ahead.max(first).max(u64::from(ticket.cost)))
    }

    /// The count of queued cost up to the front of the line.
    pub(super) fn passed(&self) -> u64 {
        (self.tickets.front(&self.waiting))
            .and_then(|id| self.tickets.get(id))
            .map_or(0, |head| {
                head.queued_through.wrapping_sub(u64::from(head.cost))
            })
    }

    /// When `cost` in all can have left from now on.
    pub(super) fn due(&self, cost: u64) -> Time {
        let by_rate = self
            .bucket
            .due(self.bucket.credits(cost), |at| self.segment(at));
        let outstanding = self.in_flight + self.held_cost;
        by_rate.max(self.windows.closed_until(outstanding + cost))
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
