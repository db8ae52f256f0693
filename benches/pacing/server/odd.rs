//! Servers whose refusals are not, or not only, about the rate.

use std::{collections::VecDeque, time::Duration};

use super::{At, Bucket, Decision, Rule};
use crate::rng::Rng;

/// A bucket that refuses a part of all requests besides, whatever the rate. It allows the bucket's rate: who sends a little more
/// gets all of it.
#[derive(Debug)]
pub(crate) struct Moody {
    pub(crate) bucket: Bucket,
    pub(crate) part: f64,
    pub(crate) rng: Rng,
}

impl Rule for Moody {
    fn decide(&mut self, now: At) -> Decision {
        if self.rng.chance(self.part) {
            return Decision::refused(Duration::ZERO);
        }
        self.bucket.decide(now)
    }

    fn limit(&self, at: At) -> f64 {
        self.bucket.limit(at)
    }
}

/// A bucket whose refusals take long to come.
#[derive(Debug)]
pub(crate) struct Slow {
    pub(crate) bucket: Bucket,
    pub(crate) delay: Duration,
}

impl Rule for Slow {
    fn decide(&mut self, now: At) -> Decision {
        let decision = self.bucket.decide(now);
        let service = if decision.accepted {
            Duration::ZERO
        } else {
            self.delay
        };
        Decision {
            service,
            ..decision
        }
    }

    fn limit(&self, at: At) -> f64 {
        self.bucket.limit(at)
    }
}

/// So many at a time, each of which takes the same time. It allows what keeps all places taken.
#[derive(Debug)]
pub(crate) struct Places {
    places: usize,
    time: Duration,
    ends: VecDeque<At>,
}

impl Places {
    pub(crate) const fn new(places: usize, time: Duration) -> Self {
        Self {
            places,
            time,
            ends: VecDeque::new(),
        }
    }
}

impl Rule for Places {
    fn decide(&mut self, now: At) -> Decision {
        while self.ends.front().is_some_and(|&end| end <= now) {
            self.ends.pop_front();
        }
        match self.ends.front() {
            Some(&end) if self.ends.len() >= self.places => Decision::refused(end - now),
            _ => {
                self.ends.push_back(now + self.time);
                Decision {
                    service: self.time,
                    ..Decision::ACCEPTED
                }
            }
        }
    }

    fn limit(&self, _: At) -> f64 {
        self.places as f64 / self.time.as_secs_f64()
    }
}
