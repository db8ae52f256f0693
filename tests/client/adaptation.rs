//! The rate that is learnt from refusals, against servers that name no wait.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::time::Instant;
use tower::{Layer, ServiceExt};
use tower_throttle::{
    Adapt, Learned, Limiter, Quota, ThrottleLayer,
    engine::{Adaptation, Phase},
};

use crate::support::{Answer, Origin, Timeline, request, secs};

/// A token bucket on a server, and what became of the requests it got.
#[derive(Clone)]
struct Server(Arc<Mutex<Bucket>>);

struct Bucket {
    rate: f64,
    burst: f64,
    level: f64,
    last: Instant,
    accepted: u32,
    refused: u32,
}

impl Server {
    fn new(rate: f64, burst: f64) -> Self {
        Self(Arc::new(Mutex::new(Bucket {
            rate,
            burst,
            level: burst,
            last: Instant::now(),
            accepted: 0,
            refused: 0,
        })))
    }

    fn decide(&self) -> u16 {
        let mut bucket = self.0.lock().unwrap();
        let now = Instant::now();
        let came = (now - bucket.last).as_secs_f64() * bucket.rate;
        bucket.level = (bucket.level + came).min(bucket.burst);
        bucket.last = now;
        if bucket.level >= 1.0 {
            bucket.level -= 1.0;
            bucket.accepted += 1;
            200
        } else {
            bucket.refused += 1;
            429
        }
    }

    fn set_rate(&self, rate: f64) {
        self.0.lock().unwrap().rate = rate;
    }

    /// Accepted and refused since the last look.
    fn take(&self) -> (f64, f64) {
        let mut bucket = self.0.lock().unwrap();
        let counts = (f64::from(bucket.accepted), f64::from(bucket.refused));
        (bucket.accepted, bucket.refused) = (0, 0);
        counts
    }
}

/// Callers that never stop.
fn besiege(time: &Timeline, limiter: &Limiter, server: &Server, callers: u32) {
    let decide = server.clone();
    let origin = Origin::new(time, move |_| Answer::status(decide.decide()).after(0.06));
    let service = ThrottleLayer::new(limiter.clone()).layer(origin);
    for _ in 0..callers {
        let service = service.clone();
        tokio::spawn(async move {
            loop {
                service.clone().oneshot(request()).await.unwrap();
            }
        });
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_limit_is_found_and_kept_almost_without_refusals() {
    let time = Timeline::start();
    let limiter = Limiter::new(Quota::per_second(500).burst(50)).unwrap();
    let server = Server::new(50.0, 50.0);
    besiege(&time, &limiter, &server, 60);
    time.at(10.0).await;
    let (_, refused) = server.take();
    assert!(refused <= 150.0, "{refused}");
    time.at(70.0).await;
    let (accepted, refused) = server.take();
    assert!(accepted >= 0.98 * 50.0 * 60.0, "{accepted}");
    assert!(refused <= 0.003 * accepted, "{refused}");
    let learned = limiter.learned().unwrap().per_second();
    assert!((48.0..=52.0).contains(&learned), "{learned}");
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_falls_and_rises_is_followed() {
    let time = Timeline::start();
    let limiter = Limiter::new(Quota::per_second(500).burst(50)).unwrap();
    let server = Server::new(50.0, 50.0);
    besiege(&time, &limiter, &server, 60);
    time.at(30.0).await;
    server.take();
    server.set_rate(20.0);
    time.at(60.0).await;
    let (accepted, refused) = server.take();
    assert!(refused <= 0.05 * (accepted + refused), "{refused}");
    server.set_rate(80.0);
    time.at(80.0).await;
    server.take();
    time.at(110.0).await;
    let (accepted, _) = server.take();
    assert!(accepted >= 0.95 * 80.0 * 30.0, "{accepted}");
}

/// After a minute in which everything was refused the rate climbs back to what is configured, in less than another.
#[tokio::test(start_paused = true)]
async fn an_outage_is_recovered_from() {
    let time = Timeline::start();
    let limiter = Limiter::new(Quota::per_second(10).burst(10)).unwrap();
    let server = Server::new(1000.0, 0.5);
    besiege(&time, &limiter, &server, 20);
    time.at(60.0).await;
    let (accepted, refused) = server.take();
    assert_eq!(accepted, 0.0);
    // One request at a time tests it.
    assert!(refused <= 40.0, "{refused}");
    server.0.lock().unwrap().burst = 1000.0;
    time.at(180.0).await;
    assert!(limiter.snapshot().rate >= 9.5);
    server.take();
    time.at(190.0).await;
    assert!(server.take().0 >= 95.0);
}

#[tokio::test(start_paused = true)]
async fn what_was_learnt_lasts_over_a_restart() {
    let time = Timeline::start();
    let server = Server::new(50.0, 50.0);
    let limiter = Limiter::builder()
        .quota("q", Quota::per_second(500).burst(50))
        .learned(Learned::from_per_second(50.0), secs(3_600.0))
        .build()
        .unwrap();
    assert_eq!(limiter.snapshot().adaptation.phase, Phase::Holding);
    besiege(&time, &limiter, &server, 60);
    time.at(20.0).await;
    let (accepted, refused) = server.take();
    assert!(accepted >= 0.97 * (50.0 + 50.0 * 20.0), "{accepted}");
    assert!(refused <= 8.0, "{refused}");
}

#[tokio::test(start_paused = true)]
async fn what_was_learnt_never_raises_the_rate_and_grows_old() {
    let build = |per_second: f64, age: Duration, adapt: Adapt| {
        Limiter::builder()
            .quota("q", Quota::per_second(10))
            .adapt(adapt)
            .learned(Learned::from_per_second(per_second), age)
            .build()
    };
    let rate = |per_second, age, adapt| build(per_second, age, adapt).unwrap().snapshot().rate;
    let fresh = Duration::from_secs(60);
    assert!((4.9..5.0).contains(&rate(5.0, fresh, Adapt::On)));
    assert_eq!(rate(1e300, fresh, Adapt::On), 10.0);
    assert_eq!(rate(5.0, fresh, Adapt::Off), 10.0);
    assert_eq!(rate(5.0, Learned::MAX_AGE, Adapt::On) as u32, 4);
    let old = Learned::MAX_AGE + Duration::from_nanos(1);
    assert_eq!(rate(5.0, old, Adapt::On), 10.0);
    // The floor.
    assert!(rate(1e-300, fresh, Adapt::On) >= 10.0 / 1024.0 * 0.99);
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = build(bad, fresh, Adapt::On).unwrap_err();
        assert!(error.to_string().contains("learned"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_tells_how_the_rate_came_about() {
    let time = Timeline::start();
    let limiter = Limiter::new(Quota::per_second(500).burst(50)).unwrap();
    let server = Server::new(50.0, 50.0);
    let look = || limiter.snapshot().adaptation;
    let Adaptation { phase, limit, .. } = look();
    assert_eq!((phase, limit), (Phase::Unchallenged, None));
    assert_eq!(limiter.learned(), None);
    besiege(&time, &limiter, &server, 60);
    let mut phases = Vec::new();
    for step in 0..3_000 {
        time.at(0.01 * f64::from(step)).await;
        let phase = look().phase;
        if phases.last() != Some(&phase) {
            phases.push(phase);
        }
    }
    assert_eq!(
        phases[..3],
        [Phase::Unchallenged, Phase::Refused, Phase::Holding]
    );
    let cycle = [
        Phase::Holding,
        Phase::Probing,
        Phase::Refused,
        Phase::Holding,
    ];
    assert!(phases.windows(4).any(|part| part == cycle), "{phases:?}");
    let Adaptation {
        limit, refusals, ..
    } = look();
    assert!((48.0..=52.0).contains(&limit.unwrap()), "{limit:?}");
    assert!(refusals > 0);
}

/// Demand below the limit never meets it, and nothing is learnt from that.
#[tokio::test(start_paused = true)]
async fn low_demand_is_never_slowed() {
    let time = Timeline::start();
    let limiter = Limiter::new(Quota::per_second(500).burst(50)).unwrap();
    let server = Server::new(50.0, 50.0);
    let decide = server.clone();
    let origin = Origin::new(&time, move |_| Answer::status(decide.decide()).after(0.06));
    let service = ThrottleLayer::new(limiter.clone()).layer(origin);
    for step in 0..300 {
        time.at(0.1 * f64::from(step)).await;
        let before = time.now();
        let sent = time.count();
        tokio::spawn(service.clone().oneshot(request()));
        tokio::task::yield_now().await;
        assert_eq!((time.count(), time.now()), (sent + 1, before));
    }
    assert_eq!(limiter.snapshot().rate, 500.0);
    assert_eq!(limiter.snapshot().adaptation.phase, Phase::Unchallenged);
}

/// Two clients of one key that know nothing of each other, the second when the first has settled: neither is driven out.
#[tokio::test(start_paused = true)]
async fn a_newcomer_gets_its_part_of_a_shared_limit() {
    let time = Timeline::start();
    let server = Server::new(200.0, 200.0);
    let [one, other] = [0, 1].map(|_| Limiter::new(Quota::per_second(2_000).burst(200)).unwrap());
    besiege(&time, &one, &server, 30);
    time.at(30.0).await;
    besiege(&time, &other, &server, 30);
    time.at(110.0).await;
    let sent = |limiter: &Limiter| limiter.snapshot().counters.sent as f64;
    let before = (sent(&one), sent(&other));
    time.at(150.0).await;
    let (one, other) = (sent(&one) - before.0, sent(&other) - before.1);
    let part = other / (one + other);
    assert!((0.4..=0.6).contains(&part), "{part}");
}
