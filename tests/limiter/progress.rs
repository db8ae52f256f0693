use std::time::{Duration, Instant};

use tower_throttle::{Limiter, Quota};

use crate::support::{Timeline, assert_times, poll_once, secs, settle};

#[tokio::test(start_paused = true)]
async fn joined_acquires_in_one_task_all_progress() {
    let limiter = Limiter::new(Quota::per_second(1)).unwrap();
    let time = Timeline::start();
    let one = || async {
        limiter.acquire(1).await.unwrap();
        time.now()
    };
    let (a, b, c) = tokio::join!(one(), one(), one());
    assert_times(&[a, b, c], &[0.0, 1.0, 2.0]);
}

#[tokio::test(start_paused = true)]
async fn a_parked_waiter_holds_at_most_one_token() {
    let limiter = Limiter::new(Quota::per_second(1)).unwrap();
    let time = Timeline::start();
    limiter.acquire(1).await.unwrap();
    let parked = poll_once(limiter.acquire(1)).0;
    let tasks: Vec<_> = (0..2)
        .map(|_| {
            let (limiter, time) = (limiter.clone(), time.clone());
            tokio::spawn(async move {
                limiter.acquire(1).await.unwrap();
                time.now()
            })
        })
        .collect();
    let mut served = Vec::new();
    for task in tasks {
        served.push(task.await.unwrap());
    }
    assert_times(&served, &[2.0, 3.0]);
    drop(parked);
}

/// Those behind a parked waiter learn that somebody between has left.
#[tokio::test(start_paused = true)]
async fn leaving_moves_everybody_up_even_behind_parked_waiters() {
    let limiter = Limiter::new(Quota::per_second(1)).unwrap();
    let time = Timeline::start();
    limiter.acquire(1).await.unwrap();
    let first = poll_once(limiter.acquire(1)).0;
    let second = poll_once(limiter.acquire(1)).0;
    let parked: Vec<_> = (0..3).map(|_| poll_once(limiter.acquire(1)).0).collect();
    let last = tokio::spawn({
        let (limiter, time) = (limiter.clone(), time.clone());
        async move {
            limiter.acquire(1).await.unwrap();
            time.now()
        }
    });
    settle().await;
    time.at(0.5).await;
    drop((first, second));
    assert_times(&[last.await.unwrap()], &[4.0]);
    drop(parked);
}

#[test]
fn the_path_without_waiting_is_not_wedged_by_threads() {
    let limiter = Limiter::new(Quota::per_second(1)).unwrap();
    let start = Instant::now();
    let granted: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    (0..100_000)
                        .filter(|_| limiter.try_acquire(1).is_ok())
                        .count()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert!(granted as f64 <= 1.0 + start.elapsed().as_secs_f64());
    std::thread::sleep(Duration::from_secs(1));
    limiter.try_acquire(1).unwrap();
}

/// A waiter that asks at every step of the clock, however fine, is served when its time has come.
#[tokio::test(start_paused = true)]
async fn frequent_polling_does_not_starve_the_refill() {
    let limiter = Limiter::new(Quota::per_second(1)).unwrap();
    limiter.acquire(1).await.unwrap();
    for _ in 0..10_000 {
        assert!(limiter.try_acquire(1).is_err());
        tokio::time::advance(Duration::from_nanos(99_999)).await;
    }
    tokio::time::advance(Duration::from_nanos(10_000)).await;
    limiter.try_acquire(1).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_waiters_leave_in_order() {
    let limiter = Limiter::new(Quota::per_second(1_000_000)).unwrap();
    limiter.acquire(1).await.unwrap();
    let time = Timeline::start();
    let tasks: Vec<_> = (0..100_000_u64)
        .map(|_| {
            let limiter = limiter.clone();
            tokio::spawn(async move { limiter.acquire(1).await.unwrap().seq() })
        })
        .collect();
    let mut last = 0;
    for task in tasks {
        let seq = task.await.unwrap();
        assert!(seq > last);
        last = seq;
    }
    assert!(
        time.now() >= secs(0.1) && time.now() <= secs(0.105),
        "{:?}",
        time.now()
    );
}
