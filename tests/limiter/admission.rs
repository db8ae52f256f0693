use std::time::Duration;

use tokio::sync::Barrier;
use tower_throttle::{ErrorKind, Limiter, Quota};

use crate::support::{GRAIN, Timeline, assert_times, secs};

#[tokio::test(start_paused = true)]
async fn a_herd_released_at_once_leaves_one_by_one() {
    let limiter = Limiter::new(Quota::per_second(1)).unwrap();
    let sent = Timeline::start();
    let barrier = std::sync::Arc::new(Barrier::new(50));
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let (limiter, sent, barrier) = (limiter.clone(), sent.clone(), barrier.clone());
            tokio::spawn(async move {
                barrier.wait().await;
                limiter.acquire(1).await.unwrap();
                sent.mark();
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let due: Vec<f64> = (0..50).map(f64::from).collect();
    assert_times(&sent.events(), &due);
}

/// On five real threads and the real clock: at every instant at most `burst + rate * t` have left.
#[test]
fn a_herd_on_five_threads_never_exceeds_the_rate() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(5)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let limiter = Limiter::new(Quota::per_second(50)).unwrap();
        limiter.acquire(1).await.unwrap();
        let sent = Timeline::start();
        let tasks: Vec<_> = (0..50)
            .map(|_| {
                let (limiter, sent) = (limiter.clone(), sent.clone());
                tokio::spawn(async move {
                    limiter.acquire(1).await.unwrap();
                    sent.mark();
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let mut events = sent.events();
        events.sort();
        for (index, at) in events.iter().enumerate() {
            // The first token was taken just before the start.
            let allowed = 50.0 * (at.as_secs_f64() + 0.01) + 1.0;
            assert!((index + 1) as f64 <= allowed, "{} by {at:?}", index + 1);
        }
    });
}

#[tokio::test(start_paused = true)]
async fn the_wait_is_reported() {
    let limiter = Limiter::new(Quota::per_second(2)).unwrap();
    let first = limiter.acquire(1).await.unwrap();
    let second = limiter.acquire(1).await.unwrap();
    assert_eq!(first.waited(), Duration::ZERO);
    assert!(second.waited() >= secs(0.5) && second.waited() <= secs(0.5) + GRAIN);
    assert!(first.seq() < second.seq());
}

#[tokio::test(start_paused = true)]
async fn twenty_looping_tasks_get_equal_shares() {
    let limiter = Limiter::new(Quota::per_second(100)).unwrap();
    let end = tokio::time::Instant::now() + Duration::from_secs(5);
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let limiter = limiter.clone();
            tokio::spawn(async move {
                let mut grants = 0;
                loop {
                    limiter.acquire(1).await.unwrap();
                    if tokio::time::Instant::now() >= end {
                        return grants;
                    }
                    grants += 1;
                }
            })
        })
        .collect();
    for task in tasks {
        let grants: i32 = task.await.unwrap();
        assert!((24..=26).contains(&grants), "{grants}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_newcomer_does_not_pass_the_line() {
    let limiter = Limiter::new(Quota::per_second(1).burst(2)).unwrap();
    limiter.try_acquire(2).unwrap();
    let big = tokio::spawn({
        let limiter = limiter.clone();
        async move { limiter.acquire(2).await.unwrap().waited() }
    });
    tokio::time::sleep(secs(1.5)).await;
    // One token is there, and it is spoken for.
    let error = limiter.try_acquire(1).unwrap_err();
    assert!(error.is_wait_too_long());
    assert_times(&[big.await.unwrap()], &[2.0]);
}

/// A costly request at the head is not starved by cheap ones behind it.
#[tokio::test(start_paused = true)]
async fn a_large_cost_is_served_in_its_turn() {
    let limiter = Limiter::new(Quota::per_second(10).burst(10)).unwrap();
    for _ in 0..10 {
        limiter.try_acquire(1).unwrap();
    }
    let sent = Timeline::start();
    let big = tokio::spawn({
        let (limiter, sent) = (limiter.clone(), sent.clone());
        async move {
            limiter.acquire(10).await.unwrap();
            sent.now()
        }
    });
    let small: Vec<_> = (1..=20)
        .map(|index| {
            let (limiter, sent) = (limiter.clone(), sent.clone());
            tokio::spawn(async move {
                sent.at(0.05 * f64::from(index)).await;
                limiter.acquire(1).await.unwrap();
                sent.now()
            })
        })
        .collect();
    assert_times(&[big.await.unwrap()], &[1.0]);
    for (index, task) in small.into_iter().enumerate() {
        assert_times(&[task.await.unwrap()], &[1.1 + 0.1 * index as f64]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiter_whose_patience_ends_in_a_pause_is_told_at_once_how_long_that_lasts() {
    let limiter = Limiter::new(Quota::per_second(1)).unwrap();
    limiter.acquire(1).await.unwrap();
    let short = tokio::spawn(limiter.acquire_timeout(1, Duration::from_secs(20)));
    let long = tokio::spawn(limiter.acquire_timeout(1, Duration::from_secs(70)));
    tokio::time::sleep(Duration::from_millis(500)).await;
    limiter.penalize(Duration::from_secs(60));
    let told = tokio::time::Instant::now();
    let error = short.await.unwrap().unwrap_err();
    assert_eq!(told.elapsed(), Duration::ZERO);
    assert_eq!(error.kind(), ErrorKind::WaitTooLong);
    assert_eq!(error.retry_after(), Some(Duration::from_secs(60)));
    // As a newcomer with the same patience is.
    let newcomer = limiter.acquire_timeout(1, Duration::from_secs(20)).await;
    assert_eq!(newcomer.unwrap_err().kind(), error.kind());
    let permit = long.await.unwrap().unwrap();
    assert_eq!(permit.waited().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn whoever_gives_up_is_told_how_much_longer_it_would_have_been() {
    let limiter = Limiter::new(Quota::per_second(1).burst(4)).unwrap();
    limiter.acquire(4).await.unwrap();
    let first = tokio::spawn(limiter.acquire(1));
    tokio::task::yield_now().await;
    let second = tokio::spawn(limiter.acquire_timeout(1, Duration::from_millis(2_500)));
    tokio::task::yield_now().await;
    // The rate falls while it waits.
    limiter
        .set_quota("quota", Quota::new(1, Duration::from_secs(10)).burst(4))
        .unwrap();
    let error = second.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(
        error.retry_after().unwrap() > Duration::from_secs(10),
        "{:?}",
        error.retry_after()
    );
    first.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn nobody_is_told_a_time_while_the_application_holds_all_back() {
    let limiter = Limiter::new(Quota::per_second(1)).unwrap();
    limiter.pause();
    let error = limiter.try_acquire(1).unwrap_err();
    assert_eq!(error.retry_after(), None, "{error}");
    let error = limiter
        .acquire_timeout(1, Duration::from_secs(1))
        .await
        .unwrap_err();
    assert_eq!(error.retry_after(), None, "{error}");
}
