use std::{collections::VecDeque, time::Duration};

use super::{At, Budget, Decision, Rule};

/// So many in each fixed window, the first of which began `phase` before the start. It allows the limit times the number of windows;
/// runs are scored from the beginning of one to the end of another.
#[derive(Debug)]
pub(crate) struct Window {
    limit: u64,
    length: Duration,
    phase: Duration,
    number: u128,
    used: u64,
}

impl Window {
    pub(crate) const fn new(limit: u64, length: Duration, phase: Duration) -> Self {
        Self {
            limit,
            length,
            phase,
            number: 0,
            used: 0,
        }
    }
}

impl Rule for Window {
    fn decide(&mut self, now: At) -> Decision {
        let age = (now + self.phase).as_nanos();
        let length = self.length.as_nanos();
        let number = age / length;
        if number != self.number {
            self.number = number;
            self.used = 0;
        }
        let reset = Duration::from_nanos((length - age % length) as u64);
        let accepted = self.used < self.limit;
        self.used += u64::from(accepted);
        Decision {
            accepted,
            wait: reset,
            budget: Some(Budget {
                limit: self.limit,
                remaining: self.limit - self.used,
                reset,
                window: self.length,
            }),
            service: Duration::ZERO,
        }
    }

    fn limit(&self, _: At) -> f64 {
        self.limit as f64 / self.length.as_secs_f64()
    }
}

/// So many in any stretch of time of a given length, by a log of those accepted. It allows the limit over the length.
#[derive(Debug)]
pub(crate) struct Sliding {
    limit: usize,
    length: Duration,
    log: VecDeque<At>,
}

impl Sliding {
    pub(crate) const fn new(limit: usize, length: Duration) -> Self {
        Self {
            limit,
            length,
            log: VecDeque::new(),
        }
    }
}

impl Rule for Sliding {
    fn decide(&mut self, now: At) -> Decision {
        while self.log.front().is_some_and(|&at| at + self.length <= now) {
            self.log.pop_front();
        }
        match self.log.front() {
            Some(&oldest) if self.log.len() >= self.limit => {
                Decision::refused((oldest + self.length).saturating_sub(now))
            }
            _ => {
                self.log.push_back(now);
                Decision::ACCEPTED
            }
        }
    }

    fn limit(&self, _: At) -> f64 {
        self.limit as f64 / self.length.as_secs_f64()
    }
}
