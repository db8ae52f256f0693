//! All quotas of one engine, taken together or not at all.

use super::{
    bucket::{Bucket, SLACK, Segment, UNBOUNDED, slack},
    costs::{Costs, Sums},
    machine::Engine,
    strict::Log,
    time::Time,
};

/// A quota besides the first bucket.
#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone)]
pub(super) enum Gate {
    Bucket(Bucket),
    Log(Log),
}

/// A quota besides the first bucket, and the position of its cost.
#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone)]
pub(super) struct Further {
    pub(super) index: usize,
    pub(super) gate: Gate,
}

impl Engine {
    /// Whether all quotas have what it takes.
    pub(super) fn have(&self, costs: &Costs) -> bool {
        self.bucket.level() >= self.bucket.credits_of(costs, 0)
            && self.further.iter().all(|further| match &further.gate {
                Gate::Bucket(bucket) => bucket.level() >= bucket.credits_of(costs, further.index),
                Gate::Log(log) => log.can_take(u64::from(costs.of(further.index))),
            })
    }

    /// Sets aside.
    pub(super) fn take(&mut self, costs: &Costs) {
        self.bucket.take(self.bucket.credits_of(costs, 0));
        for Further { index, gate } in &mut self.further {
            match gate {
                Gate::Bucket(bucket) => bucket.take(bucket.credits_of(costs, *index)),
                Gate::Log(log) => log.take(u64::from(costs.of(*index))),
            }
        }
    }

    /// Whether what was set aside at `since` could leave now.
    pub(super) fn could_let_go(&self, costs: &Costs, since: Time) -> bool {
        let room = |bucket: &Bucket, index| bucket.has_room(bucket.credits_of(costs, index));
        room(&self.bucket, 0)
            && self.further.iter().all(|further| match &further.gate {
                Gate::Bucket(bucket) => room(bucket, further.index),
                Gate::Log(log) => log.has_room(u64::from(costs.of(further.index)), since),
            })
    }

    /// Lets what was set aside at `since` leave, if there is room in all; see [`Bucket::depart`].
    pub(super) fn let_go(&mut self, costs: &Costs, since: Time) -> bool {
        if !self.could_let_go(costs, since) {
            return false;
        }
        let rate = self.rate_now();
        let idle = self.now.since(since) > SLACK;
        let credits = self.bucket.credits_of(costs, 0);
        self.bucket.depart(credits, idle, rate);
        for Further { index, gate } in &mut self.further {
            match gate {
                Gate::Bucket(bucket) => {
                    let credits = bucket.credits_of(costs, *index);
                    bucket.depart(credits, idle, bucket.full_rate());
                }
                Gate::Log(log) => log.depart(u64::from(costs.of(*index)), since),
            }
        }
        true
    }

    /// Takes back what was set aside at `since` and found no room.
    pub(super) fn put_off(&mut self, costs: &Costs, since: Time) {
        let rate = self.rate_now();
        self.bucket.put_off(self.bucket.credits_of(costs, 0), rate);
        for Further { index, gate } in &mut self.further {
            match gate {
                Gate::Bucket(bucket) => {
                    bucket.put_off(bucket.credits_of(costs, *index), bucket.full_rate());
                }
                Gate::Log(log) => log.give_back(u64::from(costs.of(*index)), since),
            }
        }
    }

    /// Takes back what was set aside at `since` and is not used.
    pub(super) fn give_back(&mut self, costs: &Costs, since: Time) {
        let rate = self.rate_now();
        self.bucket
            .give_back(self.bucket.credits_of(costs, 0), rate);
        for Further { index, gate } in &mut self.further {
            match gate {
                Gate::Bucket(bucket) => {
                    bucket.give_back(bucket.credits_of(costs, *index), bucket.full_rate());
                }
                Gate::Log(log) => log.give_back(u64::from(costs.of(*index)), since),
            }
        }
    }

    /// Undoes a departure at `sent`. Where any window counts, nothing comes back if that is not known.
    pub(super) fn pay_back(&mut self, costs: &Costs, sent: Option<Time>) {
        let rate = self.rate_now();
        self.bucket.refund(self.bucket.credits_of(costs, 0), rate);
        for Further { index, gate } in &mut self.further {
            match gate {
                Gate::Bucket(bucket) => {
                    bucket.refund(bucket.credits_of(costs, *index), bucket.full_rate());
                }
                Gate::Log(log) => {
                    if let Some(sent) = sent {
                        log.refund(u64::from(costs.of(*index)), sent);
                    }
                }
            }
        }
    }

    /// Takes what has left without having been set aside; the level may fall below zero.
    pub(super) fn borrow(&mut self, costs: &Costs) {
        self.bucket.borrow(self.bucket.credits_of(costs, 0));
        for Further { index, gate } in &mut self.further {
            match gate {
                Gate::Bucket(bucket) => bucket.borrow(bucket.credits_of(costs, *index)),
                Gate::Log(log) => log.charge(u64::from(costs.of(*index))),
            }
        }
    }

    /// When all of it can have left from now on.
    pub(super) fn due_by_quota(&self, sums: &Sums) -> Time {
        let credits = self.bucket.credits(sums.of(0));
        let mut due = self.bucket.due(credits, |at| self.segment(at));
        for Further { index, gate } in &self.further {
            due = due.max(match gate {
                Gate::Bucket(bucket) => {
                    let credits = bucket.credits(sums.of(*index));
                    bucket.due(credits, |at| self.segment_of(bucket, at))
                }
                Gate::Log(log) => log.due(sums.of(*index)),
            });
        }
        due
    }

    /// Lets time pass for the further quotas.
    pub(super) fn refill_further(&mut self) {
        if self.further.is_empty() {
            return;
        }
        // Out of the engine while its state is asked.
        let mut further = std::mem::take(&mut self.further);
        for Further { gate, .. } in &mut further {
            match gate {
                Gate::Bucket(bucket) => {
                    while bucket.updated() < self.now {
                        let segment = self.segment_of(bucket, bucket.updated());
                        bucket.accrue(self.now.min(segment.end), &segment);
                    }
                }
                Gate::Log(log) => log.advance(self.now),
            }
        }
        self.further = further;
    }

    /// Discards what is too much now.
    pub(super) fn clamp(&mut self) {
        let paused = self.is_closed_at(self.now);
        if paused || self.bucket.level() > self.bucket.burst() {
            self.bucket.clamp(self.cap(self.now));
        }
        if self.further.is_empty() {
            return;
        }
        let recently = !self.line.is_empty() || self.now < self.busy_until;
        for Further { gate, .. } in &mut self.further {
            if let Gate::Bucket(bucket) = gate {
                let slack = slack(bucket.full_rate());
                bucket.clamp(match () {
                    () if paused => bucket.token().min(bucket.burst()),
                    () if recently => bucket.burst() + slack,
                    () => bucket.burst(),
                });
            }
        }
    }

    /// What holds for a further bucket at `at`, and until when.
    fn segment_of(&self, bucket: &Bucket, at: Time) -> Segment {
        self.shape(at, Time::MAX, bucket.full_rate(), bucket)
    }

    /// What holds for a bucket that refills at `rate`, which is so until `end`.
    pub(super) fn shape(&self, at: Time, end: Time, rate: u64, bucket: &Bucket) -> Segment {
        let burst = bucket.burst();
        if self.is_closed_at(at) {
            let until = self.pause.map_or(Time::MAX, |pause| pause.until);
            let until = if self.halted { Time::MAX } else { until };
            return Segment {
                end: end.min(until),
                rate,
                cap: bucket.token().min(burst),
                soft: false,
                closed: true,
            };
        }
        let (end, cap, soft) = if !self.line.is_empty() {
            // Each is given its tokens at the time they are due, however late anybody looks; so nothing overflows.
            (end, UNBOUNDED, false)
        } else if at < self.busy_until {
            // Those who were served late and will be back find what came meanwhile.
            let back = slack(rate).min(bucket.credits(self.away));
            (end.min(self.busy_until), burst + back, true)
        } else {
            (end, burst, false)
        };
        Segment {
            end,
            rate,
            cap,
            soft,
            closed: false,
        }
    }

    /// Whether nothing may leave at `at`.
    pub(super) fn is_closed_at(&self, at: Time) -> bool {
        self.halted || self.pause.is_some_and(|pause| pause.until > at)
    }
}
