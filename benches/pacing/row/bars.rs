use std::time::Duration;

use crate::{
    score::Score,
    server::{At, Voice},
};

/// What must be reached.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bars {
    /// The least share.
    pub(crate) share: Option<f64>,
    /// The most refusals for each request.
    pub(crate) refused: Option<f64>,
    /// At most one refusal in this time, on average.
    pub(crate) seldom: Option<Duration>,
    /// The most refusals in all.
    pub(crate) refusals: Option<u32>,
    /// The first meeting: soon near the limit, without many refusals.
    pub(crate) meeting: bool,
    /// The limit falls and rises.
    pub(crate) drop: Option<Drop>,
    /// Nobody may wait.
    pub(crate) nobody_waits: bool,
    /// Of what was accepted in the end, each client has at least this part.
    pub(crate) part: Option<f64>,
}

/// A limit that falls and rises.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drop {
    pub(crate) fall: At,
    pub(crate) low: f64,
    pub(crate) rise: At,
}

impl Bars {
    pub(crate) const NONE: Self = Self {
        share: None,
        refused: None,
        seldom: None,
        refusals: None,
        meeting: false,
        drop: None,
        nobody_waits: false,
        part: None,
    };

    pub(crate) const fn share(share: f64) -> Self {
        Self {
            share: Some(share),
            ..Self::NONE
        }
    }

    /// A server that never changes. A `Retry-After` in whole seconds makes each probe dear.
    pub(crate) fn steady(voice: Voice) -> Self {
        Self {
            refused: Some(0.003),
            meeting: true,
            ..Self::share(if voice == Voice::RetryAfter {
                0.97
            } else {
                0.98
            })
        }
    }

    /// Those that are missed, in words; `None` if there is none to meet.
    pub(crate) fn missed(&self, score: &Score) -> Option<Vec<String>> {
        let mut judge = Judge::default();
        if let Some(share) = self.share {
            let enough = score.share.is_some_and(|reached| reached >= share);
            judge.check(enough, || format!("share below {share}"));
        }
        if let Some(most) = self.refused {
            judge.check(score.refused <= most, || {
                format!("refused above {} %", most * 100.0)
            });
        }
        if let Some(time) = self.seldom {
            let most = (score.scored.as_secs() / time.as_secs()) as u32;
            judge.check(score.refusals <= most, || {
                format!("more than {most} refusals")
            });
        }
        if let Some(most) = self.refusals {
            judge.check(score.all <= most, || {
                format!("more than {most} refusals in all")
            });
        }
        if self.meeting {
            let (at, before) = score.reached.unwrap_or((At::MAX, u32::MAX));
            judge.check(at <= Duration::from_secs(10), || {
                "meeting after 10 s".into()
            });
            judge.check(before <= 150, || "meeting above 150 refusals".into());
        }
        if let Some(after) = score.drop {
            let soon = |under: Duration| under <= Duration::from_secs(5);
            judge.check(after.under.is_some_and(soon), || "fall after 5 s".into());
            judge.check(after.refused <= 0.05, || "fall above 5 % refused".into());
            judge.check(after.share >= 0.95, || "rise below 0.95".into());
        }
        if self.nobody_waits {
            let waiters = score.quiet.map_or(0, |(waiters, _)| waiters);
            judge.check(waiters == 0, || "somebody waited".into());
        }
        if let Some(least) = self.part {
            let fair = score.split.iter().all(|&part| part >= least);
            judge.check(fair, || format!("a part below {least}"));
        }
        judge.any.then_some(judge.missed)
    }
}

#[derive(Default)]
struct Judge {
    any: bool,
    missed: Vec<String>,
}

impl Judge {
    fn check(&mut self, met: bool, what: impl FnOnce() -> String) {
        self.any = true;
        if !met {
            self.missed.push(what());
        }
    }
}
