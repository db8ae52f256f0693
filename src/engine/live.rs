//! What can be changed while it runs, and trial runs.

use std::time::Duration;

use super::{
    answer::QuotaView,
    costs::Costs,
    gates::{Further, Gate},
    line::Ask,
    machine::{Admitted, Engine},
    outcome::Refusal,
    quota::{ConfigError, Quota},
    tickets::{Ejected, State},
    time::Time,
};

impl Engine {
    /// Changes the quota at `index` in the order in which they were given.
    ///
    /// As many tokens are there as before, but no more than the new burst; a debt stays a debt; what left still counts. A learnt
    /// limit stays, as far as the new rate allows. Those who wait are timed anew.
    ///
    /// # Errors
    ///
    /// If the quota is invalid, there is none at `index`, or one counts in any window ([`Quota::at_most`]) and the other does not, or their
    /// windows differ. Nothing is changed then.
    pub fn set_quota(&mut self, now: Time, index: usize, quota: Quota) -> Result<(), ConfigError> {
        quota.validate()?;
        self.advance(now);
        let current = match index {
            0 => &mut self.config.quota,
            _ => self
                .config
                .further
                .get_mut(index - 1)
                .ok_or(ConfigError::new("quota", "is not one of this limiter's"))?,
        };
        let strict = quota.is_strict();
        if current.is_strict() != strict || (strict && current.period() != quota.period()) {
            return Err(ConfigError::new(
                "quota",
                "cannot become one that counts otherwise, or in another window",
            ));
        }
        *current = quota;
        if index == 0 {
            let (before, full) = (self.bucket.token(), self.bucket.full_rate());
            self.bucket.retune(&quota);
            self.rate
                .rescale(before, self.bucket.token(), full, self.bucket.full_rate());
            self.windows.rescale(before, self.bucket.token());
        }
        for further in &mut self.further {
            match &mut further.gate {
                _ if further.index != index => {}
                Gate::Bucket(bucket) => bucket.retune(&quota),
                Gate::Log(log) => log.resize(quota.amount()),
            }
        }
        self.clamp();
        self.eject_unaffordable();
        self.loosened();
        Ok(())
    }

    /// Changes how long callers may wait, how many, and how long a pause may be. Those who already wait keep the patience they came with,
    /// but learn of a pause that is now too long.
    pub fn set_patience(
        &mut self,
        now: Time,
        max_wait: Option<Duration>,
        max_queue: Option<usize>,
        max_pause: Duration,
    ) {
        self.advance(now);
        self.config.max_wait = max_wait;
        self.config.max_queue = max_queue;
        self.config.max_pause = max_pause;
        if self.tolerate_pause(None).is_err() {
            self.eject(Ejected::Paused);
        }
    }

    /// Holds everything back until [`resume`](Self::resume).
    pub fn halt(&mut self, now: Time) {
        self.advance(now);
        self.halted = true;
        while let Some(id) = self.tickets.front(&self.held) {
            self.revoke(id);
        }
        self.clamp();
        self.retime();
    }

    /// Ends what [`halt`](Self::halt) began. A pause the server asked for goes on.
    pub fn resume(&mut self, now: Time) {
        self.advance(now);
        self.halted = false;
        self.loosened();
    }

    /// Turns a trial run on or off: everything is decided as usual, but leaves at once. What leaves though it would have had to wait takes
    /// nothing, so that no debt is there when the run ends. Those who wait when it begins leave.
    pub fn set_observe(&mut self, now: Time, observe: bool) {
        self.advance(now);
        self.config.observe = observe;
        if !observe {
            return;
        }
        for priority in self.line.waiting() {
            while let Some(id) = self.tickets.front(&self.line.class(priority).list) {
                let list = &mut self.line.class_mut(priority).list;
                self.tickets.unlink(list, id);
                self.let_pass(id);
                self.woken.push_back(id);
            }
        }
        self.line.clear();
        self.gaps = false;
    }

    /// What would be decided, where nothing is enforced.
    pub(super) fn observe(&mut self, ask: &Ask) -> Result<Admitted, Refusal> {
        let wait = match self.admit(ask) {
            Err(Refusal::Closed) => return Err(Refusal::Closed),
            Ok(deadline) if self.can_take(&ask.costs) => return Ok(Admitted::Until(deadline)),
            Ok(_) => self.due(&self.line.ahead(ask.priority).plus(&ask.costs)),
            Err(Refusal::WouldWait(wait) | Refusal::Paused(wait)) => self.now.after(wait),
            Err(_) => self.now,
        };
        self.would_wait += 1;
        // Never none: that would look as if it had been let in.
        let wait = wait.since(self.now).max(Duration::from_nanos(1));
        Ok(Admitted::Passed(wait))
    }

    pub(super) fn quota_views(&self) -> Vec<QuotaView> {
        let first = QuotaView {
            quota: self.config.quota,
            level: self.bucket.level() as f64 / self.bucket.token() as f64,
        };
        let mut views = vec![first];
        views.extend(
            self.config
                .further
                .iter()
                .map(|&quota| QuotaView { quota, level: 0.0 }),
        );
        for Further { index, gate } in &self.further {
            let level = match gate {
                Gate::Bucket(bucket) => bucket.level() as f64 / bucket.token() as f64,
                Gate::Log(log) => log.level() as f64,
            };
            if let Some(view) = views.get_mut(*index) {
                view.level = level;
            }
        }
        views
    }

    /// Those who cost more than can now ever be there are told.
    fn eject_unaffordable(&mut self) {
        for priority in self.line.waiting() {
            let mut next = self.tickets.front(&self.line.class(priority).list);
            while let Some(id) = next {
                next = self.tickets.next(id);
                let costs = self
                    .tickets
                    .get(id)
                    .map_or(Costs::NONE, |ticket| ticket.costs);
                if let Err(Refusal::TooExpensive { cost, burst }) = self.afford(&costs) {
                    let class = self.line.class_mut(priority);
                    self.tickets.unlink(&mut class.list, id);
                    class.cost = class.cost.minus(&costs);
                    self.gaps = true;
                    let why = Ejected::TooExpensive { cost, burst };
                    self.set_state(id, State::Refused(why));
                    self.woken.push_back(id);
                }
            }
        }
    }
}
