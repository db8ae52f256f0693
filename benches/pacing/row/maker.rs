use std::time::Duration;

use super::{Bars, Drop, END, START, Setup};
use crate::{
    rng::Rng,
    server::{
        At, Bucket, Leaky, Moody, Places, Plan, Rule, Server, Shared, Sliding, Slow, Voice, Window,
    },
    world::{Demand, Net, World},
};

/// The most that wait or are in flight.
const CALLERS: usize = 200;

/// Makes the rows.
pub(super) struct Maker {
    limit: u32,
    rng: Rng,
}

impl Maker {
    pub(super) const fn new(limit: u32, rng: Rng) -> Self {
        Self { limit, rng }
    }

    pub(super) fn bucket(&mut self) -> Setup {
        let bars = Bars::steady(Voice::Silent);
        self.rule(self.full_bucket(), Voice::Silent, bars)
    }

    pub(super) fn bucket_telling(&mut self) -> Setup {
        let bars = Bars::steady(Voice::RetryAfter);
        self.rule(self.full_bucket(), Voice::RetryAfter, bars)
    }

    pub(super) fn tight(&mut self) -> Setup {
        let rule = Leaky::new(self.rate(), self.rate() / 5.0);
        self.rule(rule, Voice::Silent, Bars::steady(Voice::Silent))
    }

    pub(super) fn window(&mut self) -> Setup {
        self.ten_seconds(Voice::Silent, Bars::steady(Voice::Silent))
    }

    pub(super) fn window_telling(&mut self) -> Setup {
        self.ten_seconds(Voice::RetryAfter, Bars::steady(Voice::RetryAfter))
    }

    pub(super) fn sliding(&mut self) -> Setup {
        self.log(Voice::Silent)
    }

    pub(super) fn sliding_telling(&mut self) -> Setup {
        self.log(Voice::RetryAfter)
    }

    pub(super) fn slow_window(&mut self) -> Setup {
        let bars = Bars {
            seldom: Some(Duration::from_secs(30)),
            ..Bars::share(0.95)
        };
        Setup {
            ceiling: 5,
            burst: 5,
            right: 1.0,
            ..self.fixed(60, 60, Voice::Silent, bars)
        }
    }

    pub(super) fn slow_bucket(&mut self) -> Setup {
        let bars = Bars {
            seldom: Some(Duration::from_secs(30)),
            meeting: true,
            ..Bars::share(0.95)
        };
        let rule = Bucket::new(Plan::steady(2.0), 5.0);
        Setup {
            ceiling: 20,
            burst: 5,
            right: 2.0,
            ..self.rule(rule, Voice::Silent, bars)
        }
    }

    pub(super) fn counters(&mut self) -> Setup {
        self.headers(Voice::Counters)
    }

    pub(super) fn policies(&mut self) -> Setup {
        self.headers(Voice::Policies)
    }

    pub(super) fn shared(&mut self) -> Setup {
        let rule = Shared::new(self.rate(), self.rate(), 0.4, self.rng.clone());
        self.rule(rule, Voice::Silent, Bars::share(0.95))
    }

    pub(super) fn drop(&mut self) -> Setup {
        let low = self.rate() * 0.4;
        let plan = Plan::steps([(0, self.rate()), (100, low), (200, self.rate() * 1.6)]);
        let bars = Bars {
            drop: Some(Drop {
                fall: At::from_secs(100),
                low,
                rise: At::from_secs(200),
            }),
            ..Bars::NONE
        };
        let rule = Bucket::new(plan, self.rate());
        self.rule(rule, Voice::Silent, bars)
    }

    pub(super) fn flaky(&mut self) -> Setup {
        let mut setup = self.rule(self.full_bucket(), Voice::Silent, Bars::share(0.95));
        // With late and lost answers 200 are not enough for a high limit.
        let callers = CALLERS.max(self.limit as usize / 2);
        setup.world.demand = Demand::Endless(callers);
        setup.world.net = Net {
            lost: 0.01,
            late: 0.05,
        };
        setup
    }

    pub(super) fn sparse(&mut self) -> Setup {
        let bars = Bars {
            nobody_waits: true,
            ..Bars::NONE
        };
        let mut setup = self.rule(self.full_bucket(), Voice::Silent, bars);
        setup.world.demand = Demand::Random(self.rate() / 5.0);
        setup
    }

    pub(super) fn moody(&mut self) -> Setup {
        let rule = Moody {
            bucket: self.full_bucket(),
            part: 0.02,
            rng: self.rng.clone(),
        };
        self.rule(rule, Voice::Silent, Bars::NONE)
    }

    pub(super) fn places(&mut self) -> Setup {
        let rule = Places::new(self.limit as usize * 2 / 5, Duration::from_millis(60));
        let right = rule.limit(At::ZERO);
        Setup {
            right,
            ..self.rule(rule, Voice::Silent, Bars::NONE)
        }
    }

    pub(super) fn late_refusals(&mut self) -> Setup {
        let rule = Slow {
            bucket: self.full_bucket(),
            delay: Duration::from_secs(3),
        };
        self.rule(rule, Voice::Silent, Bars::NONE)
    }

    /// Up and down every 20 s.
    pub(super) fn restless(&mut self) -> Setup {
        let (low, high) = (self.rate() * 0.4, self.rate() * 1.6);
        let steps = (0..15).map(|step| (20 * step, if step % 2 == 0 { low } else { high }));
        let rule = Bucket::new(Plan::steps(steps), self.rate());
        self.rule(rule, Voice::Silent, Bars::NONE)
    }

    pub(super) fn twins(&mut self) -> Setup {
        let bars = Bars {
            part: Some(0.4),
            ..Bars::NONE
        };
        Setup {
            starts: vec![At::ZERO; 2],
            ..self.rule(self.full_bucket(), Voice::Silent, bars)
        }
    }

    /// The second comes when the first has settled.
    pub(super) fn newcomer(&mut self) -> Setup {
        Setup {
            starts: vec![At::ZERO, At::from_secs(60)],
            ..self.twins()
        }
    }

    /// Demand ends for two minutes, but for a little, and comes back. What counts is the time after that.
    pub(super) fn pulse(&mut self) -> Setup {
        let mut setup = self.rule(self.full_bucket(), Voice::Silent, Bars::NONE);
        let (from, to) = (At::from_secs(60), At::from_secs(180));
        setup.world.demand = Demand::Break {
            callers: CALLERS,
            from,
            to,
            rate: self.rate() / 5.0,
        };
        Setup {
            span: (to, END),
            ..setup
        }
    }

    fn rate(&self) -> f64 {
        f64::from(self.limit)
    }

    fn full_bucket(&self) -> Bucket {
        Bucket::new(Plan::steady(self.rate()), self.rate())
    }

    fn rule(&self, rule: impl Rule + 'static, voice: Voice, bars: Bars) -> Setup {
        let server = Server {
            rule: Box::new(rule),
            voice,
        };
        Setup {
            world: World {
                server,
                demand: Demand::Endless(CALLERS),
                net: Net::default(),
                end: END,
                rng: self.rng.clone(),
            },
            starts: vec![At::ZERO],
            ceiling: self.limit * 10,
            burst: self.limit,
            right: self.rate(),
            span: (START, END),
            bars,
        }
    }

    fn ten_seconds(&mut self, voice: Voice, bars: Bars) -> Setup {
        self.fixed(u64::from(self.limit) * 10, 10, voice, bars)
    }

    fn log(&mut self, voice: Voice) -> Setup {
        let limit = self.limit as usize * 10;
        let rule = Sliding::new(limit, Duration::from_secs(10));
        self.rule(rule, voice, Bars::steady(voice))
    }

    fn headers(&mut self, voice: Voice) -> Setup {
        let bars = Bars {
            refusals: Some(1),
            ..Bars::share(0.98)
        };
        self.ten_seconds(voice, bars)
    }

    /// Fixed windows began before the client did, at any time. Scored from the beginning of one to the end of another, lest a part of
    /// a window count as a whole.
    fn fixed(&mut self, limit: u64, seconds: u64, voice: Voice, bars: Bars) -> Setup {
        let length = seconds * 1_000;
        // Tenths of a second, so that windows begin where cells of the record do.
        let phase = (length as f64 * self.rng.unit()) as u64 / 100 * 100;
        let before = |at: At| (at.as_millis() as u64 + phase) / length * length - phase;
        let after = |at: At| before(at + Duration::from_millis(length - 1));
        let span = (
            Duration::from_millis(after(START)),
            Duration::from_millis(before(END)),
        );
        let rule = Window::new(
            limit,
            Duration::from_secs(seconds),
            Duration::from_millis(phase),
        );
        Setup {
            span,
            ..self.rule(rule, voice, bars)
        }
    }
}
