use std::{collections::VecDeque, time::Duration};

use super::{Client, Todo};
use crate::server::{At, Reply};

/// The rule of a peer: when the next request may leave, and what answers change.
///
/// Times are in seconds since the start.
pub(crate) trait Pacer {
    /// Lets one request leave, or says how many seconds from now to ask again.
    fn turn(&mut self, now: f64) -> Result<(), f64>;

    /// What an answer changes. `sent` is when the request left. Returns for how many seconds its caller stays away.
    fn answer(&mut self, now: f64, sent: f64, reply: &Reply) -> f64;

    /// Requests a second that it would let go.
    fn rate(&self, now: f64) -> f64;
}

/// A peer's callers, first come, first served.
#[derive(Debug)]
pub(crate) struct Line<P> {
    pacer: P,
    queue: VecDeque<usize>,
    callers: Vec<Caller>,
    /// When the head of the line asks again.
    armed: At,
}

#[derive(Debug, Clone, Copy, Default)]
struct Caller {
    sent: f64,
    /// It stays away until then.
    away: At,
}

impl<P: Pacer> Line<P> {
    pub(crate) const fn new(pacer: P) -> Self {
        Self {
            pacer,
            queue: VecDeque::new(),
            callers: Vec::new(),
            armed: At::MAX,
        }
    }

    fn serve(&mut self, now: At, todo: &mut Todo) {
        while let Some(&caller) = self.queue.front() {
            match self.pacer.turn(now.as_secs_f64()) {
                Ok(()) => {
                    self.queue.pop_front();
                    self.callers[caller].sent = now.as_secs_f64();
                    todo.sends.push(caller);
                }
                Err(wait) => {
                    // Later by a grain, so that rounding does not make it too early.
                    let at = now + Duration::from_secs_f64(wait) + Duration::from_nanos(100);
                    if self.armed <= now || at < self.armed {
                        self.armed = at;
                        todo.alarms.push((at, caller));
                    }
                    break;
                }
            }
        }
    }
}

impl<P: Pacer> Client for Line<P> {
    fn ask(&mut self, now: At, caller: usize, todo: &mut Todo) {
        if self.callers.len() <= caller {
            self.callers.resize(caller + 1, Caller::default());
        }
        let away = self.callers[caller].away;
        if away > now {
            todo.alarms.push((away, caller));
        } else {
            self.queue.push_back(caller);
            self.serve(now, todo);
        }
    }

    fn wake(&mut self, now: At, caller: usize, todo: &mut Todo) {
        if self.callers[caller].away == now {
            self.queue.push_back(caller);
        }
        self.serve(now, todo);
    }

    fn answer(&mut self, now: At, caller: usize, reply: &Reply, todo: &mut Todo) {
        let sent = self.callers[caller].sent;
        let away = self.pacer.answer(now.as_secs_f64(), sent, reply);
        self.callers[caller].away = now + Duration::from_secs_f64(away);
        self.serve(now, todo);
    }

    fn give_up(&mut self, _: At, _: usize, _: &mut Todo) {}

    fn rate(&mut self, now: At) -> f64 {
        self.pacer.rate(now.as_secs_f64())
    }
}

/// A token bucket, as all peers have one.
#[derive(Debug, Clone)]
pub(super) struct Tokens {
    rate: f64,
    burst: f64,
    level: f64,
    updated: f64,
}

impl Tokens {
    pub(super) const fn full(rate: f64, burst: f64) -> Self {
        Self {
            rate,
            burst,
            level: burst,
            updated: 0.0,
        }
    }

    pub(super) const fn rate(&self) -> f64 {
        self.rate
    }

    /// Changes the rate; what came until now came at the old one.
    pub(super) fn set_rate(&mut self, now: f64, rate: f64) {
        self.refill(now);
        self.rate = rate;
    }

    /// Changes the burst; what is there above it is lost.
    pub(super) fn set_burst(&mut self, now: f64, burst: f64) {
        self.refill(now);
        self.burst = burst;
        self.level = self.level.min(burst);
    }

    /// Takes away what is there, and whatever comes before `until`.
    pub(super) fn drain(&mut self, until: f64) {
        self.level = 0.0;
        self.updated = self.updated.max(until);
    }

    /// Seconds until one is there: zero if one is.
    pub(super) fn wait(&mut self, now: f64) -> f64 {
        self.refill(now);
        let missing = (1.0 - 1e-9 - self.level).max(0.0) / self.rate;
        if missing > 0.0 {
            missing + (self.updated - now)
        } else {
            0.0
        }
    }

    pub(super) fn take(&mut self) {
        self.level -= 1.0;
    }

    fn refill(&mut self, now: f64) {
        if now > self.updated {
            self.level = (self.level + self.rate * (now - self.updated)).min(self.burst);
            self.updated = now;
        }
    }
}
