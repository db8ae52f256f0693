//! The checks of the Grants.gov guide by name, and the errors it calls common, each shown impossible or answered clearly.

use std::time::Duration;

use tower::{Layer, Service, ServiceExt};
use tower_throttle::{Limiter, Quota, ThrottleLayer};

use crate::support::{Answer, GRAIN, Origin, Timeline, assert_times, request, secs};

#[tokio::test(start_paused = true)]
async fn sustained_rate_is_capped() {
    let limiter = Limiter::new(Quota::per_second(10).burst(5)).unwrap();
    let time = Timeline::start();
    let service = ThrottleLayer::new(limiter).layer(Origin::ok(&time));
    let tasks: Vec<_> = (0..105)
        .map(|_| tokio::spawn(service.clone().oneshot(request())))
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    let events = time.events();
    for (first, &from) in events.iter().enumerate() {
        for (last, &to) in events.iter().enumerate().skip(first) {
            let allowed = 5.0 + 10.0 * ((to - from).as_secs_f64() + 0.01);
            assert!((last - first + 1) as f64 <= allowed);
        }
    }
    assert_times(&events[104..], &[10.0]);
}

#[tokio::test(start_paused = true)]
async fn burst_is_free_up_to_capacity() {
    let limiter = Limiter::new(Quota::per_second(1).burst(5)).unwrap();
    let time = Timeline::start();
    for _ in 0..6 {
        limiter.acquire(1).await.unwrap();
        time.mark();
    }
    assert_times(&time.events(), &[0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
}

#[tokio::test(start_paused = true)]
async fn a_429_defers_the_next_dispatch() {
    let limiter = Limiter::new(Quota::per_second(100).burst(100)).unwrap();
    let time = Timeline::start();
    let mut service = ThrottleLayer::new(limiter).layer(Origin::new(&time, |number| {
        if number == 0 {
            Answer::status(429).header("retry-after", 3)
        } else {
            Answer::status(200)
        }
    }));
    for _ in 0..2 {
        service
            .ready()
            .await
            .unwrap()
            .call(request())
            .await
            .unwrap();
    }
    assert_times(&time.events(), &[0.0, 3.0]);
}

/// A server that praises itself (a huge limit, much remaining) does not raise the rate; one that reports little slows us.
#[tokio::test(start_paused = true)]
async fn server_headers_only_slow_you_down() {
    for (remaining, last) in [(1_000_000, 2.0), (2, 10.0)] {
        let limiter = Limiter::new(Quota::per_second(1)).unwrap();
        let time = Timeline::start();
        let mut service =
            ThrottleLayer::new(limiter.clone()).layer(Origin::new(&time, move |_| {
                Answer::status(200)
                    .header("x-ratelimit-limit", 1_000_000)
                    .header("x-ratelimit-remaining", remaining)
                    .header("x-ratelimit-reset", 10)
            }));
        for _ in 0..3 {
            service
                .ready()
                .await
                .unwrap()
                .call(request())
                .await
                .unwrap();
            assert!(limiter.snapshot().rate <= 1.0);
        }
        let at = time.events()[2];
        assert!(at >= secs(last), "{at:?}");
    }
}

// The common errors.

/// "The wall clock was stepped": there is no wall clock in the bucket. A server whose dates jump by a year either way changes nothing.
#[tokio::test(start_paused = true)]
async fn common_error_wall_clock_steps_do_not_reach_the_bucket() {
    let limiter = Limiter::new(Quota::per_second(1)).unwrap();
    let time = Timeline::start();
    let service = ThrottleLayer::new(limiter).layer(Origin::new(&time, |number| {
        let date = if number % 2 == 0 {
            "Mon, 01 Jan 2001 00:00:00 GMT"
        } else {
            "Fri, 01 Jan 2055 00:00:00 GMT"
        };
        Answer::status(200).header("date", date)
    }));
    for _ in 0..5 {
        service.clone().oneshot(request()).await.unwrap();
    }
    assert_times(&time.events(), &[0.0, 1.0, 2.0, 3.0, 4.0]);
}

/// "A bucket per task": clones share; there is no way to make a task-local one by accident from a layer.
#[tokio::test(start_paused = true)]
async fn common_error_one_bucket_per_task_cannot_happen() {
    let layer = ThrottleLayer::new(Limiter::new(Quota::per_second(1)).unwrap());
    let time = Timeline::start();
    let tasks: Vec<_> = (0..5)
        .map(|_| tokio::spawn(layer.layer(Origin::ok(&time)).oneshot(request())))
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_times(&time.events(), &[0.0, 1.0, 2.0, 3.0, 4.0]);
}

/// "The lock is held while sleeping": others act on the limiter while one waits.
#[tokio::test(start_paused = true)]
async fn common_error_no_lock_is_held_while_waiting() {
    let limiter = Limiter::new(Quota::per_second(1)).unwrap();
    limiter.acquire(1).await.unwrap();
    let waiting = tokio::spawn({
        let limiter = limiter.clone();
        async move { limiter.acquire(1).await.unwrap().waited() }
    });
    crate::support::settle().await;
    assert_eq!(limiter.snapshot().queue_len, 1);
    assert!(limiter.try_acquire(1).is_err());
    let waited = waiting.await.unwrap();
    assert!(waited >= secs(1.0) && waited <= secs(1.0) + GRAIN);
}

/// "A cost above the capacity waits for ever": it is an error at once.
#[tokio::test(start_paused = true)]
async fn common_error_a_cost_above_capacity_does_not_hang() {
    let limiter = Limiter::new(Quota::per_second(1).burst(3)).unwrap();
    let error = tokio::time::timeout(Duration::from_millis(1), limiter.acquire(4))
        .await
        .unwrap()
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "throttle can never meet a cost of 4: its burst is 3"
    );
}

/// "`Retry-After` is a date and the parser wants digits": it is read.
#[tokio::test(start_paused = true)]
async fn common_error_retry_after_as_a_date_is_read() {
    let time = Timeline::start();
    let limiter = Limiter::new(Quota::per_second(10)).unwrap();
    let service = ThrottleLayer::new(limiter).layer(Origin::new(&time, |number| {
        if number == 0 {
            Answer::status(429)
                .header("date", "Thu, 25 Jun 2020 12:00:00 GMT")
                .header("retry-after", "Thu, 25 Jun 2020 12:00:30 GMT")
        } else {
            Answer::status(200)
        }
    }));
    for _ in 0..2 {
        service.clone().oneshot(request()).await.unwrap();
    }
    assert_times(&time.events(), &[0.0, 30.0]);
}
