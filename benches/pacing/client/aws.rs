use super::line::{Pacer, Tokens};
use crate::server::Reply;

/// The rate limiter of the AWS SDKs' adaptive retry mode, by its published constants: CUBIC over a measured rate, dormant until the
/// first refusal. It is put behind the ceiling the others have, which the SDKs do not know.
///
/// Not the back-off of single callers that comes with it: here a refused caller asks the limiter again at once.
#[derive(Debug)]
pub(crate) struct Aws {
    ceiling: Tokens,
    tokens: Tokens,
    awake: bool,
    /// Requests a second, smoothed over cells.
    measured: f64,
    /// The beginning of the cell under way, and the answers in it.
    cell: f64,
    answers: f64,
    /// The rate at the last refusal, and its time.
    peak: f64,
    failed: f64,
}

const CELL: f64 = 0.5;
const SMOOTHING: f64 = 0.8;
const BETA: f64 = 0.7;
const SCALE: f64 = 0.4;
const FLOOR: f64 = 0.5;
/// The rate is at most this many times the measured one.
const LEAP: f64 = 2.0;

impl Aws {
    pub(crate) fn new(ceiling: f64, burst: f64) -> Self {
        let mut tokens = Tokens::full(1.0, 1.0);
        tokens.drain(0.0);
        Self {
            ceiling: Tokens::full(ceiling, burst),
            tokens,
            awake: false,
            measured: 0.0,
            cell: 0.0,
            answers: 0.0,
            peak: 0.0,
            failed: 0.0,
        }
    }

    fn measure(&mut self, now: f64) {
        self.answers += 1.0;
        let cell = (now / CELL).floor() * CELL;
        if cell > self.cell {
            let rate = self.answers / (cell - self.cell);
            self.measured = SMOOTHING * rate + (1.0 - SMOOTHING) * self.measured;
            self.answers = 0.0;
            self.cell = cell;
        }
    }
}

impl Pacer for Aws {
    fn turn(&mut self, now: f64) -> Result<(), f64> {
        let mut wait = self.ceiling.wait(now);
        if self.awake {
            wait = wait.max(self.tokens.wait(now));
        }
        if wait > 0.0 {
            return Err(wait);
        }
        self.ceiling.take();
        if self.awake {
            self.tokens.take();
        }
        Ok(())
    }

    fn answer(&mut self, now: f64, _: f64, reply: &Reply) -> f64 {
        self.measure(now);
        let target = if reply.refused {
            self.peak = if self.awake {
                self.measured.min(self.tokens.rate())
            } else {
                self.measured
            };
            self.failed = now;
            self.awake = true;
            BETA * self.peak
        } else {
            let back = (self.peak * (1.0 - BETA) / SCALE).cbrt();
            SCALE * (now - self.failed - back).powi(3) + self.peak
        };
        let rate = target.min(LEAP * self.measured);
        self.tokens.set_rate(now, rate.max(FLOOR));
        self.tokens.set_burst(now, rate.max(1.0));
        0.0
    }

    fn rate(&self, _: f64) -> f64 {
        if self.awake {
            self.tokens.rate().min(self.ceiling.rate())
        } else {
            self.ceiling.rate()
        }
    }
}
