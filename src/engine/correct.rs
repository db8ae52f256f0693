//! What answers change: pauses, budgets, the rate.

use std::time::Duration;

use super::{
    answer::{Answer, Cause, Correction, Flight, Pause, RateCause},
    machine::Engine,
    rate::Refused,
    tickets::{Ejected, State, TicketId},
    time::Time,
};

/// After a pause that a refusal began one request goes ahead of all others.
#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trial {
    None,
    /// The next request is it; its answer is waited for at most so long.
    Next(Duration),
    /// It is under way.
    Sent {
        number: u64,
    },
}

impl Engine {
    pub(super) fn correct(&mut self, flight: Option<Flight>, answer: &Answer<'_>) -> Correction {
        let number = flight.map_or(self.sent + 1, |flight| flight.number);
        let news = self.rate.is_news(number);
        let rate_before = self.rate_now();
        let mut paused = None;
        let tested = flight.is_some_and(|flight| self.end_trial(flight));
        let spent = self.read_budgets(flight, answer);
        if !answer.refused {
            let until = spent.max(self.windows.spent_until());
            paused = until.and_then(|until| self.hold(until.since(self.now), Cause::Budget));
        }
        let token = self.bucket.token();
        let guess_before = self.rate.current();
        let mut because = None;
        if answer.refused {
            let hint = answer.wait.filter(|wait| !wait.is_zero());
            let refusal = Refused {
                ours: !answer.shared,
                hint,
                number,
                last_sent: self.sent,
                sent: flight.map_or(self.now, |flight| flight.sent),
            };
            let wait = self.rate.refused(self.now, &refusal, token);
            if wait.is_some() {
                self.trial = Trial::Next(self.now.since(refusal.sent).saturating_mul(2));
            }
            paused = match (hint, wait) {
                (Some(hint), wait) if wait.is_none_or(|wait| wait <= hint) => {
                    self.hold(hint, Cause::Server)
                }
                (_, Some(wait)) => self.hold(wait.max(answer.least_backoff), Cause::Backoff),
                (_, None) => None,
            };
            if news {
                self.rate.settle(self.sent);
            }
            because = Some(RateCause::Refusal);
        } else if flight.is_some() {
            if news && matches!(self.trial, Trial::Next(_)) {
                // The server accepts again; nothing has to be tested.
                self.trial = Trial::None;
            }
            let waits = !self.line.is_empty();
            because = self.rate.accepted(self.now, number, waits, token);
        }
        let guess_after = self.rate.current();
        let rate_after = self.rate_now();
        let because = if rate_after == rate_before {
            None
        } else if guess_after == guess_before {
            Some(RateCause::Budget)
        } else {
            because
        };
        if tested || guess_after > guess_before {
            self.loosened();
        } else {
            self.settle_line();
        }
        Correction {
            stale: !news,
            paused,
            rate_before: self.bucket.per_second(rate_before),
            rate_after: self.bucket.per_second(rate_after),
            because,
        }
    }

    /// Returns until when nothing is left, if the answer says so.
    pub(super) fn read_budgets(
        &mut self,
        flight: Option<Flight>,
        answer: &Answer<'_>,
    ) -> Option<Time> {
        let token = self.bucket.token().unsigned_abs();
        let spent = self.windows.observe(
            flight.map_or(self.now, |flight| flight.sent),
            answer,
            flight.map_or(0, |flight| u64::from(flight.cost)),
            self.in_flight + self.held_cost,
            self.config.spend,
            |left, time| {
                let credits = token.saturating_mul(u128::from(left));
                let nanos = time.as_nanos().max(1);
                u64::try_from(credits / nanos).unwrap_or(u64::MAX).max(1)
            },
        );
        for reading in answer.readings {
            // Left over without a time: the level is what the server says, and refills as configured.
            if let (Some(left), None, true) = (reading.remaining, reading.reset, reading.paces) {
                self.bucket.clamp(self.bucket.credits(left));
            }
        }
        spent
    }

    /// A budget that was used up by requests nobody answered for is spent like one the server says is.
    pub(super) fn hold_if_spent(&mut self) -> Option<Pause> {
        let until = self.windows.spent_until()?;
        self.hold(until.since(self.now), Cause::Budget)
    }

    pub(super) fn hold(&mut self, wait: Duration, cause: Cause) -> Option<Pause> {
        let until = self.now.after(wait);
        // A trial's end is not the server's word.
        let longer = |pause: Pause| pause.until >= until && pause.cause != Cause::Trial;
        if until <= self.now || self.pause.is_some_and(longer) {
            return None;
        }
        let pause = Pause { until, cause };
        self.pause = Some(pause);
        while let Some(id) = self.tickets.front(&self.held) {
            self.revoke(id);
        }
        self.clamp();
        if self.tolerate_pause(None).is_err() {
            self.eject(Ejected::Paused);
        } else {
            self.eject_hopeless(until);
        }
        // What was set aside for some is there for others when the pause ends.
        self.retime();
        Some(pause)
    }

    /// Those whose patience ends before a pause that lasts until then need not sit it out. All in line are looked at only if there may be
    /// such a one: a pause may be extended by every answer.
    fn eject_hopeless(&mut self, until: Time) {
        if self.soonest >= until {
            return;
        }
        self.soonest = Time::MAX;
        for priority in self.line.waiting() {
            let mut next = self.tickets.front(&self.line.class(priority).list);
            while let Some(id) = next {
                next = self.tickets.next(id);
                let Some(ticket) = self.tickets.get(id) else {
                    break;
                };
                if ticket.deadline >= until {
                    self.soonest = self.soonest.min(ticket.deadline);
                    continue;
                }
                let costs = ticket.costs;
                let class = self.line.class_mut(priority);
                self.tickets.unlink(&mut class.list, id);
                class.cost = class.cost.minus(&costs);
                self.gaps = true;
                self.set_state(id, State::Refused(Ejected::Hopeless));
                self.woken.push_back(id);
            }
        }
    }

    /// Whether patience until `deadline` ends in the pause under way.
    pub(super) fn is_hopeless(&self, deadline: Time) -> bool {
        (self.pause_in_earnest()).is_some_and(|pause| deadline < pause.until)
    }

    /// What is left of the pause under way.
    pub(super) fn pause_left(&self) -> Duration {
        (self.pause_in_earnest()).map_or(Duration::ZERO, |pause| pause.until.since(self.now))
    }

    /// The pause under way, if more than a trial's answer is waited for.
    fn pause_in_earnest(&self) -> Option<Pause> {
        (self.pause()).filter(|pause| pause.cause != Cause::Trial)
    }

    /// A request has just left. Its answer is waited for if it is the first after a refused pause.
    pub(super) fn begin_trial(&mut self, tracked: bool) {
        let Trial::Next(wait) = self.trial else {
            return;
        };
        if self.pause().is_some() {
            // Nothing is enforced, so it left before the pause was over, and tests nothing.
            return;
        }
        // Answers to those that are not tracked may never come.
        let until = self.now.after(wait.min(self.config.max_pause));
        // At the end of time nothing can be held back: whoever is revoked would be granted again.
        if !tracked || until <= self.now {
            return;
        }
        self.trial = Trial::Sent { number: self.sent };
        self.pause = Some(Pause {
            until,
            cause: Cause::Trial,
        });
        while let Some(id) = self.tickets.front(&self.held) {
            // Those granted together with the trial do not know yet; they have not lost their place.
            let fresh = (self.tickets.get(id)).is_some_and(|ticket| ticket.granted == self.now);
            self.revoke(id);
            if fresh {
                self.requeue_revoked(id);
            }
        }
        self.clamp();
        self.retime();
    }

    /// If `flight` was the trial, nothing has to be waited for any more. True if that ends a pause.
    pub(super) fn end_trial(&mut self, flight: Flight) -> bool {
        let under_way = Trial::Sent {
            number: flight.number,
        };
        if self.trial != under_way {
            return false;
        }
        self.trial = Trial::None;
        match &mut self.pause {
            Some(pause) if pause.cause == Cause::Trial && pause.until > self.now => {
                pause.until = self.now;
                true
            }
            _ => false,
        }
    }

    /// Takes the tokens of a reservation back; its holder keeps its place.
    pub(super) fn revoke(&mut self, id: TicketId) {
        let Some(ticket) = self.tickets.get_mut(id) else {
            return;
        };
        ticket.state = State::Revoked;
        let (costs, granted) = (ticket.costs, ticket.granted);
        self.tickets.unlink(&mut self.held, id);
        self.held_cost -= u64::from(costs.first());
        self.give_back(&costs, granted);
        self.unserve(id);
    }

    /// After an answer: a budget may have more or less left than those in line reckoned with.
    pub(super) fn settle_line(&mut self) {
        if self.windows.is_empty() {
            self.grant_due();
        } else {
            self.loosened();
        }
    }
}
