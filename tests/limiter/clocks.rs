use std::time::{Duration, Instant};

use tower_throttle::{Limiter, Quota};

use crate::support::{Timeline, assert_times, secs, settle};

#[tokio::test(start_paused = true)]
async fn the_paused_clock_drives_everything() {
    let real = Instant::now();
    let limiter = Limiter::new(Quota::per_second(1)).unwrap();
    let time = Timeline::start();
    for _ in 0..10 {
        limiter.acquire(1).await.unwrap();
    }
    assert_times(&[time.now()], &[9.0]);
    limiter.penalize(secs(3600.0));
    limiter.acquire(1).await.unwrap();
    assert_times(&[time.now()], &[3609.0]);
    assert!(real.elapsed() < secs(1.0), "no real time passes");
}

#[tokio::test(start_paused = true)]
async fn an_advanced_clock_refills_the_bucket() {
    let limiter = Limiter::new(Quota::per_second(1).burst(100)).unwrap();
    limiter.try_acquire(100).unwrap();
    tokio::time::advance(secs(30.0)).await;
    assert_eq!(limiter.snapshot().level, 30.0);
}

#[tokio::test(start_paused = true)]
async fn waiting_needs_few_polls() {
    let limiter = Limiter::new(Quota::per_second(1)).unwrap();
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let limiter = limiter.clone();
            tokio::spawn(async move {
                let mut acquire = std::pin::pin!(limiter.acquire(1));
                let mut polls = 0;
                std::future::poll_fn(|cx| {
                    polls += 1;
                    acquire.as_mut().poll(cx)
                })
                .await
                .unwrap();
                polls
            })
        })
        .collect();
    for task in tasks {
        let polls: u32 = task.await.unwrap();
        assert!(polls <= 3, "{polls}");
    }
}

/// A 60 s stall at 1/s with burst 1 releases one request, not sixty.
#[tokio::test(start_paused = true)]
async fn nothing_is_caught_up_after_a_stall() {
    let limiter = Limiter::new(Quota::per_second(1)).unwrap();
    limiter.acquire(1).await.unwrap();
    let time = Timeline::start();
    let tasks: Vec<_> = (0..5)
        .map(|index| {
            let (limiter, time) = (limiter.clone(), time.clone());
            tokio::spawn(async move {
                limiter.acquire(1).await.unwrap();
                (time.mark(), index)
            })
        })
        .collect();
    settle().await;
    // One long step of the clock, in which no timer runs.
    tokio::time::advance(secs(60.0)).await;
    let mut served = Vec::new();
    for task in tasks {
        served.push(task.await.unwrap());
    }
    let (at, order): (Vec<_>, Vec<_>) = served.into_iter().unzip();
    assert_eq!(order, [0, 1, 2, 3, 4]);
    assert_times(&at, &[60.0, 61.0, 62.0, 63.0, 64.0]);
}

/// Real clock: lateness of timers does not add up.
#[tokio::test]
async fn late_timers_lose_no_tokens() {
    for (rate, requests) in [(50, 100_u32), (1000, 1000)] {
        let limiter = Limiter::new(Quota::per_second(rate)).unwrap();
        limiter.acquire(1).await.unwrap();
        let start = Instant::now();
        for _ in 0..requests {
            limiter.acquire(1).await.unwrap();
        }
        let due = f64::from(requests) / f64::from(rate);
        let took = start.elapsed().as_secs_f64();
        // A busy machine may be late now and then by more than the slack; a lost period each time would be 1.5 or 2 times as long.
        assert!(took >= due - 0.011, "{took} for {due}");
        assert!(took <= due * 1.25 + 0.1, "{took} for {due}");
    }
}

/// Real clock: a period far below the timer's grain neither stalls nor caps the rate at the grain.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_a_second_are_reached_on_millisecond_timers() {
    for burst in [1, 20] {
        let limiter = Limiter::new(Quota::per_second(10_000).burst(burst)).unwrap();
        let start = Instant::now();
        let tasks: Vec<_> = (0..64)
            .map(|_| {
                let limiter = limiter.clone();
                tokio::spawn(async move {
                    for _ in 0..100 {
                        limiter.acquire(1).await.unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let took = start.elapsed().as_secs_f64();
        assert!(took >= 0.63, "{took}");
        assert!(took <= 1.3, "{took}");
    }
}

/// No waiting: attempts exactly one period apart by the limiter's clock all succeed.
#[tokio::test(start_paused = true)]
async fn attempts_one_period_apart_all_succeed() {
    let limiter = Limiter::new(Quota::per_second(10)).unwrap();
    for _ in 0..10 {
        limiter.try_acquire(1).unwrap();
        tokio::time::advance(Duration::from_millis(100)).await;
    }
}

#[test]
fn a_limiter_is_built_and_tried_without_a_runtime_and_moves_between_runtimes() {
    let limiter = Limiter::new(Quota::per_second(1000)).unwrap();
    limiter.try_acquire(1).unwrap();
    for _ in 0..3 {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(async {
            for _ in 0..5 {
                limiter.acquire(1).await.unwrap();
            }
            // Leave a waiter behind when the runtime ends.
            let limiter = limiter.clone();
            tokio::spawn(async move {
                limiter.penalize(Duration::from_millis(20));
                limiter.acquire(1).await
            });
            tokio::task::yield_now().await;
        });
        drop(runtime);
        assert_eq!(limiter.snapshot().queue_len, 0);
    }
}

/// The clock that waits are counted by stands still while a machine sleeps, and the day's clock is not asked: a pause is seen out by the
/// former, and nothing is caught up with at its end.
#[tokio::test(start_paused = true)]
async fn a_machine_that_slept_sees_its_pause_out_and_sends_no_volley() {
    let limiter = Limiter::new(Quota::per_second(10).burst(10)).unwrap();
    let sent = Timeline::start();
    limiter.penalize(secs(3_600.0));
    sent.at(60.0).await;
    for _ in 0..20 {
        let (limiter, sent) = (limiter.clone(), sent.clone());
        tokio::spawn(async move {
            limiter.acquire(1).await.unwrap();
            sent.mark();
        });
    }
    sent.at(3_700.0).await;
    let due: Vec<f64> = (0..20)
        .map(|turn| 3_600.0 + 0.1 * f64::from(turn))
        .collect();
    assert_times(&sent.events(), &due);
}
