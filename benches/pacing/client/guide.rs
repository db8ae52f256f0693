use super::{
    fixed::{take, told},
    line::{Pacer, Tokens},
};
use crate::server::Reply;

/// The rule of the Grants.gov guide: a token bucket at the configured rate, which a 429 drains and stops for the time of its
/// `Retry-After`, or a second without. What remains until a reset can only slow it: so much over so long is the rate, at most.
#[derive(Debug)]
pub(crate) struct Guide {
    tokens: Tokens,
    ceiling: f64,
    /// What is known to remain is spent evenly until then.
    reset: f64,
}

impl Guide {
    pub(crate) const fn new(ceiling: f64, burst: f64) -> Self {
        Self {
            tokens: Tokens::full(ceiling, burst),
            ceiling,
            reset: 0.0,
        }
    }
}

impl Pacer for Guide {
    fn turn(&mut self, now: f64) -> Result<(), f64> {
        if self.reset > 0.0 && now >= self.reset {
            self.tokens.set_rate(now, self.ceiling);
            self.reset = 0.0;
        }
        // At a rate for a window's rest the next token may be due after the reset, when the ceiling is the rate again.
        let left = if self.reset > 0.0 {
            self.reset - now
        } else {
            f64::MAX
        };
        take(&mut self.tokens, now).map_err(|wait| wait.min(left))
    }

    fn answer(&mut self, now: f64, _: f64, reply: &Reply) -> f64 {
        if reply.refused {
            self.tokens.drain(now + told(reply));
        }
        if let Some(budget) = reply.budget {
            let time = budget.reset.as_secs_f64();
            let even = budget.remaining as f64 / time;
            // Nothing left: not before the reset.
            if budget.remaining == 0 {
                self.tokens.drain(now + time);
            } else {
                self.tokens.set_rate(now, even.min(self.ceiling));
                self.reset = now + time;
            }
        }
        0.0
    }

    fn rate(&self, _: f64) -> f64 {
        self.tokens.rate()
    }
}
