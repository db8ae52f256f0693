use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode};
use tower_throttle::{Adapt, Limiter, Quota, Regime, feedback};

use crate::support::{Timeline, assert_times, secs, settle};

#[tokio::test(start_paused = true)]
async fn a_pause_is_extended_and_never_shortened() {
    let limiter = Limiter::new(Quota::per_second(10).burst(10)).unwrap();
    let time = Timeline::start();
    limiter.penalize(secs(5.0));
    limiter.penalize(secs(2.0));
    assert_eq!(limiter.snapshot().regime, Regime::Paused);
    assert_eq!(limiter.snapshot().level, 0.0);
    assert_eq!(limiter.available(), 0);
    time.at(4.0).await;
    limiter.penalize(secs(3.0));
    limiter.acquire(1).await.unwrap();
    assert_times(&[time.now()], &[7.0]);
}

/// One token is there when it ends; the rest follow at the rate, in no volley, though the bucket was full before.
#[tokio::test(start_paused = true)]
async fn a_pause_ends_with_one_request_and_no_volley() {
    let limiter = Limiter::new(Quota::per_second(10).burst(50)).unwrap();
    let time = Timeline::start();
    limiter.penalize(secs(2.0));
    let mut sent = Vec::new();
    for _ in 0..5 {
        limiter.acquire(1).await.unwrap();
        sent.push(time.now());
    }
    assert_times(&sent, &[2.0, 2.1, 2.2, 2.3, 2.4]);
}

/// The pause does not add to what the rate allows: a token sent just before still counts.
#[tokio::test(start_paused = true)]
async fn a_short_pause_mints_no_token() {
    let limiter = Limiter::new(Quota::per_second(1)).unwrap();
    let time = Timeline::start();
    limiter.acquire(1).await.unwrap();
    limiter.penalize(secs(0.25));
    limiter.acquire(1).await.unwrap();
    assert_times(&[time.now()], &[1.0]);
}

#[tokio::test(start_paused = true)]
async fn an_absurd_pause_is_an_error_that_says_when_for_everybody() {
    let limiter = Limiter::builder()
        .quota("q", Quota::per_second(1))
        .max_pause(secs(60.0))
        .build()
        .unwrap();
    let time = Timeline::start();
    limiter.acquire(1).await.unwrap();
    let waiting = tokio::spawn({
        let limiter = limiter.clone();
        async move { limiter.acquire(1).await }
    });
    settle().await;
    limiter.penalize(secs(100.0));
    let error = waiting.await.unwrap().unwrap_err();
    assert!(error.is_paused());
    assert_eq!(error.retry_after(), Some(secs(100.0)));
    let error = limiter.acquire(1).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(secs(100.0)));
    assert_eq!(time.now(), Duration::ZERO);
    // As it becomes tolerable, callers wait again.
    time.at(40.0).await;
    limiter.acquire(1).await.unwrap();
    assert_times(&[time.now()], &[100.0]);
}

#[tokio::test(start_paused = true)]
async fn a_cost_of_zero_waits_out_a_pause_too() {
    let limiter = Limiter::new(Quota::per_second(1)).unwrap();
    let time = Timeline::start();
    limiter.penalize(secs(3.0));
    limiter.acquire(0).await.unwrap();
    assert_times(&[time.now()], &[3.0]);
}

/// Everything that might be a side door: clones made and dropped, layers remade, wakes by hand, other callers cancelled.
#[tokio::test(start_paused = true)]
async fn nothing_opens_a_pause_early() {
    let limiter = Limiter::new(Quota::per_second(10).burst(10)).unwrap();
    let time = Timeline::start();
    limiter.penalize(secs(60.0));
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let (limiter, time) = (limiter.clone(), time.clone());
            tokio::spawn(async move {
                let mut acquire = std::pin::pin!(limiter.acquire(1));
                let mut nudge = tokio::time::interval(secs(1.0));
                loop {
                    tokio::select! {
                        permit = &mut acquire => break permit.map(|_| time.mark()),
                        _ = nudge.tick() => {}
                    }
                }
            })
        })
        .collect();
    for second in 1..59 {
        time.at(f64::from(second)).await;
        let clones = vec![limiter.clone(); 100];
        drop(clones);
        let layer = tower_throttle::ThrottleLayer::new(limiter.clone());
        drop(layer);
        drop(crate::support::poll_once(limiter.acquire(1)));
        assert!(limiter.try_acquire(1).is_err());
        limiter.penalize(secs(0.5));
        limiter.reconcile(&feedback::read(
            StatusCode::OK,
            &HeaderMap::new(),
            SystemTime::now(),
        ));
    }
    assert_eq!(time.count(), 0);
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    let due: Vec<f64> = (0..50).map(|index| 60.0 + 0.1 * f64::from(index)).collect();
    assert_times(&time.events(), &due);
}

/// A slower rate learned from refusals lives in the shared state, and one flight cuts it once, also without the layer.
#[tokio::test(start_paused = true)]
async fn many_refusals_of_one_flight_cut_once() {
    let limiter = Limiter::builder()
        .quota("q", Quota::per_second(10).burst(10))
        .adapt(Adapt::On)
        .build()
        .unwrap();
    let refusal = feedback::read(
        StatusCode::TOO_MANY_REQUESTS,
        &HeaderMap::new(),
        SystemTime::now(),
    );
    let mut permits = Vec::new();
    for _ in 0..9 {
        permits.push(limiter.acquire(1).await.unwrap());
    }
    for permit in &permits {
        limiter.answered(permit, &refusal);
    }
    assert_eq!(limiter.snapshot().in_flight, 0);
    assert_eq!(limiter.clone().snapshot().rate, 5.0);
    assert_eq!(limiter.snapshot().configured_rate, 10.0);
}
