use super::{
    fixed::{take, told},
    line::{Pacer, Tokens},
};
use crate::server::Reply;

/// Additive increase, multiplicative decrease: a refusal halves the rate, once for all requests under way, and the rate rises by one
/// hundredth of the ceiling each second in which something is accepted. A `Retry-After` is kept.
#[derive(Debug)]
pub(crate) struct Aimd {
    tokens: Tokens,
    ceiling: f64,
    /// Answers to what left before that are no news.
    cut: f64,
    raised: f64,
}

/// The rise in a second, as a part of the ceiling.
const RISE: f64 = 0.01;
/// The lowest rate, as a part of the ceiling.
const FLOOR: f64 = 0.001;

impl Aimd {
    pub(crate) const fn new(ceiling: f64, burst: f64) -> Self {
        Self {
            tokens: Tokens::full(ceiling, burst),
            ceiling,
            cut: -1.0,
            raised: 0.0,
        }
    }
}

impl Pacer for Aimd {
    fn turn(&mut self, now: f64) -> Result<(), f64> {
        take(&mut self.tokens, now)
    }

    fn answer(&mut self, now: f64, sent: f64, reply: &Reply) -> f64 {
        let rate = self.tokens.rate();
        if !reply.refused {
            // At most a second's worth, so that a pause does not count as success.
            let time = (now - self.raised).min(1.0);
            let raised = (rate + RISE * self.ceiling * time).min(self.ceiling);
            self.tokens.set_rate(now, raised);
        } else if sent > self.cut {
            self.cut = now;
            self.tokens
                .set_rate(now, (rate / 2.0).max(FLOOR * self.ceiling));
        }
        self.raised = now;
        if reply.refused && (reply.retry_after.is_some() || reply.budget.is_some()) {
            self.tokens.drain(now + told(reply));
        }
        0.0
    }

    fn rate(&self, _: f64) -> f64 {
        self.tokens.rate()
    }
}
