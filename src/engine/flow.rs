//! How time passes: at what rate tokens come, and how many may be there.

use super::{
    bucket::{Segment, UNBOUNDED, slack},
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
        if self.waiting.is_empty() && self.now >= self.busy_until {
            self.away = 0;
        }
        if self.windows.expire(self.now) {
            self.retime();
        }
    }

    /// What holds at `at`, and until when.
    pub(super) fn segment(&self, at: Time) -> Segment {
        let (limit, end) = self.windows.rate_at(at);
        let rate = self.rate.current().min(limit);
        if let Some(pause) = self.pause.filter(|pause| pause.until > at) {
            return Segment {
                end: end.min(pause.until),
                rate,
                cap: self.cap(at),
                soft: false,
                closed: true,
            };
        }
        let burst = self.bucket.burst();
        let (end, cap, soft) = if !self.waiting.is_empty() {
            // Each is given its tokens at the time they are due, however late anybody looks; so nothing overflows.
            (end, UNBOUNDED, false)
        } else if at < self.busy_until {
            // Those who were served late and will be back find what came meanwhile.
            let back = slack(rate).min(self.bucket.credits(self.away));
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

    /// The most that may be left at `at` when everybody who is due has been served.
    pub(super) fn cap(&self, at: Time) -> i128 {
        if self.pause.is_some_and(|pause| pause.until > at) {
            // One token is there at the end of a pause, so that one request tests it and no volley follows.
            return self.bucket.token().min(self.bucket.burst());
        }
        let recently = !self.waiting.is_empty() || at < self.busy_until;
        let (limit, _) = self.windows.rate_at(at);
        let slack = recently.then(|| slack(self.rate.current().min(limit)));
        self.bucket.burst() + slack.unwrap_or(0)
    }
}
