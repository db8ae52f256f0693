use std::{collections::VecDeque, time::Duration};

use super::{
    answer::{Answer, Cause, Correction, Flight, Pause, View},
    bucket::{Bucket, SLACK, Segment, UNBOUNDED, slack},
    config::Config,
    quota::ConfigError,
    rate::Rate,
    tickets::{Ejected, List, State, Ticket, TicketId, Tickets},
    time::Time,
    windows::Windows,
};

/// How many callers near the front are told when their turn comes earlier than they know; see [`Engine::retime`].
const RETIME: usize = 16;

/// The whole pacing state: bucket, line, reservations, pauses, server budgets and rate, changed together and only here.
///
/// Every method that takes `now` lets time pass up to it first; a `now` before the last one counts as no time. After each call the
/// driver must look at [`take_woken`](Self::take_woken): callers named there should ask ([`poll`](Self::poll)) again. Besides, each
/// waiting caller should ask again at the instant it was told. Asking too often or too early does no harm.
#[derive(Debug, Clone)]
pub struct Engine {
    config: Config,
    bucket: Bucket,
    rate: Rate,
    windows: Windows,
    pause: Option<Pause>,
    tickets: Tickets,
    waiting: List,
    held: List,
    now: Time,
    /// Callers waited until this instant, so lateness up to it is not lost.
    busy_until: Time,
    queued_cost: u64,
    queued_through: u64,
    held_cost: u64,
    in_flight: u64,
    seq: u64,
    sent: u64,
    /// Somebody left from the middle of the line, so those behind know too late an instant.
    gaps: bool,
    closed: bool,
    woken: VecDeque<TicketId>,
}

/// Where a caller stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Poll {
    /// It may send now.
    Granted,
    /// It should ask again at this instant at the latest.
    Wait(Time),
    /// It will never be granted; the ticket is gone.
    Refused(Refusal),
}

/// What became of an attempt to send.
#[derive(Debug, Clone, PartialEq)]
pub enum Departure<T = Grant> {
    /// It is sent; the ticket is gone.
    Sent(T),
    /// What it had been granted is gone (a pause came, or others used the room meanwhile); it waits at the front of the line.
    Wait(Time),
    /// It will never be granted; the ticket is gone.
    Refused(Refusal),
}

/// A request that may be sent, and was counted as sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grant {
    /// The caller's number, in order of arrival.
    pub seq: u64,
    /// The request, to be named again when its answer comes.
    pub flight: Flight,
    /// What it took.
    pub cost: u32,
    /// How long the caller waited in line.
    pub waited: Duration,
    /// What it waited for last.
    pub reason: WaitReason,
    level: i128,
    token: i128,
    rate: u64,
}

impl Grant {
    /// Tokens left after this request.
    #[must_use]
    pub fn level(&self) -> f64 {
        self.level as f64 / self.token as f64
    }

    /// Tokens a second at the time of this request.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rate as f64 * 1e9 / self.token as f64
    }
}

/// What a caller waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitReason {
    /// It did not wait.
    None,
    /// The limiter's own rate and those ahead in line.
    Rate,
    /// A pause; who or what set it.
    Pause(Cause),
}

/// Why a caller is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The limiter was closed.
    Closed,
    /// The cost is above the burst: the bucket can never hold it.
    TooExpensive {
        /// What was asked.
        cost: u32,
        /// What the bucket can hold.
        burst: u32,
    },
    /// Nothing can be had without waiting, or the wait would be longer than the caller's or the limiter's patience.
    WouldWait(Duration),
    /// The line is full; the wait it would be.
    QueueFull(Duration),
    /// The server asked for a pause longer than is tolerated; what is left of it.
    Paused(Duration),
    /// The caller's patience ended while it waited.
    TimedOut,
}

/// A caller that left before it was served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cancelled {
    /// The caller's number.
    pub seq: u64,
    /// How long it had waited.
    pub waited: Duration,
    /// It had been granted, and what it held went back.
    pub held: bool,
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
        Ok(Self {
            rate: Rate::new(bucket.full_rate(), config.adapt, config.backoff),
            bucket,
            windows: Windows::default(),
            pause: None,
            tickets: Tickets::default(),
            waiting: List::EMPTY,
            held: List::EMPTY,
            now,
            busy_until: Time::ZERO,
            queued_cost: 0,
            queued_through: 0,
            held_cost: 0,
            in_flight: 0,
            seq: 0,
            sent: 0,
            gaps: false,
            closed: false,
            woken: VecDeque::new(),
            config,
        })
    }

    /// The configuration it was built from.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Joins the line. The caller is granted at once if nobody waits and tokens are there; ask with [`poll`](Self::poll).
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
        self.advance(now);
        self.seq += 1;
        let seq = self.seq;
        self.admit(cost, patience)
            .and_then(|deadline| {
                let ticket = Ticket::new(seq, cost, self.now, deadline);
                self.tickets
                    .insert(ticket)
                    .ok_or(Refusal::QueueFull(Duration::ZERO))
            })
            .map(|id| {
                self.enqueue(id);
                self.grant_due();
                id
            })
            .map_err(|refusal| (seq, refusal))
    }

    /// Where a caller stands. A caller that lost what it held stands at the front of the line again.
    pub fn poll(&mut self, now: Time, id: TicketId) -> Poll {
        self.advance(now);
        self.requeue_revoked(id);
        let Some(ticket) = self.tickets.get(id) else {
            return Poll::Refused(Refusal::Closed);
        };
        match ticket.state {
            State::Held => Poll::Granted,
            State::Refused(why) => {
                let refusal = self.ejection(why);
                self.tickets.remove(id);
                Poll::Refused(refusal)
            }
            _ if ticket.deadline <= self.now => {
                self.leave(id);
                Poll::Refused(Refusal::TimedOut)
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

    /// Turns a granted ticket into a request that is sent now. With `tracked` the request counts as in flight until it is closed.
    pub fn send(&mut self, now: Time, id: TicketId, tracked: bool) -> Departure {
        match self.poll(now, id) {
            Poll::Wait(until) => Departure::Wait(until),
            Poll::Refused(refusal) => Departure::Refused(refusal),
            Poll::Granted => self.send_held(id, tracked),
        }
    }

    /// Sends at once or not at all; never passes a line.
    ///
    /// # Errors
    ///
    /// If that would take a wait, or can never be. The number is the caller's.
    pub fn try_send(&mut self, now: Time, cost: u32) -> Result<Grant, (u64, Refusal)> {
        self.advance(now);
        self.seq += 1;
        let seq = self.seq;
        self.admit(cost, Some(Duration::ZERO))
            .map_err(|refusal| (seq, refusal))?;
        let credits = self.bucket.credits(u64::from(cost));
        let rate = self.segment(self.now).rate;
        self.bucket.take(credits);
        if !self.bucket.depart(credits, false, rate) {
            self.bucket.put_off(credits);
            let wait = self.due(u64::from(cost)).since(self.now);
            return Err((seq, Refusal::WouldWait(wait)));
        }
        Ok(self.depart(seq, cost, Duration::ZERO, WaitReason::None, false))
    }

    /// Leaves before being sent; what was held goes to those who wait.
    pub fn cancel(&mut self, now: Time, id: TicketId) -> Option<Cancelled> {
        self.refill(now);
        let ticket = self.tickets.get(id)?;
        let cancelled = Cancelled {
            seq: ticket.seq,
            waited: self.now.since(ticket.arrived),
            held: ticket.state == State::Held,
        };
        self.leave(id);
        Some(cancelled)
    }

    /// The answer to a request has come.
    pub fn answer(&mut self, now: Time, flight: Flight, answer: &Answer<'_>) -> Correction {
        self.refill(now);
        self.in_flight = self.in_flight.saturating_sub(u64::from(flight.cost));
        self.correct(Some(flight), answer)
    }

    /// A request ended without an answer: it failed or was given up. It counts as used.
    pub fn unanswered(&mut self, now: Time, flight: Flight) {
        self.refill(now);
        let cost = u64::from(flight.cost);
        self.in_flight = self.in_flight.saturating_sub(cost);
        self.windows.charge_unread(cost, &[]);
        self.settle_line();
    }

    /// Takes in what the server said outside any request of ours.
    pub fn reconcile(&mut self, now: Time, answer: &Answer<'_>) -> Correction {
        self.refill(now);
        self.correct(None, answer)
    }

    /// Holds everything back for `wait`. A pause under way is never shortened. Returns the pause if it was set or extended.
    pub fn penalize(&mut self, now: Time, wait: Duration) -> Option<Pause> {
        self.refill(now);
        self.rate.settle(self.sent);
        self.hold(wait, Cause::Penalty)
    }

    /// Gives back what an answered request cost, never above the burst.
    pub fn refund(&mut self, now: Time, cost: u32) {
        self.refill(now);
        let cap = self.segment(self.now).cap.min(self.bucket.burst());
        self.bucket.give(self.bucket.credits(u64::from(cost)), cap);
        self.loosened();
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
    pub const fn slots(&self) -> usize {
        self.tickets.slots()
    }

    /// A look at the state at `now`.
    pub fn view(&mut self, now: Time) -> View {
        self.advance(now);
        let pause = self.pause();
        let level = if pause.is_some() {
            self.bucket.level().min(0)
        } else {
            self.bucket.level()
        };
        View {
            level: level as f64 / self.bucket.token() as f64,
            rate: self.bucket.per_second(self.segment(self.now).rate),
            queue_len: self.waiting.len(),
            held: self.held_cost,
            in_flight: self.in_flight,
            sent: self.sent,
            pause,
            windows: self.windows.iter().cloned().collect(),
        }
    }

    /// Checks whether the caller may join the line, and returns when its patience ends.
    fn admit(&self, cost: u32, patience: Option<Duration>) -> Result<Time, Refusal> {
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

    fn tolerate_pause(&self) -> Result<(), Refusal> {
        match self.pause() {
            Some(pause) if pause.until.since(self.now) > self.config.max_pause => {
                Err(Refusal::Paused(pause.until.since(self.now)))
            }
            _ => Ok(()),
        }
    }

    fn enqueue(&mut self, id: TicketId) {
        let ticket = self
            .tickets
            .get_mut(id)
            .expect("a ticket is queued right after it was made");
        let cost = u64::from(ticket.cost);
        self.queued_through = self.queued_through.wrapping_add(cost);
        ticket.queued_through = self.queued_through;
        self.queued_cost += cost;
        self.tickets.push_back(&mut self.waiting, id);
    }

    /// A ticket whose tokens are gone goes back to where its number belongs.
    fn requeue_revoked(&mut self, id: TicketId) {
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

    fn send_held(&mut self, id: TicketId, tracked: bool) -> Departure {
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
        self.bucket.put_off(credits);
        self.set_state(id, State::Revoked);
        match self.poll(self.now, id) {
            Poll::Refused(refusal) => Departure::Refused(refusal),
            Poll::Wait(until) => Departure::Wait(until),
            // Not before there is room, and there is none now.
            Poll::Granted => Departure::Wait(self.now),
        }
    }

    /// Takes a ticket out, whatever its state, and lets others profit.
    fn leave(&mut self, id: TicketId) {
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
                let cap = self.cap(self.now).min(self.bucket.burst());
                self.bucket.give(self.bucket.credits(cost), cap);
            }
            State::Revoked | State::Refused(_) | State::Free => {}
        }
        self.tickets.remove(id);
        if matches!(state, State::Waiting | State::Held) {
            self.loosened();
        }
    }

    /// Counts a request as sent. Its tokens have been taken.
    fn depart(
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
        }
        Grant {
            seq,
            flight: Flight {
                number: self.sent,
                sent: self.now,
                cost,
            },
            cost,
            waited,
            reason,
            level: self.bucket.level(),
            token: self.bucket.token(),
            rate: self.segment(self.now).rate,
        }
    }

    fn correct(&mut self, flight: Option<Flight>, answer: &Answer<'_>) -> Correction {
        let number = flight.map_or(self.sent + 1, |flight| flight.number);
        let news = self.rate.is_news(number);
        let rate_before = self.segment(self.now).rate;
        let mut paused = None;
        if !answer.readings.is_empty() || flight.is_some() {
            self.read_budgets(flight, answer);
        }
        if let Some(reset) = (answer.readings.iter())
            .filter(|reading| reading.remaining == Some(0))
            .filter_map(|reading| reading.reset)
            .filter(|reset| !reset.is_zero())
            .max()
            .filter(|_| !answer.refused)
        {
            paused = self.hold(reset, Cause::Budget).or(paused);
        }
        if answer.refused {
            match answer.wait.filter(|wait| !wait.is_zero()) {
                Some(wait) => paused = self.hold(wait, Cause::Server),
                None if news => {
                    let round_trip =
                        flight.map_or(Duration::ZERO, |flight| self.now.since(flight.sent));
                    let bucket = &self.bucket;
                    let wait = self
                        .rate
                        .refused(self.now, round_trip, |rate| {
                            let per_second = bucket.token().unsigned_abs();
                            let nanos = per_second.div_ceil(u128::from(rate.max(1)));
                            Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
                        })
                        .max(answer.least_backoff);
                    paused = self.hold(wait, Cause::Backoff);
                }
                None => {}
            }
            if news {
                self.rate.settle(self.sent);
            }
        } else if news && self.rate.accepted(!self.waiting.is_empty()) {
            self.loosened();
        }
        self.settle_line();
        Correction {
            stale: !news,
            paused,
            rate_before: self.bucket.per_second(rate_before),
            rate_after: self.bucket.per_second(self.segment(self.now).rate),
        }
    }

    fn read_budgets(&mut self, flight: Option<Flight>, answer: &Answer<'_>) {
        let token = self.bucket.token().unsigned_abs();
        self.windows.observe(
            self.now,
            answer.readings,
            flight.map_or(0, |flight| u64::from(flight.cost)),
            self.in_flight + self.held_cost,
            self.config.spend,
            |left, time| {
                let credits = token.saturating_mul(u128::from(left));
                let nanos = time.as_nanos().max(1);
                u64::try_from(credits / nanos).unwrap_or(u64::MAX)
            },
        );
        for reading in answer.readings {
            // Left over without a time: the level is what the server says, and refills as configured.
            if let (Some(left), None, true) = (reading.remaining, reading.reset, reading.paces) {
                self.bucket.clamp(self.bucket.credits(left));
            }
        }
    }

    fn hold(&mut self, wait: Duration, cause: Cause) -> Option<Pause> {
        let until = self.now.after(wait);
        if until <= self.now || self.pause.is_some_and(|pause| pause.until >= until) {
            return None;
        }
        let pause = Pause { until, cause };
        self.pause = Some(pause);
        while let Some(id) = self.tickets.front(&self.held) {
            self.revoke(id);
        }
        self.bucket.clamp(self.cap(self.now));
        if self.tolerate_pause().is_err() {
            self.eject(Ejected::Paused);
        }
        Some(pause)
    }

    /// Takes the tokens of a reservation back; its holder keeps its place.
    fn revoke(&mut self, id: TicketId) {
        let Some(ticket) = self.tickets.get_mut(id) else {
            return;
        };
        ticket.state = State::Revoked;
        let cost = u64::from(ticket.cost);
        self.tickets.unlink(&mut self.held, id);
        self.held_cost -= cost;
        let cap = self.cap(self.now);
        self.bucket.give(self.bucket.credits(cost), cap);
    }

    fn eject(&mut self, why: Ejected) {
        while let Some(id) = self.tickets.front(&self.waiting) {
            self.tickets.unlink(&mut self.waiting, id);
            self.set_state(id, State::Refused(why));
            self.woken.push_back(id);
        }
        self.queued_cost = 0;
        self.gaps = false;
    }

    fn ejection(&self, why: Ejected) -> Refusal {
        match why {
            Ejected::Closed => Refusal::Closed,
            Ejected::Paused => Refusal::Paused(
                self.pause()
                    .map_or(Duration::ZERO, |pause| pause.until.since(self.now)),
            ),
        }
    }

    fn refill(&mut self, now: Time) {
        self.now = self.now.max(now);
        while self.bucket.updated() < self.now {
            let segment = self.segment(self.bucket.updated());
            self.bucket.accrue(self.now.min(segment.end), &segment);
        }
        if self.windows.expire(self.now) {
            self.retime();
        }
    }

    fn grant_due(&mut self) {
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
            self.bucket.take(self.bucket.credits(u64::from(cost)));
            self.held_cost += u64::from(cost);
            self.tickets.push_back(&mut self.held, id);
            if let Some(ticket) = self.tickets.get_mut(id) {
                ticket.state = State::Held;
                ticket.granted = self.now;
            }
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

    fn can_take(&self, cost: u32) -> bool {
        let cost = u64::from(cost);
        self.pause().is_none()
            && self.bucket.level() >= self.bucket.credits(cost)
            && (cost == 0
                || self
                    .windows
                    .closed_until(self.in_flight + self.held_cost + cost)
                    == Time::ZERO)
    }

    /// After an answer: a budget may have more or less left than those in line reckoned with.
    fn settle_line(&mut self) {
        if self.windows.is_empty() {
            self.grant_due();
        } else {
            self.loosened();
        }
    }

    /// Turns may have come earlier: grant what is due and tell those near the front.
    fn loosened(&mut self) {
        self.grant_due();
        self.retime();
    }

    /// Wakes callers near the front whose turn is earlier than the instant they will ask at.
    ///
    /// Only the first few, so that leaving stays cheap with many in line: each grant brings the next ones into view. Callers that
    /// were told and did not ask are passed over, as their task may be parked.
    fn retime(&mut self) {
        let mut next = self.tickets.front(&self.waiting);
        let mut ahead = 0;
        let mut told = 0;
        for _ in 0..4 * RETIME {
            let Some(id) = next else { break };
            let Some(ticket) = self.tickets.get(id) else {
                break;
            };
            ahead += u64::from(ticket.cost);
            if !ticket.called && ticket.armed > self.due(ahead) {
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
    }

    /// When a waiting caller's turn comes, counting those who left from the middle as if they were still there.
    fn turn_of(&self, ticket: &Ticket) -> Time {
        let ahead = ticket.queued_through.wrapping_sub(self.passed());
        let first = (self.tickets.front(&self.waiting))
            .and_then(|id| self.tickets.get(id))
            .map_or(0, |head| u64::from(head.cost));
        self.due(ahead.max(first).max(u64::from(ticket.cost)))
    }

    /// The count of queued cost up to the front of the line.
    fn passed(&self) -> u64 {
        (self.tickets.front(&self.waiting))
            .and_then(|id| self.tickets.get(id))
            .map_or(self.queued_through, |head| {
                head.queued_through.wrapping_sub(u64::from(head.cost))
            })
    }

    /// When `cost` in all can have left from now on.
    fn due(&self, cost: u64) -> Time {
        let by_rate = self
            .bucket
            .due(self.bucket.credits(cost), |at| self.segment(at));
        let outstanding = self.in_flight + self.held_cost;
        by_rate.max(self.windows.closed_until(outstanding + cost))
    }

    /// What holds at `at`, and until when.
    fn segment(&self, at: Time) -> Segment {
        let (limit, end) = self.windows.rate_at(at);
        let rate = self.rate.current().min(limit);
        if let Some(pause) = self.pause.filter(|pause| pause.until > at) {
            return Segment {
                end: end.min(pause.until),
                rate,
                cap: self.cap(at),
                closed: true,
            };
        }
        // While callers wait, each is given its tokens at the time they are due, however late anybody looks; so nothing overflows.
        let waits = !self.waiting.is_empty();
        Segment {
            end: if !waits && at < self.busy_until {
                end.min(self.busy_until)
            } else {
                end
            },
            rate,
            cap: if waits { UNBOUNDED } else { self.cap(at) },
            closed: false,
        }
    }

    /// The most that may be left at `at` when everybody who is due has been served.
    fn cap(&self, at: Time) -> i128 {
        if self.pause.is_some_and(|pause| pause.until > at) {
            // One token is there at the end of a pause, so that one request tests it and no volley follows.
            return self.bucket.token().min(self.bucket.burst());
        }
        let recently = !self.waiting.is_empty() || at < self.busy_until;
        let (limit, _) = self.windows.rate_at(at);
        let slack = recently.then(|| slack(self.rate.current().min(limit)));
        self.bucket.burst() + slack.unwrap_or(0)
    }

    /// What a caller waited for: the last pause, if it stood in line during it.
    fn reason(&self, ticket: &Ticket) -> WaitReason {
        if ticket.granted <= ticket.arrived {
            return WaitReason::None;
        }
        match self.pause {
            Some(pause) if pause.until > ticket.arrived => WaitReason::Pause(pause.cause),
            _ => WaitReason::Rate,
        }
    }

    fn set_state(&mut self, id: TicketId, state: State) {
        if let Some(ticket) = self.tickets.get_mut(id) {
            ticket.state = state;
        }
    }
}
