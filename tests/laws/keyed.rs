//! A keyed limiter over random traces: each key keeps the laws by itself, and all of them the global budget.
#![allow(missing_docs, clippy::unwrap_used, clippy::disallowed_methods)]

use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    task::{Context, Waker},
    time::{Duration, SystemTime},
};

use http::{HeaderMap, StatusCode};
use proptest::prelude::*;
use tokio::time::{Instant, advance};
use tower_throttle::{
    Error, KeyedLimiter, KeyedPermit, Limiter, Overflow, Quota,
    feedback::{Feedback, read},
    limiter::keyed::KeyedAcquire,
};

#[derive(Debug, Clone)]
enum Step {
    Try {
        key: u8,
        cost: u32,
    },
    Wait {
        key: u8,
        cost: u32,
    },
    /// Polls everybody who waits, from the first or from the last.
    Poll {
        backwards: bool,
    },
    Cancel {
        which: usize,
    },
    Pass {
        millis: u64,
    },
    Pause {
        key: Option<u8>,
        millis: u64,
    },
    Answer {
        key: u8,
        seconds: u64,
        global: bool,
    },
    Sweep,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = 0..6_u8;
    let step = prop_oneof![
        6 => (key.clone(), 0..4_u32).prop_map(|(key, cost)| Step::Try { key, cost }),
        6 => (key.clone(), 0..4_u32).prop_map(|(key, cost)| Step::Wait { key, cost }),
        6 => any::<bool>().prop_map(|backwards| Step::Poll { backwards }),
        3 => any::<usize>().prop_map(|which| Step::Cancel { which }),
        8 => (0..900_u64).prop_map(|millis| Step::Pass { millis }),
        1 => (proptest::option::of(key.clone()), 1..3_000_u64)
            .prop_map(|(key, millis)| Step::Pause { key, millis }),
        1 => (key, 1..4_u64, any::<bool>())
            .prop_map(|(key, seconds, global)| Step::Answer { key, seconds, global }),
        2 => Just(Step::Sweep),
    ];
    proptest::collection::vec(step, 1..150)
}

fn refusal(fields: &[(&'static str, &str)]) -> Feedback {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.insert(*name, value.parse().unwrap());
    }
    read(StatusCode::TOO_MANY_REQUESTS, &headers, SystemTime::now())
}

type Waiter = (u8, u32, Pin<Box<KeyedAcquire<u8>>>);

/// What left, by key, and until when each was paused.
#[derive(Default)]
struct Ledger {
    sent: Vec<(Duration, u8, u32)>,
    paused: HashMap<u8, Duration>,
    all_paused: Duration,
}

impl Ledger {
    fn note(&mut self, now: Duration, key: u8, cost: u32, result: &Result<KeyedPermit, Error>) {
        if result.is_ok() {
            let until = (self.paused.get(&key).copied().unwrap_or_default()).max(self.all_paused);
            assert!(
                now >= until,
                "key {key} sent at {now:?}, paused until {until:?}"
            );
            self.sent.push((now, key, cost));
        }
    }

    fn pause(&mut self, key: Option<u8>, until: Duration) {
        let place = match key {
            Some(key) => self.paused.entry(key).or_default(),
            None => &mut self.all_paused,
        };
        *place = until.max(*place);
    }

    /// L1 for one key, or over all.
    fn check(&self, key: Option<u8>, rate: f64, burst: u32) {
        let sent: Vec<_> = (self.sent.iter())
            .filter(|(_, of, _)| key.is_none_or(|key| key == *of))
            .collect();
        for (first, (start, ..)) in sent.iter().enumerate() {
            let mut cost = 0;
            for (end, _, units) in &sent[first..] {
                cost += units;
                let window = (*end - *start).as_secs_f64() + 0.01;
                let most = f64::from(burst) + rate * window;
                assert!(
                    f64::from(cost) <= most + 1e-6,
                    "{cost} of key {key:?} from {start:?} to {end:?}, at most {most}"
                );
            }
        }
    }
}

const KEY: (u32, u32) = (4, 3);
const LARGE: (u32, u32) = (9, 3);
const GLOBAL: (u32, u32) = (10, 5);

async fn run(steps: Vec<Step>, above: bool, max_keys: usize) {
    let global = Limiter::new(Quota::per_second(GLOBAL.0).burst(GLOBAL.1)).unwrap();
    let mut builder = KeyedLimiter::builder()
        .quota(Quota::per_second(KEY.0).burst(KEY.1))
        .quota_for(|&key: &u8| (key == 5).then(|| Quota::per_second(LARGE.0).burst(LARGE.1)))
        .max_keys(max_keys)
        .overflow(Overflow::Refuse);
    if above {
        builder = builder.global(global.clone());
    }
    let limiter = builder.build().unwrap();
    let start = Instant::now();
    let mut ledger = Ledger::default();
    let mut waiters: Vec<Waiter> = Vec::new();
    let mut cx = Context::from_waker(Waker::noop());
    let mut poll = |waiters: &mut Vec<Waiter>, ledger: &mut Ledger, backwards: bool| {
        if backwards {
            waiters.reverse();
        }
        waiters.retain_mut(|(key, cost, waiter)| match waiter.as_mut().poll(&mut cx) {
            std::task::Poll::Pending => true,
            std::task::Poll::Ready(result) => {
                ledger.note(start.elapsed(), *key, *cost, &result);
                false
            }
        });
        if backwards {
            waiters.reverse();
        }
    };
    for step in steps {
        match step {
            Step::Try { key, cost } => {
                let result = limiter.try_acquire(&key, cost);
                ledger.note(start.elapsed(), key, cost, &result);
            }
            Step::Wait { key, cost } => {
                waiters.push((key, cost, Box::pin(limiter.acquire(&key, cost))));
            }
            Step::Poll { backwards } => poll(&mut waiters, &mut ledger, backwards),
            Step::Cancel { which } => {
                if !waiters.is_empty() {
                    let which = which % waiters.len();
                    drop(waiters.remove(which));
                }
            }
            Step::Pass { millis } => advance(Duration::from_millis(millis)).await,
            Step::Pause { key, millis } => {
                let wait = Duration::from_millis(millis);
                let held = match key {
                    Some(key) => limiter.penalize(&key, wait).is_ok(),
                    None => {
                        limiter.penalize_all(wait);
                        true
                    }
                };
                if held {
                    ledger.pause(key, start.elapsed() + wait);
                }
            }
            Step::Answer {
                key,
                seconds,
                global,
            } => {
                let wait = seconds.to_string();
                let mut fields = vec![("retry-after", wait.as_str())];
                if global {
                    fields.push(("x-ratelimit-global", "true"));
                }
                let known = limiter.snapshot_of(&key).is_some();
                limiter.reconcile(&key, &refusal(&fields));
                if known || global {
                    let until = start.elapsed() + Duration::from_secs(seconds);
                    ledger.pause((!global).then_some(key), until);
                }
            }
            Step::Sweep => {
                limiter.sweep();
            }
        }
        assert!(limiter.len() <= max_keys);
    }
    // L2: all who are left are served in the end, by nobody but themselves.
    for _ in 0..400 {
        advance(Duration::from_millis(250)).await;
        poll(&mut waiters, &mut ledger, false);
    }
    let left: Vec<_> = waiters.iter().map(|(key, cost, _)| (key, cost)).collect();
    assert!(left.is_empty(), "not served after 100 s: {left:?}");
    for key in 0..5 {
        ledger.check(Some(key), f64::from(KEY.0), KEY.1);
    }
    ledger.check(Some(5), f64::from(LARGE.0), LARGE.1);
    if above {
        ledger.check(None, f64::from(GLOBAL.0), GLOBAL.1);
        // L4: what was not sent is all there again.
        let snapshot = global.snapshot();
        assert_eq!((snapshot.held, snapshot.queue_len), (0, 0));
        advance(Duration::from_secs(100)).await;
        assert_eq!(global.snapshot().level, f64::from(GLOBAL.1));
    }
    // Nothing keeps any key now, but what refusals have taught.
    advance(Duration::from_secs(100_000)).await;
    limiter.sweep();
    assert_eq!(limiter.len(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_key_and_not_all_together_exceed_their_quota(
        steps in steps(),
        above in any::<bool>(),
        max_keys in 2..8_usize,
    ) {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap()
            .block_on(run(steps, above, max_keys));
    }
}
