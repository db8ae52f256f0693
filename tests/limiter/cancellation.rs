use tower_throttle::{Limiter, Quota};

use crate::support::{Timeline, assert_times, poll_once, settle};

#[tokio::test(start_paused = true)]
async fn a_live_request_does_not_wait_for_dead_ones() {
    let limiter = Limiter::new(Quota::per_second(1)).unwrap();
    let time = Timeline::start();
    limiter.acquire(1).await.unwrap();
    let dead: Vec<_> = (0..6).map(|_| poll_once(limiter.acquire(1)).0).collect();
    time.at(0.2).await;
    drop(dead);
    time.at(0.3).await;
    limiter.acquire(1).await.unwrap();
    assert_times(&[time.now()], &[1.0]);
}

#[tokio::test(start_paused = true)]
async fn dropping_a_costly_head_frees_the_next_in_the_same_instant() {
    let limiter = Limiter::new(Quota::per_second(10).burst(20)).unwrap();
    let time = Timeline::start();
    limiter.acquire(15).await.unwrap();
    time.at(0.1).await;
    let (costly, _) = poll_once(limiter.acquire(10));
    time.at(0.2).await;
    let cheap = tokio::spawn({
        let (limiter, time) = (limiter.clone(), time.clone());
        async move {
            limiter.acquire(2).await.unwrap();
            time.now()
        }
    });
    time.at(0.3).await;
    settle().await;
    assert_eq!(limiter.snapshot().queue_len, 2);
    drop(costly);
    assert_eq!(limiter.snapshot().queue_len, 0);
    // 5 left at 0, 3 more since; what the cheap one takes is already set aside.
    let level = limiter.snapshot().level;
    assert!((level - 6.0).abs() < 0.021, "{level}");
    assert_times(&[cheap.await.unwrap()], &[0.3]);
}

#[tokio::test(start_paused = true)]
async fn callers_that_give_up_leave_no_debt() {
    let limiter = Limiter::builder()
        .quota("q", Quota::per_second(1).burst(5))
        .max_wait(std::time::Duration::ZERO)
        .build()
        .unwrap();
    let mut sent = 0;
    let mut refused = 0;
    for _ in 0..2000 {
        match limiter.acquire(1).await {
            Ok(_) => sent += 1,
            Err(error) => {
                assert!(error.is_wait_too_long());
                refused += 1;
            }
        }
    }
    assert_eq!((sent, refused), (5, 1995));
    assert_eq!(limiter.snapshot().level, 0.0);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    limiter.acquire(1).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn two_thousand_dropped_waiters_cost_nothing() {
    let limiter = Limiter::new(Quota::per_second(1).burst(5)).unwrap();
    let time = Timeline::start();
    let (mut sent, mut waiting) = (0, Vec::new());
    for _ in 0..2000 {
        match poll_once(limiter.acquire(1)) {
            (_, std::task::Poll::Ready(permit)) => {
                let _ = permit.unwrap();
                sent += 1;
            }
            (future, _) => waiting.push(future),
        }
    }
    assert_eq!((sent, waiting.len()), (5, 1995));
    time.at(0.5).await;
    drop(waiting);
    limiter.acquire(1).await.unwrap();
    assert_times(&[time.now()], &[1.0]);
}

/// Refusals and unused reservations at one frozen instant, a million times: no drift.
#[tokio::test(start_paused = true)]
async fn refusals_and_returned_reservations_do_not_drift() {
    let limiter = Limiter::new(Quota::per_minute(3600).burst(3)).unwrap();
    limiter.try_acquire(2).unwrap();
    assert_eq!(limiter.snapshot().level, 1.0);
    for _ in 0..1_000_000 {
        assert!(limiter.try_acquire(3).is_err());
        drop(limiter.acquire(1));
    }
    for _ in 0..1000 {
        let mut service = tower::ServiceBuilder::new()
            .layer(tower_throttle::ThrottleLayer::new(limiter.clone()))
            .service(crate::support::Origin::ok(&Timeline::start()));
        let ready = std::future::poll_fn(|cx| {
            tower::Service::<crate::support::Request>::poll_ready(&mut service, cx)
        });
        assert!(
            poll_once(ready).1.is_ready(),
            "the token is there each time"
        );
    }
    assert_eq!(limiter.snapshot().level, 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_future_whose_deadline_has_passed_takes_nothing() {
    let limiter = Limiter::new(Quota::per_second(1).burst(2)).unwrap();
    drop(limiter.acquire_timeout(1, std::time::Duration::ZERO));
    assert_eq!(limiter.snapshot().level, 2.0);
    limiter.try_acquire(2).unwrap();
    let (future, poll) = poll_once(limiter.acquire_timeout(1, std::time::Duration::ZERO));
    assert!(matches!(poll, std::task::Poll::Ready(Err(error)) if error.is_wait_too_long()));
    drop(future);
    assert_eq!(limiter.snapshot().level, 0.0);
    assert_eq!(limiter.snapshot().queue_len, 0);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_head_does_not_set_the_need() {
    let limiter = Limiter::new(Quota::per_second(1).burst(2)).unwrap();
    let time = Timeline::start();
    limiter.acquire(2).await.unwrap();
    let (head, _) = poll_once(limiter.acquire(2));
    time.at(0.5).await;
    drop(head);
    time.at(0.6).await;
    limiter.acquire(1).await.unwrap();
    assert_times(&[time.now()], &[1.0]);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_waiter_gives_its_queue_slot_back() {
    let limiter = Limiter::builder()
        .quota("q", Quota::per_second(1))
        .max_queue(1)
        .build()
        .unwrap();
    limiter.acquire(1).await.unwrap();
    let (first, _) = poll_once(limiter.acquire(1));
    assert!(limiter.acquire(1).await.unwrap_err().is_queue_full());
    drop(first);
    limiter.acquire(1).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn racing_queue_and_drop_leave_no_waiter_behind() {
    let limiter = Limiter::builder()
        .quota("q", Quota::per_second(1))
        .max_queue(4)
        .build()
        .unwrap();
    limiter.try_acquire(1).unwrap();
    let tasks: Vec<_> = (0..1000)
        .map(|index| {
            let limiter = limiter.clone();
            tokio::spawn(async move {
                let patience = std::time::Duration::from_micros(index % 7 * 50);
                let _ = tokio::time::timeout(patience, limiter.acquire(1)).await;
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(limiter.snapshot().queue_len, 0);
    assert_eq!(limiter.snapshot().held, 0);
}

/// A waiter that was granted but not polled before it is dropped gives its tokens to the next.
#[tokio::test(start_paused = true)]
async fn a_grant_that_is_never_collected_goes_back() {
    let limiter = Limiter::new(Quota::per_second(1)).unwrap();
    let time = Timeline::start();
    limiter.acquire(1).await.unwrap();
    let (parked, _) = poll_once(limiter.acquire(1));
    time.at(1.0).await;
    assert_eq!(limiter.snapshot().held, 1);
    let next = tokio::spawn({
        let (limiter, time) = (limiter.clone(), time.clone());
        async move {
            limiter.acquire(1).await.unwrap();
            time.now()
        }
    });
    time.at(1.005).await;
    drop(parked);
    assert_times(&[next.await.unwrap()], &[1.005]);
}
