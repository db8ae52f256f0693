use std::time::Duration;

use tower_throttle::{Limiter, Quota};

use crate::support::{Timeline, assert_times, secs};

#[tokio::test(start_paused = true)]
async fn more_waiters_than_allowed_are_refused_at_once() {
    let limiter = Limiter::builder()
        .quota("q", Quota::per_second(10).burst(3))
        .max_queue(5)
        .build()
        .unwrap();
    let time = Timeline::start();
    let tasks: Vec<_> = (0..10)
        .map(|_| {
            let (limiter, time) = (limiter.clone(), time.clone());
            tokio::spawn(async move {
                let result = limiter.acquire(1).await;
                (time.now(), result)
            })
        })
        .collect();
    let (mut sent, mut refused) = (Vec::new(), Vec::new());
    for task in tasks {
        match task.await.unwrap() {
            (at, Ok(_)) => sent.push(at),
            (at, Err(error)) => {
                assert!(error.is_queue_full());
                let wait = error.retry_after().unwrap();
                assert!(wait > secs(0.5) && wait <= secs(0.6), "{wait:?}");
                refused.push(at);
            }
        }
    }
    assert_times(&sent, &[0.0, 0.0, 0.0, 0.1, 0.2, 0.3, 0.4, 0.5]);
    assert_eq!(refused, [Duration::ZERO; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_projected_wait_above_the_bound_is_refused_at_once() {
    let limiter = Limiter::builder()
        .quota("q", Quota::per_second(1))
        .max_wait(secs(2.0))
        .build()
        .unwrap();
    let time = Timeline::start();
    let tasks: Vec<_> = (0..5)
        .map(|_| {
            let (limiter, time) = (limiter.clone(), time.clone());
            tokio::spawn(async move {
                let result = limiter.acquire(1).await;
                (time.now(), result)
            })
        })
        .collect();
    let (mut sent, mut refused) = (Vec::new(), Vec::new());
    for task in tasks {
        match task.await.unwrap() {
            (at, Ok(_)) => sent.push(at),
            (at, Err(error)) => {
                assert!(error.is_wait_too_long());
                assert_eq!(error.retry_after(), Some(secs(3.0)));
                refused.push(at);
            }
        }
    }
    assert_times(&sent, &[0.0, 1.0, 2.0]);
    assert_eq!(refused, [Duration::ZERO; 2]);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_refuses_at_once_what_it_cannot_reach() {
    let limiter = Limiter::new(Quota::per_second(1)).unwrap();
    limiter.acquire(1).await.unwrap();
    let time = Timeline::start();
    let error = limiter.acquire_timeout(1, secs(0.5)).await.unwrap_err();
    assert!(error.is_wait_too_long());
    assert_eq!(error.retry_after(), Some(secs(1.0)));
    assert_eq!(time.now(), Duration::ZERO);
    limiter.acquire_timeout(1, secs(1.0)).await.unwrap();
    assert_times(&[time.now()], &[1.0]);
}

/// The wait was to be 1 s, a lower rate made it longer: the caller hears at its deadline, and leaves nothing behind.
#[tokio::test(start_paused = true)]
async fn a_timeout_ends_a_wait_that_became_longer() {
    let limiter = Limiter::new(Quota::per_second(1)).unwrap();
    limiter.acquire(1).await.unwrap();
    let time = Timeline::start();
    let waiting = tokio::spawn({
        let (limiter, time) = (limiter.clone(), time.clone());
        async move {
            let error = limiter.acquire_timeout(1, secs(2.0)).await.unwrap_err();
            (time.now(), error)
        }
    });
    time.at(0.5).await;
    (limiter.set_quota("quota", Quota::new(1, secs(10.0)))).unwrap();
    let (at, error) = waiting.await.unwrap();
    assert!(error.is_timeout());
    assert_times(&[at], &[2.0]);
    assert_eq!(limiter.snapshot().queue_len, 0);
}

#[tokio::test(start_paused = true)]
async fn a_cost_that_can_never_be_met_fails_at_once_and_says_why() {
    let limiter = Limiter::new(Quota::per_second(10).burst(10)).unwrap();
    let time = Timeline::start();
    for cost in [11, u32::MAX] {
        let error = limiter.acquire(cost).await.unwrap_err();
        assert!(error.is_too_expensive());
        let text = error.to_string();
        assert!(
            text.contains(&cost.to_string()) && text.contains("10"),
            "{text}"
        );
    }
    limiter.acquire(10).await.unwrap();
    limiter.acquire(0).await.unwrap();
    assert_eq!(time.now(), Duration::ZERO);
    assert_eq!(limiter.snapshot().level, 0.0);
}
