use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tower::{Layer, ServiceExt};
use tower_throttle::{Adapt, Limiter, LimiterBuilder, Quota, ThrottleLayer};

use crate::support::{Answer, GRAIN, Origin, Timeline, assert_times, request, secs};

fn builder(rate: u32, burst: u32) -> LimiterBuilder {
    Limiter::builder()
        .quota("q", Quota::per_second(rate).burst(burst))
        .adapt(Adapt::Off)
}

/// Sends one request that is answered with `first`, then offers `more` at 0.1 s; returns when all left.
async fn after(
    limiter: Limiter,
    more: usize,
    first: impl Fn(Answer) -> Answer + Send + Sync + 'static,
    status: u16,
) -> Vec<Duration> {
    let time = Timeline::start();
    let service = ThrottleLayer::new(limiter).layer(Origin::new(&time, move |number| {
        if number == 0 {
            first(Answer::status(status))
        } else {
            Answer::status(200)
        }
    }));
    let response = service.clone().oneshot(request()).await.unwrap();
    assert_eq!(
        response.status().as_u16(),
        status,
        "passed through unchanged"
    );
    assert_eq!(*response.body(), "body");
    time.at(0.1).await;
    let tasks: Vec<_> = (0..more)
        .map(|_| tokio::spawn(service.clone().oneshot(request())))
        .collect();
    for task in tasks {
        let _ = task.await.unwrap();
    }
    time.events()
}

fn header(
    name: &'static str,
    value: impl ToString,
) -> impl Fn(Answer) -> Answer + Send + Sync + 'static {
    let value = value.to_string();
    move |answer| answer.header(name, &value)
}

#[tokio::test(start_paused = true)]
async fn unreadable_waits_are_no_information_and_never_zero() {
    let junk: [&[u8]; 11] = [
        b"-5",
        b"-0.0",
        b"NaN",
        b"inf",
        b"1e400",
        b"",
        b" ",
        b"+3",
        b"3 seconds",
        b"1,000",
        b"\xff\xfe\x80",
    ];
    for value in junk {
        let limiter = builder(1000, 10).max_pause(secs(60.0)).build().unwrap();
        let sent = after(
            limiter,
            1,
            move |mut answer| {
                let value = http::HeaderValue::from_bytes(value).unwrap();
                answer.response.headers_mut().insert("retry-after", value);
                answer
            },
            429,
        )
        .await;
        let text = String::from_utf8_lossy(value);
        assert!(sent[1] >= secs(1.0), "{text:?} sent at {:?}", sent[1]);
        assert!(
            sent[1] <= secs(3.0) + GRAIN,
            "{text:?} sent at {:?}",
            sent[1]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn waits_too_large_for_any_clock_are_longer_than_allowed() {
    let digits = "9".repeat(200);
    for value in ["99999999999999999999", "18446744073709551615", &digits] {
        let limiter = builder(1000, 10).max_pause(secs(60.0)).build().unwrap();
        let sent = after(limiter.clone(), 1, header("retry-after", value), 429).await;
        assert_eq!(sent.len(), 1, "{value}");
        let error = limiter.try_acquire(1).unwrap_err();
        assert!(error.is_paused());
        assert!(error.retry_after().unwrap() > secs(3600.0));
    }
}

fn date(seconds: u64) -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds))
}

const NOON: u64 = 1_593_086_400;

/// All three forms, read against the response's own clock, in whatever zone the machine is.
#[tokio::test(start_paused = true)]
async fn dates_are_read_against_the_servers_clock() {
    for form in [
        "Thu, 25 Jun 2020 12:02:00 GMT",
        "Thursday, 25-Jun-20 12:02:00 GMT",
        "Thu Jun 25 12:02:00 2020",
    ] {
        let limiter = builder(10, 1).build().unwrap();
        let answer = move |answer: Answer| {
            answer
                .header("date", date(NOON))
                .header("retry-after", form)
        };
        let sent = after(limiter, 1, answer, 429).await;
        assert_times(&sent, &[0.0, 120.0]);
    }
}

#[tokio::test(start_paused = true)]
async fn past_and_impossible_dates_back_off() {
    for form in [
        "Thu, 25 Jun 2020 11:59:50 GMT",
        "Thu, 31 Feb 2020 00:00:00 GMT",
        "-5",
    ] {
        let limiter = builder(10, 1).build().unwrap();
        let answer = move |answer: Answer| {
            answer
                .header("date", date(NOON))
                .header("retry-after", form)
        };
        let sent = after(limiter, 1, answer, 429).await;
        assert_times(&sent, &[0.0, 1.0]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_epoch_reset_does_not_depend_on_our_clock() {
    // The server's clock is 40 s behind ours, ahead, and equal.
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    for server in [now - 40, now + 40, now] {
        let answer = move |answer: Answer| {
            answer
                .header("date", date(server))
                .header("x-ratelimit-remaining", 0)
                .header("x-ratelimit-reset", server + 5)
        };
        let sent = after(builder(10, 1).build().unwrap(), 1, answer, 429).await;
        assert!(
            sent[1] >= secs(5.0) && sent[1] <= secs(6.0),
            "{:?}",
            sent[1]
        );
    }
    // Without a date, a reset that has passed by our clock still backs off.
    let answer = move |answer: Answer| {
        answer
            .header("x-ratelimit-remaining", 0)
            .header("x-ratelimit-reset", now - 35)
    };
    let sent = after(builder(10, 1).build().unwrap(), 1, answer, 429).await;
    assert!(sent[1] >= secs(1.0), "{:?}", sent[1]);
    // A relative field beats the absolute one.
    let answer = move |answer: Answer| {
        answer
            .header("x-ratelimit-remaining", 0)
            .header("x-ratelimit-reset", now - 35)
            .header("x-ratelimit-reset-after", "5.000")
    };
    let sent = after(builder(10, 1).build().unwrap(), 1, answer, 429).await;
    assert_times(&sent, &[0.0, 5.0]);
    // Dates have a grain of one second: a reset equal to the date may be almost a second away.
    let answer = move |answer: Answer| {
        answer
            .header("date", date(now))
            .header("x-ratelimit-remaining", 0)
            .header("x-ratelimit-reset", now)
    };
    let limiter = Limiter::new(Quota::per_second(10)).unwrap();
    let sent = after(limiter, 1, answer, 429).await;
    assert!(sent[1] >= secs(1.0), "{:?}", sent[1]);
}

#[tokio::test(start_paused = true)]
async fn one_field_name_with_several_units_is_told_apart() {
    const THEN: u64 = 1_372_699_626;
    for (reset, wait) in [
        ("1372700873", 1247.0),
        ("1247", 1247.0),
        ("1372700873000", 1247.0),
    ] {
        let answer = move |answer: Answer| {
            answer
                .header("date", date(THEN))
                .header("x-ratelimit-remaining", 0)
                .header("x-ratelimit-reset", reset)
        };
        let sent = after(builder(10, 1).build().unwrap(), 1, answer, 200).await;
        assert_times(&sent, &[0.0, wait]);
    }
    for (status, wait) in [(200, 0.1), (429, 1.0)] {
        let answer = move |answer: Answer| {
            answer
                .header("date", date(THEN))
                .header("x-ratelimit-remaining", 0)
                .header("x-ratelimit-reset", THEN - 1)
        };
        let sent = after(builder(10, 1).build().unwrap(), 1, answer, status).await;
        assert_times(&sent, &[0.0, wait]);
    }
    let answer = move |answer: Answer| {
        answer
            .header("date", date(THEN))
            .header("retry-after", 1_372_700_873_u64)
    };
    let sent = after(builder(10, 1).build().unwrap(), 1, answer, 429).await;
    assert_times(&sent, &[0.0, 1247.0]);
}

#[tokio::test(start_paused = true)]
async fn other_statuses_that_throttle_are_known() {
    type Fields = &'static [(&'static str, &'static str)];
    let cases: [(u16, Fields, f64); 8] = [
        (
            403,
            &[("retry-after", "60"), ("x-ratelimit-remaining", "4999")],
            60.0,
        ),
        (
            403,
            &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "25")],
            25.0,
        ),
        (403, &[], 0.1),
        (
            429,
            &[("x-ratelimit-remaining", "14"), ("x-ratelimit-reset", "25")],
            25.0,
        ),
        (503, &[("retry-after", "7")], 7.0),
        (500, &[], 0.1),
        (301, &[("retry-after", "7")], 0.1),
        (200, &[("retry-after", "7")], 0.1),
    ];
    for (status, fields, wait) in cases {
        let answer = move |answer: Answer| {
            (fields.iter()).fold(answer, |answer, (name, value)| answer.header(name, value))
        };
        let sent = after(builder(10, 1).build().unwrap(), 1, answer, status).await;
        assert_times(&sent, &[0.0, wait]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_budget_spent_on_a_success_holds_until_its_reset() {
    let answer = |answer: Answer| {
        answer
            .header("ratelimit-limit", 100)
            .header("ratelimit-remaining", 0)
            .header("ratelimit-reset", 10)
    };
    let sent = after(builder(10, 10).build().unwrap(), 5, answer, 200).await;
    assert_times(&sent, &[0.0, 10.0, 10.1, 10.2, 10.3, 10.4]);
    let answer = |answer: Answer| {
        answer
            .header("ratelimit-limit", 100)
            .header("ratelimit-remaining", 2)
            .header("ratelimit-reset", 10)
    };
    let sent = after(builder(10, 10).build().unwrap(), 5, answer, 200).await;
    assert_times(&sent[..3], &[0.0, 0.1, 0.1]);
    assert!(sent[3] >= secs(10.0), "{sent:?}");
}

#[tokio::test(start_paused = true)]
async fn the_structured_field_is_a_budget_too() {
    let sent = after(
        builder(10, 10).build().unwrap(),
        2,
        header("ratelimit", "\"default\";r=0;t=30"),
        200,
    )
    .await;
    assert_times(&sent, &[0.0, 30.0, 30.1]);
}

/// Nothing left and no time: the level is zero and refills as configured.
#[tokio::test(start_paused = true)]
async fn a_spent_budget_without_a_reset_empties_the_bucket_only() {
    let sent = after(
        builder(1, 10).build().unwrap(),
        2,
        header("x-ratelimit-remaining", 0),
        200,
    )
    .await;
    assert_times(&sent, &[0.0, 1.0, 2.0]);
}

#[tokio::test(start_paused = true)]
async fn a_zero_wait_is_no_hint() {
    let time = Timeline::start();
    let limiter = builder(100, 1).build().unwrap();
    let service = ThrottleLayer::new(limiter).layer(Origin::new(&time, |number| {
        if number < 5 {
            Answer::status(429).header("retry-after", 0)
        } else {
            Answer::status(200)
        }
    }));
    for _ in 0..6 {
        service.clone().oneshot(request()).await.unwrap();
    }
    assert_times(&time.events(), &[0.0, 1.0, 3.0, 7.0, 15.0, 31.0]);
    let zero = |answer: Answer| {
        answer
            .header("retry-after", 0)
            .header("x-ratelimit-reset-after", 36)
    };
    let sent = after(builder(100, 1).build().unwrap(), 1, zero, 429).await;
    assert_times(&sent, &[0.0, 36.0]);
    let fraction = header("retry-after", "0.493");
    let sent = after(builder(100, 1).build().unwrap(), 1, fraction, 429).await;
    assert_times(&sent, &[0.0, 0.493]);
    let sent = after(
        builder(100, 1).build().unwrap(),
        1,
        header("retry-after", 0),
        200,
    )
    .await;
    assert_times(&sent, &[0.0, 0.1]);
}

#[tokio::test(start_paused = true)]
async fn a_classifier_can_add_and_forgive_refusals() {
    let time = Timeline::start();
    let limiter = builder(10, 1).build().unwrap();
    let layer = ThrottleLayer::new(limiter).classify(|status, headers, feedback| {
        if headers.contains_key("x-overloaded") {
            feedback.refused = true;
        }
        if status == 429 {
            *feedback = tower_throttle::feedback::Feedback::default();
        }
    });
    let service = layer.layer(Origin::new(&time, |number| match number {
        0 => Answer::status(429).header("retry-after", 100),
        1 => Answer::status(200).header("x-overloaded", 1),
        _ => Answer::status(200),
    }));
    for _ in 0..3 {
        service.clone().oneshot(request()).await.unwrap();
    }
    assert_times(&time.events(), &[0.0, 0.1, 1.1]);
}

/// What remains may not count requests under way: they are counted against it until they return.
#[tokio::test(start_paused = true)]
async fn requests_under_way_count_against_what_remains() {
    let time = Timeline::start();
    let limiter = Limiter::builder()
        .quota("q", Quota::per_second(1000).burst(100))
        .spend(tower_throttle::Spend::Freely)
        .build()
        .unwrap();
    // 4 remain after the first answer; the rest are slow and say nothing.
    let service = ThrottleLayer::new(limiter).layer(Origin::new(&time, |number| {
        if number == 0 {
            Answer::status(200)
                .header("x-ratelimit-remaining", 4)
                .header("x-ratelimit-reset", 60)
        } else {
            Answer::status(200).after(1.0)
        }
    }));
    service.clone().oneshot(request()).await.unwrap();
    let tasks: Vec<_> = (0..6)
        .map(|_| tokio::spawn(service.clone().oneshot(request())))
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_times(&time.events()[..5], &[0.0; 5]);
    assert!(time.events()[5] >= secs(60.0), "{:?}", time.events());
}
