use super::line::{Pacer, Tokens};
use crate::server::Reply;

/// A fixed rate, whatever the server says; refused requests are sent again in turn.
#[derive(Debug)]
pub(crate) struct Fixed(Tokens);

impl Fixed {
    pub(crate) const fn new(rate: f64, burst: f64) -> Self {
        Self(Tokens::full(rate, burst))
    }
}

impl Pacer for Fixed {
    fn turn(&mut self, now: f64) -> Result<(), f64> {
        take(&mut self.0, now)
    }

    fn answer(&mut self, _: f64, _: f64, _: &Reply) -> f64 {
        0.0
    }

    fn rate(&self, _: f64) -> f64 {
        self.0.rate()
    }
}

/// Each caller that is refused sleeps just as long as it is told, a second if it is told nothing, and tries again; the others go on.
#[derive(Debug)]
pub(crate) struct Sleep(Tokens);

impl Sleep {
    pub(crate) const fn new(ceiling: f64, burst: f64) -> Self {
        Self(Tokens::full(ceiling, burst))
    }
}

impl Pacer for Sleep {
    fn turn(&mut self, now: f64) -> Result<(), f64> {
        take(&mut self.0, now)
    }

    fn answer(&mut self, _: f64, _: f64, reply: &Reply) -> f64 {
        if reply.refused { told(reply) } else { 0.0 }
    }

    fn rate(&self, _: f64) -> f64 {
        self.0.rate()
    }
}

/// The wait a refusal names, in seconds: one if it names none. A reset names one too.
pub(super) fn told(reply: &Reply) -> f64 {
    let reset = reply.budget.map(|budget| budget.reset);
    let wait = reply.retry_after.or(reset);
    wait.map_or(1.0, |wait| wait.as_secs_f64())
}

pub(super) fn take(tokens: &mut Tokens, now: f64) -> Result<(), f64> {
    let wait = tokens.wait(now);
    if wait > 0.0 {
        return Err(wait);
    }
    tokens.take();
    Ok(())
}
