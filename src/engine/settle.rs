//! What is charged and given back after a request has left.

use super::{costs::Costs, machine::Engine, outcome::Grant, time::Time};

impl Engine {
    /// Takes `costs` for what has left without them: those who follow wait until it is paid off.
    pub fn charge(&mut self, now: Time, costs: &Costs) {
        self.advance(now);
        if !self.config.observe {
            self.borrow(costs);
        }
    }

    /// Gives back what an answered request cost, never above the burst. A quota that holds in any window gets nothing back, as it is not
    /// known when the request left; see [`refund_of`](Self::refund_of).
    pub fn refund(&mut self, now: Time, costs: &Costs) {
        self.give(now, costs, None);
    }

    /// Gives back all that a request took, never above the burst.
    pub fn refund_of(&mut self, now: Time, grant: &mut Grant) {
        self.settle_of(now, grant, &Costs::NONE);
    }

    /// What a request really cost is known: charges or refunds the difference to what it took. What took nothing, as nothing was enforced,
    /// costs nothing.
    pub fn settle_of(&mut self, now: Time, grant: &mut Grant, real: &Costs) {
        let took = grant.costs;
        let back = took.above(real);
        // In a trial run nothing more is charged, so it must not be given back later.
        grant.costs = if self.config.observe {
            took.above(&back)
        } else {
            *real
        };
        grant.cost = grant.costs.first();
        if grant.would_wait.is_zero() {
            self.charge(now, &real.above(&took));
            self.give(now, &back, Some(grant.flight.sent));
        }
    }

    fn give(&mut self, now: Time, costs: &Costs, sent: Option<Time>) {
        self.advance(now);
        self.pay_back(costs, sent);
        self.loosened();
    }

    /// What a request costs is known as it leaves: as [`settle_of`](Self::settle_of), and in flight it counts as what it costs.
    pub fn reprice(&mut self, now: Time, grant: &mut Grant, real: &Costs) {
        if !grant.would_wait.is_zero() {
            return;
        }
        self.settle_of(now, grant, real);
        if grant.flight.cost > 0 {
            self.in_flight = self.in_flight.saturating_sub(u64::from(grant.flight.cost))
                + u64::from(real.first());
            grant.flight.cost = real.first();
        }
        grant.level = self.bucket.level();
    }
}
