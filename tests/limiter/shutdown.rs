use std::time::{Duration, Instant};

use tower_throttle::{Limiter, Quota};

use crate::support::{poll_once, secs};

fn paused() -> Limiter {
    let limiter = Limiter::new(Quota::per_second(1)).unwrap();
    limiter.penalize(secs(3600.0));
    limiter
}

#[tokio::test(start_paused = true)]
async fn closing_ends_all_waits_with_an_error() {
    let limiter = paused();
    let time = crate::support::Timeline::start();
    let tasks: Vec<_> = (0..100)
        .map(|_| {
            let limiter = limiter.clone();
            tokio::spawn(async move { limiter.acquire(1).await.unwrap_err() })
        })
        .collect();
    time.at(1.0).await;
    assert_eq!(limiter.snapshot().queue_len, 100);
    limiter.close();
    for task in tasks {
        assert!(task.await.unwrap().is_closed());
    }
    assert!(time.now() <= secs(1.01));
    assert!(limiter.acquire(1).await.unwrap_err().is_closed());
    assert!(limiter.try_acquire(1).unwrap_err().is_closed());
}

#[tokio::test(start_paused = true)]
async fn dropping_everything_leaves_no_task_behind() {
    let before = tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks();
    let limiter = paused();
    let waiters: Vec<_> = (0..100).map(|_| poll_once(limiter.acquire(1)).0).collect();
    let during = tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks();
    drop(limiter);
    drop(waiters);
    assert_eq!(before, during, "there is no background task");
}

#[test]
fn a_runtime_shuts_down_inside_its_grace() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let limiter = paused();
    for _ in 0..100 {
        let limiter = limiter.clone();
        runtime.spawn(async move { limiter.acquire(1).await });
    }
    let start = Instant::now();
    runtime.shutdown_timeout(Duration::from_secs(1));
    assert!(start.elapsed() < secs(1.0), "{:?}", start.elapsed());
    assert_eq!(limiter.snapshot().queue_len, 0);
}
