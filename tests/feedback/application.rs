use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, StatusCode};
use tower::{Layer, Service, ServiceExt};
use tower_throttle::{
    Adapt, Limiter, Quota, Regime, Spend, ThrottleLayer,
    feedback::{self, Dialect, Feedback, Scope},
};

use crate::support::{Answer, GRAIN, Origin, Timeline, assert_times, request, secs};

fn read(status: u16, fields: &[(&str, &str)]) -> Feedback {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.append(name, value.parse().unwrap());
    }
    feedback::read(
        StatusCode::from_u16(status).unwrap(),
        &headers,
        SystemTime::now(),
    )
}

fn limiter(rate: u32, burst: u32) -> Limiter {
    Limiter::builder()
        .quota("q", Quota::per_second(rate).burst(burst))
        .adapt(Adapt::Off)
        .build()
        .unwrap()
}

/// The wait that follows one answer with these fields, on a limiter that would not make anybody wait.
async fn wait_after(status: u16, fields: &[(&str, &str)]) -> f64 {
    let limiter = limiter(1000, 1000);
    limiter.acquire(1).await.unwrap();
    limiter.reconcile(&read(status, fields));
    let time = Timeline::start();
    limiter.acquire(1).await.unwrap();
    time.now().as_secs_f64()
}

#[track_caller]
fn assert_wait(waited: f64, due: f64) {
    assert!(
        waited >= due - 1e-9 && waited <= due + GRAIN.as_secs_f64(),
        "{waited}, not {due}"
    );
}

#[tokio::test(start_paused = true)]
async fn durations_and_timestamps_are_resets_too() {
    let date = ("date", "Thu, 01 Jan 2026 00:00:00 GMT");
    for (reset, wait) in [
        ("6m0s", 360.0),
        ("1m30s", 90.0),
        ("500ms", 0.5),
        ("17ms", 0.017),
        ("1.5s", 1.5),
        ("2m59.56s", 179.56),
        ("23m47.648s", 1427.648),
        ("2026-01-01T00:00:30Z", 30.0),
        ("2026-01-01T01:00:30+01:00", 30.0),
    ] {
        let fields = [
            date,
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset", reset),
        ];
        assert_wait(wait_after(429, &fields).await, wait);
    }
    let two = [
        ("x-ratelimit-remaining-requests", "59"),
        ("x-ratelimit-reset-requests", "1s"),
        ("x-ratelimit-remaining-tokens", "0"),
        ("x-ratelimit-reset-tokens", "6m0s"),
    ];
    assert_wait(wait_after(429, &two).await, 360.0);
    assert_wait(wait_after(200, &two).await, 360.0);
}

#[tokio::test(start_paused = true)]
async fn names_are_found_in_any_case_and_spelling() {
    for (remaining, reset) in [
        ("X-RateLimit-Remaining", "X-RateLimit-Reset"),
        ("x-rate-limit-remaining", "x-rate-limit-reset"),
        ("RateLimit-Remaining", "RATELIMIT-RESET"),
        ("Rate-Limit-Remaining", "Rate-Limit-Reset"),
        (
            "x-ratelimit-remaining-requests",
            "x-ratelimit-reset-requests",
        ),
    ] {
        assert_wait(
            wait_after(200, &[(remaining, "0"), (reset, "9")]).await,
            9.0,
        );
    }
    assert_wait(wait_after(429, &[("RETRY-AFTER", "4")]).await, 4.0);
}

#[tokio::test(start_paused = true)]
async fn the_spent_one_of_several_policies_holds() {
    let one = [("ratelimit", "\"p1\";r=20;t=20, \"p2\";r=0;t=300")];
    assert_wait(wait_after(200, &one).await, 300.0);
    let two = [
        ("ratelimit", "\"p1\";r=20;t=20"),
        ("ratelimit", "\"p2\";r=0;t=300"),
    ];
    assert_wait(wait_after(200, &two).await, 300.0);
}

#[tokio::test(start_paused = true)]
async fn of_two_counts_for_one_budget_the_smaller_holds() {
    for fields in [
        &[
            ("x-ratelimit-remaining", "14"),
            ("x-ratelimit-remaining", "3"),
        ][..],
        &[("x-ratelimit-remaining", "14, 3")][..],
    ] {
        let limiter = limiter(1, 100);
        let mut fields = fields.to_vec();
        fields.push(("x-ratelimit-reset", "60"));
        limiter.reconcile(&read(200, &fields));
        assert_eq!(limiter.available(), 3);
    }
    let limiter = limiter(1, 100);
    let list = [
        ("ratelimit-limit", "10, 10;w=1, 50;w=60"),
        ("ratelimit-remaining", "4"),
        ("ratelimit-reset", "9"),
    ];
    limiter.reconcile(&read(200, &list));
    let windows = limiter.snapshot().windows;
    let state: Vec<_> = (windows.iter())
        .filter(|window| window.left == Some(4))
        .collect();
    assert_eq!(state.len(), 1, "{windows:?}");
    assert_eq!(state[0].reset, secs(9.0));
    assert_eq!(limiter.available(), 4);
}

/// `Retry-After` has the last word: the same answer's later reset of a spent budget is not added to it.
#[tokio::test(start_paused = true)]
async fn a_retry_after_beats_the_reset_of_the_budget_it_refuses() {
    for status in [429, 503] {
        let fields = [
            ("retry-after", "2"),
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset", "60"),
        ];
        assert_wait(wait_after(status, &fields).await, 2.0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cached_answer_says_nothing_about_now() {
    let fields = [
        ("age", "30"),
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "60"),
    ];
    assert_wait(wait_after(200, &fields).await, 0.0);
}

#[tokio::test(start_paused = true)]
async fn a_sentinel_is_no_count() {
    let fields = [("x-ratelimit-remaining", "-1"), ("x-ratelimit-reset", "60")];
    assert_wait(wait_after(200, &fields).await, 0.0);
}

/// Somebody else's traffic is not our rate: a refusal for a shared resource pauses and cuts nothing.
#[tokio::test(start_paused = true)]
async fn a_refusal_for_a_shared_resource_does_not_cut_the_rate() {
    for (scope, rate) in [("shared", 10.0), ("user", 5.0)] {
        let limiter = Limiter::new(Quota::per_second(10)).unwrap();
        let feedback = read(429, &[("x-ratelimit-scope", scope)]);
        limiter.acquire(1).await.unwrap();
        limiter.reconcile(&feedback);
        let snapshot = limiter.snapshot();
        assert_eq!(snapshot.regime, Regime::Paused);
        assert_eq!(snapshot.rate, rate, "{scope}");
    }
}

#[test]
fn a_global_refusal_is_told_from_one_of_a_route() {
    let global = read(
        429,
        &[("retry-after", "60"), ("x-ratelimit-global", "true")],
    );
    assert_eq!(global.scope, Scope::Global);
    let route = read(429, &[("retry-after", "60"), ("x-ratelimit-scope", "user")]);
    assert_eq!(route.scope, Scope::User);
}

/// A stated limit may lower the rate, and never raises it.
#[tokio::test(start_paused = true)]
async fn a_stated_limit_shapes_the_rate_below_the_ceiling() {
    for (policy, rate) in [
        ("30;w=60", 0.5),
        ("6000;w=60", 10.0),
        // Too long a window to know anything about its end.
        ("100;w=21600", 10.0),
    ] {
        let limiter = limiter(10, 1);
        limiter.reconcile(&read(200, &[("ratelimit-policy", policy)]));
        assert_eq!(limiter.snapshot().rate, rate, "{policy}");
        // Forgotten after a window without news.
        tokio::time::sleep(secs(61.0)).await;
        assert_eq!(limiter.snapshot().rate, 10.0);
    }
    let limiter = Limiter::builder()
        .quota("q", Quota::per_second(10))
        .spend(Spend::Freely)
        .build()
        .unwrap();
    limiter.reconcile(&read(200, &[("ratelimit-policy", "30;w=60")]));
    assert_eq!(limiter.snapshot().rate, 10.0);
}

/// A stated limit gives way to a count, and does not take its place.
#[tokio::test(start_paused = true)]
async fn a_count_counts_more_than_a_stated_limit() {
    let policy = ("ratelimit-policy", "\"p\";q=30;w=60");
    let limiter = limiter(10, 1);
    limiter.reconcile(&read(200, &[policy]));
    limiter.reconcile(&read(200, &[policy, ("ratelimit", "\"p\";r=0;t=24")]));
    limiter.reconcile(&read(200, &[policy]));
    let time = Timeline::start();
    limiter.acquire(1).await.unwrap();
    assert_times(&[time.now()], &[24.0]);
}

/// A sliding window whose reset moves with each answer neither sticks at its lowest count nor stalls.
#[tokio::test(start_paused = true)]
async fn a_reset_that_always_moves_is_followed() {
    let limiter = limiter(10, 1);
    let time = Timeline::start();
    let service = ThrottleLayer::new(limiter.clone()).layer(Origin::new(&time, |number| {
        // One dip, then plenty again.
        let remaining = if number == 5 { 1 } else { 1000 };
        Answer::status(200)
            .header("x-ratelimit-remaining", remaining)
            .header("x-ratelimit-reset", 10)
    }));
    for _ in 0..60 {
        service.clone().oneshot(request()).await.unwrap();
    }
    // After the dip at most one window is spent slowly.
    let last = time.now();
    assert!(last <= secs(5.9 + 11.0), "{last:?}");
    assert!(limiter.snapshot().rate > 9.0);
}

/// The window rolls while answers are under way: neither the old count nor the old reset is taken for the new.
#[tokio::test(start_paused = true)]
async fn a_window_that_rolls_under_way_is_not_mixed_up() {
    let limiter = limiter(100, 10);
    let time = Timeline::start();
    let service = ThrottleLayer::new(limiter.clone()).layer(Origin::new(&time, |number| {
        let (remaining, reset, after) = match number {
            // Written at 0.0, 0.9 and 1.1, where a window ends at 1.0; the second comes last.
            0 => (100, 1, 0.0),
            1 => (0, 1, 0.6),
            _ => (99, 10, 0.1),
        };
        Answer::status(200)
            .header("x-ratelimit-remaining", remaining)
            .header("x-ratelimit-reset", reset)
            .after(after)
    }));
    service.clone().oneshot(request()).await.unwrap();
    time.at(0.9).await;
    let late = tokio::spawn(service.clone().oneshot(request()));
    time.at(1.1).await;
    service.clone().oneshot(request()).await.unwrap();
    late.await.unwrap().unwrap();
    assert_times(&[time.now()], &[1.5]);
    let snapshot = limiter.snapshot();
    assert!(snapshot.pause.is_none(), "{snapshot:?}");
    assert_eq!(snapshot.windows.len(), 1);
    // The late one belongs to the old window and is not charged to the new.
    assert_eq!(snapshot.windows[0].left, Some(99));
}

#[tokio::test(start_paused = true)]
async fn a_dialect_tells_what_values_cannot() {
    // A bare number of milliseconds.
    let fields = |answer: Answer| {
        answer
            .header("gw-ratelimit-limit", 100)
            .header("gw-ratelimit-remaining", 0)
            .header("gw-ratelimit-reset", 1500)
    };
    let time = Timeline::start();
    let layer = ThrottleLayer::new(limiter(1000, 10)).dialect(Dialect::kucoin());
    let mut service = layer.layer(Origin::new(&time, move |_| fields(Answer::status(200))));
    for _ in 0..2 {
        service
            .ready()
            .await
            .unwrap()
            .call(request())
            .await
            .unwrap();
    }
    assert_times(&time.events(), &[0.0, 1.5]);
}

/// Each unreadable value is counted; the events thin out.
#[tokio::test(start_paused = true)]
async fn unreadable_fields_are_counted_by_name_in_bounded_space() {
    let limiter = limiter(1000, 1000);
    for index in 0..100 {
        limiter.reconcile(&read(200, &[("x-ratelimit-remaining", "many")]));
        let name = format!("x-ratelimit-remaining-{index}");
        limiter.reconcile(&read(200, &[(&name, "many")]));
    }
    let snapshot = limiter.snapshot();
    assert_eq!(snapshot.counters.malformed, 200);
    assert_eq!(
        snapshot.unreadable[0],
        ("x-ratelimit-remaining".into(), 100)
    );
    assert_eq!(snapshot.unreadable.len(), 32);
}

/// In flight is counted to the head of the answer, which is what a server's counts speak of. Bodies are not touched.
#[tokio::test(start_paused = true)]
async fn requests_are_in_flight_until_their_head_comes() {
    let limiter = limiter(1000, 1000);
    let time = Timeline::start();
    let service = ThrottleLayer::new(limiter.clone())
        .layer(Origin::new(&time, |_| Answer::status(204).after(1.0)));
    let answered: Vec<_> = (0..3)
        .map(|_| tokio::spawn(service.clone().oneshot(request())))
        .collect();
    let given_up = tokio::spawn(tokio::time::timeout(
        secs(0.5),
        service.clone().oneshot(request()),
    ));
    crate::support::settle().await;
    assert_eq!(limiter.snapshot().in_flight, 4);
    given_up.await.unwrap().unwrap_err();
    assert_eq!(limiter.snapshot().in_flight, 3);
    for task in answered {
        let response = task.await.unwrap().unwrap();
        assert_eq!(*response.body(), "body");
    }
    let snapshot = limiter.snapshot();
    assert_eq!(snapshot.in_flight, 0);
    assert_eq!(snapshot.counters.sent, 4, "nothing is refunded");
    tokio::time::sleep(Duration::from_millis(1)).await;
}
