//! How time passes: at what rate tokens come, and how many may be there.

use super::{
    bucket::{Segment, slack},
    machine::Engine,
    time::Time,
};

impl Engine {
    pub(super) fn refill(&mut self, now: Time) {
        self.now = self.now.max(now);
        while self.bucket.updated() < self.now {
            let segment = self.segment(self.bucket.updated());
            self.bucket.accrue(self.now.min(segment.end), &segment);
        }
        self.refill_further();
        if self.line.is_empty() && self.now >= self.busy_until {
            self.away = 0;
        }
        let longest = self.config.max_pause;
        if self.windows.expire(self.now, self.in_flight, longest) {
            self.retime();
        }
    }

    /// What holds for the first bucket at `at`, and until when.
    pub(super) fn segment(&self, at: Time) -> Segment {
        let (limit, end) = self.windows.rate_at(at);
        self.shape(at, end, self.rate.current().min(limit), &self.bucket)
    }

    /// At what rate the first bucket refills now.
    pub(super) fn rate_now(&self) -> u64 {
        let (limit, _) = self.windows.rate_at(self.now);
        self.rate.current().min(limit)
    }

    /// The most that may be left in the first bucket at `at` when everybody who is due has been served.
    pub(super) fn cap(&self, at: Time) -> i128 {
        if self.is_closed_at(at) {
            // One token is there at the end of a pause, so that one request tests it and no volley follows.
            return self.bucket.token().min(self.bucket.burst());
        }
        let recently = !self.line.is_empty() || at < self.busy_until;
        let (limit, _) = self.windows.rate_at(at);
        let slack = recently.then(|| slack(self.rate.current().min(limit)));
        self.bucket.burst() + slack.unwrap_or(0)
    }
}
