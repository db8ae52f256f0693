//! The servers: a rule that decides, and how much of it they tell.

mod bucket;
mod odd;
mod shared;
mod window;

use std::time::Duration;

pub(crate) use bucket::{Bucket, Leaky, Plan};
pub(crate) use odd::{Moody, Places, Slow};
pub(crate) use shared::Shared;
pub(crate) use window::{Sliding, Window};

/// Time since the start of a run.
pub(crate) type At = Duration;

/// A rule by which requests are accepted or refused.
pub(crate) trait Rule {
    /// Decides about a request that arrives now. Times never go back.
    fn decide(&mut self, now: At) -> Decision;

    /// Requests a second that the rule allows in the long run, as it stands at `at`.
    fn limit(&self, at: At) -> f64;

    /// What the rule allows from `from` to `to`. A burst that was saved up before is not in it, so a client can have slightly more.
    fn allowed(&self, from: At, to: At) -> f64 {
        // Limits change at whole seconds only, so tenths of seconds are exact.
        let cells = from.as_millis() / 100..to.as_millis() / 100;
        let middle = |cell: u128| Duration::from_millis(cell as u64 * 100 + 50);
        cells.map(|cell| self.limit(middle(cell)) / 10.0).sum()
    }

    /// A remark for the table.
    fn note(&self) -> String {
        String::new()
    }
}

/// What a rule decided about one request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decision {
    pub(crate) accepted: bool,
    /// On a refusal, the time until a request could be accepted.
    pub(crate) wait: Duration,
    /// The counters, if the rule has some to show.
    pub(crate) budget: Option<Budget>,
    /// How long the answer takes, besides the way.
    pub(crate) service: Duration,
}

/// The counters of a window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    pub(crate) limit: u64,
    pub(crate) remaining: u64,
    pub(crate) reset: Duration,
    pub(crate) window: Duration,
}

/// How much a server tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Voice {
    /// 429 and nothing else.
    Silent,
    /// `Retry-After` on refusals, in whole seconds rounded up.
    RetryAfter,
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset` on every answer.
    Counters,
    /// `RateLimit` and `RateLimit-Policy` of the IETF drafts on every answer, which tell the window besides.
    Policies,
}

/// An answer as the client sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reply {
    pub(crate) refused: bool,
    pub(crate) retry_after: Option<Duration>,
    /// The reset is in whole seconds, rounded up.
    pub(crate) budget: Option<Budget>,
    pub(crate) voice: Voice,
    pub(crate) service: Duration,
}

/// A rule with a voice.
pub(crate) struct Server {
    pub(crate) rule: Box<dyn Rule>,
    pub(crate) voice: Voice,
}

impl Server {
    pub(crate) fn decide(&mut self, now: At) -> Reply {
        let decision = self.rule.decide(now);
        let refused = !decision.accepted;
        let counts = matches!(self.voice, Voice::Counters | Voice::Policies);
        Reply {
            refused,
            retry_after: (refused && self.voice == Voice::RetryAfter)
                .then(|| whole_seconds(decision.wait)),
            budget: decision.budget.filter(|_| counts).map(|budget| Budget {
                reset: whole_seconds(budget.reset),
                ..budget
            }),
            voice: self.voice,
            service: decision.service,
        }
    }
}

impl Decision {
    pub(crate) const ACCEPTED: Self = Self {
        accepted: true,
        wait: Duration::ZERO,
        budget: None,
        service: Duration::ZERO,
    };

    pub(crate) const fn refused(wait: Duration) -> Self {
        Self {
            accepted: false,
            wait,
            budget: None,
            service: Duration::ZERO,
        }
    }
}

fn whole_seconds(time: Duration) -> Duration {
    Duration::from_secs(time.as_millis().div_ceil(1_000).max(1) as u64)
}
