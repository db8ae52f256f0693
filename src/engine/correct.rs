//! What answers change: pauses, budgets, the rate.

use std::time::Duration;

use super::{
    answer::{Answer, Cause, Correction, Flight, Pause},
    machine::Engine,
    rate::Refused,
    tickets::{Ejected, State, TicketId},
    time::Time,
};

impl Engine {
    pub(super) fn correct(&mut self, flight: Option<Flight>, answer: &Answer<'_>) -> Correction {
        let number = flight.map_or(self.sent + 1, |flight| flight.number);
        let news = self.rate.is_news(number);
        let rate_before = self.segment(self.now).rate;
        let mut paused = None;
        let spent = self.read_budgets(flight, answer);
        if !answer.refused {
            let until = spent.max(self.windows.spent_until());
            paused = until.and_then(|until| self.hold(until.since(self.now), Cause::Budget));
        }
        let token = self.bucket.token();
        if answer.refused {
            let hint = answer.wait.filter(|wait| !wait.is_zero());
            let refusal = Refused {
                news,
                ours: !answer.shared,
                hint,
                round_trip: flight.map_or(Duration::ZERO, |flight| self.now.since(flight.sent)),
            };
            let backoff = self.rate.refused(self.now, &refusal, token);
            if let Some(wait) = hint {
                paused = self.hold(wait, Cause::Server);
            } else if let Some(wait) = backoff {
                paused = self.hold(wait.max(answer.least_backoff), Cause::Backoff);
            }
            if news {
                self.rate.settle(self.sent);
            }
        } else if flight.is_some() {
            let waits = !self.waiting.is_empty();
            if self.rate.accepted(self.now, news, waits, token) {
                self.loosened();
            }
        }
        self.settle_line();
        Correction {
            stale: !news,
            paused,
            rate_before: self.bucket.per_second(rate_before),
            rate_after: self.bucket.per_second(self.segment(self.now).rate),
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
        // What was set aside for some is there for others when the pause ends.
        self.retime();
        Some(pause)
    }

    /// Takes the tokens of a reservation back; its holder keeps its place.
    pub(super) fn revoke(&mut self, id: TicketId) {
        let Some(ticket) = self.tickets.get_mut(id) else {
            return;
        };
        ticket.state = State::Revoked;
        let cost = u64::from(ticket.cost);
        self.tickets.unlink(&mut self.held, id);
        self.held_cost -= cost;
        let rate = self.segment(self.now).rate;
        self.bucket.give_back(self.bucket.credits(cost), rate);
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
