use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock},
};

use tower::{Layer, ServiceExt};
use tower_throttle::{KeyedLimiter, KeyedThrottleLayer, Limiter, Quota, client::keyed::Host};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    Registry,
    layer::{Context, SubscriberExt},
};

use crate::support::{Answer, Origin, Request, Timeline, secs};

#[derive(Clone, Default)]
struct Trail(Arc<Mutex<Vec<HashMap<String, String>>>>);

impl Trail {
    fn listen() -> (Self, tracing::subscriber::DefaultGuard) {
        // With one subscriber alone, tracing asks whichever thread first comes to an event whether anybody listens, and keeps the answer;
        // with two it asks each time. Other tests run at the same time.
        static SECOND: OnceLock<tracing::Dispatch> = OnceLock::new();
        SECOND.get_or_init(|| tracing::Dispatch::new(Registry::default()));
        let trail = Self::default();
        let guard = tracing::subscriber::set_default(Registry::default().with(trail.clone()));
        (trail, guard)
    }
}

#[derive(Default)]
struct Fields(HashMap<String, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl<S: Subscriber> tracing_subscriber::Layer<S> for Trail {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == tower_throttle::audit::TARGET {
            let mut fields = Fields::default();
            event.record(&mut fields);
            self.0.lock().unwrap().push(fields.0);
        }
    }
}

/// C63 for keys: each request has one record that it was sent and one that closes it, told apart by limiter and number.
#[tokio::test(start_paused = true)]
async fn c63_each_request_of_each_key_is_closed_once() {
    let (trail, _guard) = Trail::listen();
    let time = Timeline::start();
    let limiter = KeyedLimiter::builder()
        .name("crawl")
        .label(Host::to_string)
        .quota(Quota::per_second(5))
        .max_wait(secs(3.0))
        .global(
            Limiter::builder()
                .name("all")
                .quota("q", Quota::per_second(20))
                .build()
                .unwrap(),
        )
        .build()
        .unwrap();
    let service = KeyedThrottleLayer::by_host(limiter.clone()).layer(Origin::new(
        &time,
        |number| match number % 17 {
            0 => Answer::status(429).header("retry-after", 1),
            _ => Answer::status(200).after(0.01),
        },
    ));
    let mut random = 1_u64;
    let mut next = |below: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut calls = Vec::new();
    for _ in 0..2_000 {
        let request: Request =
            http::Request::get(format!("https://h{}.example/p?key=secret", next(10)))
                .body(http_body_util::Empty::new())
                .unwrap();
        let patience = secs(next(40) as f64 / 10.0);
        let call = service.clone().oneshot(request);
        calls.push(tokio::spawn(tokio::time::timeout(patience, call)));
        tokio::time::sleep(secs(next(50) as f64 / 1000.0)).await;
    }
    for call in calls {
        let _ = call.await.unwrap();
    }
    drop(service);
    let mut open: HashMap<(String, String), i32> = HashMap::new();
    let mut ended = HashMap::new();
    for record in trail.0.lock().unwrap().iter() {
        assert!(!record.values().any(|value| value.contains("secret")));
        let limiter = record["limiter"].clone();
        let Some(seq) = record.get("seq").cloned() else {
            continue;
        };
        let id = (limiter, seq);
        match record["event"].as_str() {
            "sent" => {
                assert_eq!(open.insert(id, 1), None, "one record of being sent");
            }
            "answered" | "failed" | "abandoned" => {
                assert_eq!(open.remove(&id), Some(1));
                assert_eq!(ended.insert(id, ()), None);
            }
            "cancelled" | "refused" | "acquired" => {
                assert_eq!(open.get(&id), None);
                assert_eq!(ended.insert(id.clone(), ()), None, "{id:?} twice");
            }
            _ => {}
        }
    }
    assert_eq!(open.len(), 0);
    let of = |name: &str| {
        ended
            .keys()
            .filter(|(limiter, _)| limiter.starts_with(name))
            .count()
    };
    assert_eq!(of("crawl/h"), ended.len() - of("all"));
    assert!(of("crawl/h3.example") > 100);
    assert!(of("all") >= time.count());
}

#[tokio::test(start_paused = true)]
async fn without_a_label_nothing_of_a_key_is_recorded() {
    let (trail, _guard) = Trail::listen();
    let limiter = KeyedLimiter::new(Quota::per_second(1)).unwrap();
    for _ in 0..2 {
        for key in ["secret-1", "secret-2"] {
            limiter.acquire(&key, 1).await.unwrap();
            let _ = limiter.try_acquire(&key, 1);
        }
    }
    let records = trail.0.lock().unwrap();
    assert_eq!(records.len(), 8);
    let names: std::collections::HashSet<_> =
        records.iter().map(|record| &record["limiter"]).collect();
    assert_eq!(names.len(), 2);
    assert!(!format!("{records:?}").contains("secret"));
}
