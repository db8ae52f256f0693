use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, OnceLock},
};

use tower::{Layer, Service, ServiceExt};
use tower_throttle::{Limiter, Quota, ThrottleLayer, audit::TARGET};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{layer::Context, prelude::*};

use crate::support::{Answer, GRAIN, Origin, Request, Timeline, request, secs};

type Record = BTreeMap<String, String>;

/// Collects the events of the audit target.
#[derive(Clone, Default)]
struct Trail(Arc<Mutex<Vec<Record>>>);

struct Fields<'a>(&'a mut Record);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl<S: Subscriber> tracing_subscriber::Layer<S> for Trail {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == TARGET {
            let mut record = Record::new();
            record.insert(
                "level_of_event".into(),
                event.metadata().level().to_string(),
            );
            event.record(&mut Fields(&mut record));
            self.0.lock().unwrap().push(record);
        }
    }
}

impl Trail {
    fn listen() -> (Self, tracing::subscriber::DefaultGuard) {
        // With one subscriber alone, tracing asks whichever thread first comes to an event whether anybody listens, and keeps the answer;
        // most tests do not listen.
        static SECOND: OnceLock<tracing::Dispatch> = OnceLock::new();
        SECOND.get_or_init(|| tracing::Dispatch::new(tracing_subscriber::registry()));
        let trail = Self::default();
        let guard = tracing_subscriber::registry()
            .with(trail.clone())
            .set_default();
        (trail, guard)
    }

    fn of(&self, event: &str) -> Vec<Record> {
        (self.0.lock().unwrap().iter())
            .filter(|record| record["event"] == event)
            .cloned()
            .collect()
    }
}

fn micros(record: &Record, field: &str) -> f64 {
    record[field].parse::<f64>().unwrap() / 1e6
}

#[tokio::test(start_paused = true)]
async fn a_dispatch_is_recorded_with_all_its_fields_and_no_secret() {
    let (trail, _guard) = Trail::listen();
    let limiter = Limiter::builder()
        .name("grants.gov")
        .quota("q", Quota::per_second(2).burst(2))
        .build()
        .unwrap();
    let time = Timeline::start();
    let service = ThrottleLayer::new(limiter).layer(Origin::ok(&time));
    let uri = "https://user:password@api.example.com:8443/v1/search?key=secret";
    let request = http::Request::post(uri)
        .header("authorization", "Bearer secret")
        .body(http_body_util::Empty::new())
        .unwrap();
    service.oneshot(request).await.unwrap();
    let sent = &trail.of("sent")[0];
    for (field, value) in [
        ("level_of_event", "INFO"),
        ("limiter", "grants.gov"),
        ("seq", "1"),
        ("method", "POST"),
        ("scheme", "https"),
        ("host", "api.example.com"),
        ("port", "8443"),
        ("path", "/v1/search"),
        ("cost", "1"),
        ("waited_us", "0"),
        ("reason", "none"),
        ("level_after", "1.0"),
        ("rate", "2.0"),
    ] {
        assert_eq!(sent[field], value, "{field}");
    }
    let answered = &trail.of("answered")[0];
    assert_eq!(answered["seq"], "1");
    assert_eq!(answered["status"], "200");
    let all = format!("{:?}", trail.0.lock().unwrap());
    assert!(
        !all.contains("secret") && !all.contains("password"),
        "{all}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_recorded_with_what_was_asked_and_what_is_honoured() {
    let (trail, _guard) = Trail::listen();
    let limiter = Limiter::new(Quota::per_second(10)).unwrap();
    let time = Timeline::start();
    let mut service =
        ThrottleLayer::new(limiter).layer(Origin::new(&time, |number| match number {
            0 => Answer::status(429).header("retry-after", 7),
            1 => Answer::status(429).header("retry-after", "soon"),
            _ => Answer::status(200),
        }));
    for _ in 0..3 {
        service
            .ready()
            .await
            .unwrap()
            .call(request())
            .await
            .unwrap();
    }
    let paused = trail.of("paused");
    assert_eq!(paused.len(), 2);
    assert_eq!(paused[0]["level_of_event"], "WARN");
    assert_eq!(paused[0]["cause"], "server_pause");
    assert_eq!(paused[0]["field"], "retry-after");
    assert_eq!(micros(&paused[0], "asked_us"), 7.0);
    assert_eq!(micros(&paused[0], "honoured_us"), 7.0);
    assert_eq!(paused[1]["cause"], "backoff");
    let malformed = trail.of("malformed");
    assert_eq!(malformed.len(), 1);
    assert_eq!(malformed[0]["level_of_event"], "WARN");
    assert_eq!(malformed[0]["field"], "retry-after");
    let sent = trail.of("sent");
    assert_eq!(sent[1]["reason"], "server_pause");
    let waited = micros(&sent[1], "waited_us");
    assert!(
        waited >= 7.0 && waited <= (secs(7.0) + GRAIN).as_secs_f64(),
        "{waited}"
    );
    let answered = trail.of("answered");
    assert_eq!(answered[0]["throttled"], "true");
    assert_eq!(answered[0]["paused"], "true");
}

/// Whatever becomes of a request, exactly one closing event; one `sent` for each call of the inner service and none without.
#[tokio::test(start_paused = true)]
async fn every_request_is_closed_exactly_once() {
    let (trail, _guard) = Trail::listen();
    let limiter = Limiter::builder()
        .quota("q", Quota::per_second(50).burst(3))
        .max_wait(secs(20.0))
        .build()
        .unwrap();
    let time = Timeline::start();
    // A small linear congruence decides what happens: fixed, so that a failure repeats.
    let origin = Origin::new(&time, |number| match number * 7919 % 23 {
        0 => Answer::status(429),
        1 => Answer::status(429).header("retry-after", 1),
        2 => Answer::status(503).after(3.0),
        3..=8 => Answer::status(200).after(2.0),
        _ => Answer::status(200).after(0.05),
    });
    let failing = tower::service_fn({
        let origin = origin.clone();
        move |request: Request| {
            let origin = origin.clone();
            async move {
                let response = origin.oneshot(request).await.unwrap();
                if response.status() == 503 {
                    return Err(std::io::Error::other("connection lost"));
                }
                Ok(response)
            }
        }
    });
    let service = ThrottleLayer::new(limiter.clone()).layer(failing);
    let mut requests = 0;
    let mut tasks = Vec::new();
    for index in 0..2000_u64 {
        requests += 1;
        let service = service.clone();
        let patience = secs((index * 6007 % 97) as f64 * 0.4 + 0.01);
        tasks.push(tokio::spawn(async move {
            let _ = tokio::time::timeout(patience, service.oneshot(request())).await;
        }));
        if index % 10 == 0 {
            tokio::time::sleep(secs(0.13)).await;
        }
    }
    for task in tasks {
        task.await.unwrap();
    }
    let mut closings: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut sent: BTreeMap<String, usize> = BTreeMap::new();
    let records = trail.0.lock().unwrap().clone();
    for record in &records {
        let seq = record.get("seq").cloned().unwrap_or_default();
        match record["event"].as_str() {
            "sent" => *sent.entry(seq).or_default() += 1,
            "paused" | "malformed" | "waiting" => {}
            closing @ ("answered" | "failed" | "abandoned" | "refused" | "cancelled") => {
                assert!(!closing.is_empty());
                closings.entry(seq).or_default().push(match closing {
                    "answered" => "answered",
                    "failed" => "failed",
                    "abandoned" => "abandoned",
                    "refused" => "refused",
                    _ => "cancelled",
                });
            }
            other => panic!("unknown event {other}"),
        }
    }
    assert_eq!(closings.len(), requests);
    assert!(
        closings.values().all(|closing| closing.len() == 1),
        "{closings:?}"
    );
    assert_eq!(sent.values().sum::<usize>(), time.count());
    assert!(sent.values().all(|&count| count == 1));
    for (seq, closing) in &closings {
        let was_sent = matches!(closing[0], "answered" | "failed" | "abandoned");
        assert_eq!(sent.contains_key(seq), was_sent, "{seq} {closing:?}");
    }
    // Each kind has happened, or the test shows nothing.
    for kind in ["answered", "failed", "abandoned", "refused", "cancelled"] {
        assert!(
            closings.values().any(|closing| closing[0] == kind),
            "no {kind}"
        );
    }
    let snapshot = limiter.snapshot();
    assert_eq!(
        (snapshot.in_flight, snapshot.held, snapshot.queue_len),
        (0, 0, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_long_wait_is_visible_while_it_lasts() {
    let (trail, _guard) = Trail::listen();
    let limiter = Limiter::new(Quota::per_second(1)).unwrap();
    limiter.penalize(secs(100.0));
    let waiting = tokio::spawn({
        let limiter = limiter.clone();
        async move { limiter.acquire(1).await.unwrap() }
    });
    tokio::time::sleep(secs(31.0)).await;
    let reports = trail.of("waiting");
    assert_eq!(reports.len(), 1);
    assert_eq!(reports[0]["reason"], "penalty");
    assert!(micros(&reports[0], "expected_us") <= 70.0);
    let permit = waiting.await.unwrap();
    assert!(permit.waited() >= secs(100.0));
    assert_eq!(trail.of("waiting").len(), 2, "at 30 s and at 60 s");
}

/// A server that is broken in every answer does not flood the log: the events of one field thin out, and carry the count.
#[tokio::test(start_paused = true)]
async fn events_of_unreadable_fields_thin_out() {
    let (trail, _guard) = Trail::listen();
    let limiter = Limiter::new(Quota::per_second(1000).burst(1000)).unwrap();
    let time = Timeline::start();
    let mut service = ThrottleLayer::new(limiter.clone()).layer(Origin::new(&time, |_| {
        Answer::status(200).header("x-ratelimit-remaining", "plenty")
    }));
    for _ in 0..1000 {
        service
            .ready()
            .await
            .unwrap()
            .call(request())
            .await
            .unwrap();
    }
    let counts: Vec<_> = (trail.of("malformed").iter())
        .map(|record| record["count"].clone())
        .collect();
    assert_eq!(
        counts,
        ["1", "2", "4", "8", "16", "32", "64", "128", "256", "512"]
    );
    assert_eq!(limiter.snapshot().counters.malformed, 1000);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_says_why_and_a_cancel_how_long() {
    let (trail, _guard) = Trail::listen();
    let limiter = Limiter::new(Quota::per_second(1)).unwrap();
    limiter.acquire(1).await.unwrap();
    assert!(limiter.try_acquire(1).is_err());
    let _ = tokio::time::timeout(secs(0.25), limiter.acquire(1)).await;
    let refused = &trail.of("refused")[0];
    assert_eq!(refused["why"], "wait_too_long");
    assert_eq!(micros(refused, "retry_after_us"), 1.0);
    let cancelled = &trail.of("cancelled")[0];
    let waited = micros(cancelled, "waited_us");
    assert!((0.25..=0.253).contains(&waited), "{waited}");
    assert_eq!(cancelled["held"], "false");
}

/// A request whose cost names no quota is refused once, and not cancelled besides.
#[tokio::test(start_paused = true)]
async fn a_cost_that_cannot_be_has_one_record() {
    let (trail, _guard) = Trail::listen();
    let limiter = Limiter::new(Quota::per_second(10)).unwrap();
    let time = Timeline::start();
    let service = ThrottleLayer::new(limiter.clone()).layer(Origin::ok(&time));
    let mut request = request();
    request
        .extensions_mut()
        .insert(tower_throttle::Cost::new(1).of("none", 1));
    service.oneshot(request).await.unwrap_err();
    assert_eq!(trail.of("refused").len(), 1);
    assert_eq!(trail.of("refused")[0]["seq"], "1");
    assert_eq!(trail.of("cancelled").len(), 0);
    let counters = limiter.snapshot().counters;
    assert_eq!((counters.refused, counters.cancelled), (1, 0));
}

/// Each change of the rate says what made it.
#[tokio::test(start_paused = true)]
async fn a_change_of_the_rate_says_because_of_what() {
    let (trail, _guard) = Trail::listen();
    let limiter = Limiter::new(Quota::per_second(10).burst(2)).unwrap();
    let time = Timeline::start();
    let service = ThrottleLayer::new(limiter).layer(Origin::new(&time, |number| match number {
        1 => Answer::status(429),
        300 => Answer::status(200)
            .header("x-ratelimit-remaining", 1)
            .header("x-ratelimit-reset", 10),
        _ => Answer::status(200),
    }));
    let tasks: Vec<_> = (0..302)
        .map(|_| tokio::spawn(service.clone().oneshot(request())))
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    let changes: Vec<_> = (trail.of("answered").iter())
        .filter(|record| record["rate_before"] != record["rate_after"])
        .map(|record| {
            let rate = |field: &str| record[field].parse::<f64>().unwrap();
            (
                record["because"].clone(),
                rate("rate_after") > rate("rate_before"),
            )
        })
        .collect();
    assert_eq!(changes[0], ("refusal".to_owned(), false));
    assert!(changes.contains(&("probe".to_owned(), true)));
    assert!(changes.contains(&("budget".to_owned(), false)));
    let unchanged = |record: &&Record| record["rate_before"] == record["rate_after"];
    let answered = trail.of("answered");
    assert!((answered.iter().filter(unchanged)).all(|record| !record.contains_key("because")));
}
