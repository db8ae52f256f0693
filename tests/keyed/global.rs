use std::time::SystemTime;

use http::{HeaderMap, StatusCode};
use tower_throttle::{KeyedLimiter, Limiter, Quota, feedback::read};

use crate::support::{GRAIN, Timeline, assert_times, poll_once, secs, settle};

fn both(key: Quota, global: Quota) -> (KeyedLimiter<u32>, Limiter) {
    let global = Limiter::new(global).unwrap();
    let limiter = KeyedLimiter::builder()
        .quota(key)
        .global(global.clone())
        .build()
        .unwrap();
    (limiter, global)
}

/// C41: refusals by the key take nothing from the global budget, nor the other way round.
#[tokio::test(start_paused = true)]
async fn c41_a_refused_try_takes_nothing_from_either() {
    // A key with a limiter of its own, and one that is but a few words.
    for at_rest in [false, true] {
        let quota = Quota::per_second(2).burst(2);
        let (limiter, global) = both(quota, Quota::per_minute(100).burst(100));
        // The server says so, so the key is empty and the global bucket is full.
        let mut headers = HeaderMap::new();
        headers.insert("x-ratelimit-remaining", "0".parse().unwrap());
        limiter.reconcile(&0, &read(StatusCode::OK, &headers, SystemTime::now()));
        if at_rest {
            assert_eq!(limiter.sweep(), 0);
        }
        let refused = (0..1000)
            .filter(|_| limiter.try_acquire(&0, 1).is_err())
            .count();
        assert_eq!(refused, 1000);
        assert_eq!(global.snapshot().level, 100.0);
        let admitted = (0..100)
            .filter(|n| limiter.try_acquire(&(1 + n % 50), 1).is_ok())
            .count();
        assert_eq!(admitted, 100);
        assert_eq!(global.snapshot().level, 0.0);
        for _ in 0..3 {
            assert!(limiter.try_acquire(&60, 1).is_err());
            if !at_rest {
                assert_eq!(limiter.snapshot_of(&60).unwrap().level, 2.0);
            }
        }
        assert_eq!(limiter.snapshot_of(&60).unwrap().level, 2.0);
        assert_eq!(global.snapshot().counters.sent, 100);
    }
}

/// C41, waiting: the waiter holds nothing global while it waits for its key, then takes one of each at once.
#[tokio::test(start_paused = true)]
async fn c41_a_waiter_takes_one_of_each_at_the_same_instant() {
    let (limiter, global) = both(
        Quota::per_second(2).burst(2),
        Quota::per_minute(100).burst(100),
    );
    let time = Timeline::start();
    limiter.acquire(&0, 2).await.unwrap();
    let waiter = tokio::spawn({
        let (limiter, time) = (limiter.clone(), time.clone());
        async move {
            limiter.acquire(&0, 1).await.unwrap();
            time.now()
        }
    });
    settle().await;
    for other in 1..=98 {
        limiter.try_acquire(&other, 1).unwrap();
    }
    assert!(limiter.try_acquire(&99, 1).is_err());
    time.at(0.4).await;
    let snapshot = global.snapshot();
    assert_eq!((snapshot.held, snapshot.queue_len), (0, 0));
    // Nothing is left but what has come since.
    assert!(snapshot.level < 0.7, "{}", snapshot.level);
    // Two a second for the key at 0.5, but the global budget has the next at 0.6.
    assert_times(&[waiter.await.unwrap()], &[0.6]);
    assert_eq!(limiter.snapshot_of(&0).unwrap().held, 0);
    assert_eq!(global.snapshot().counters.sent, 100);
}

/// The wait for the global limiter counts, too.
#[tokio::test(start_paused = true)]
async fn the_wait_is_that_for_both() {
    let (limiter, global) = both(Quota::per_second(10), Quota::per_second(1));
    limiter.acquire(&0, 1).await.unwrap();
    let permit = limiter.acquire(&0, 1).await.unwrap();
    assert!(permit.waited() >= secs(1.0) && permit.waited() <= secs(1.0) + GRAIN);
    assert_eq!(permit.cost(), 1);
    let error = limiter.acquire_timeout(&1, 1, secs(0.5)).await.unwrap_err();
    assert!(error.is_wait_too_long());
    assert_eq!(limiter.snapshot_of(&1).unwrap().level, 1.0);
    global.close();
    assert!(limiter.acquire(&2, 1).await.unwrap_err().is_closed());
}

#[tokio::test(start_paused = true)]
async fn keys_share_the_global_rate_in_order_of_arrival() {
    let (limiter, _) = both(Quota::per_second(100).burst(10), Quota::per_second(10));
    let time = Timeline::start();
    let mut callers = Vec::new();
    for number in 0..20_u32 {
        let (limiter, time) = (limiter.clone(), time.clone());
        callers.push(tokio::spawn(async move {
            limiter.acquire(&(number % 5), 1).await.unwrap();
            time.mark();
            number
        }));
        settle().await;
    }
    let mut order = Vec::new();
    for caller in callers {
        order.push(caller.await.unwrap());
    }
    assert!(order.is_sorted());
    let due: Vec<f64> = (0..20).map(|n| f64::from(n) / 10.0).collect();
    assert_times(&time.events(), &due);
}

/// Dropped at each stage: nothing is missing from either budget afterwards.
#[tokio::test(start_paused = true)]
async fn a_cancelled_waiter_gives_back_both() {
    let (limiter, global) = both(Quota::per_second(1), Quota::per_second(1));
    let time = Timeline::start();
    limiter.acquire(&0, 1).await.unwrap();
    // In the key's line.
    let (in_line, _) = poll_once(limiter.acquire(&0, 1));
    // Past its key, in the global line.
    let (above, _) = poll_once(limiter.acquire(&1, 1));
    assert_eq!(global.snapshot().queue_len, 1);
    assert_eq!(limiter.snapshot_of(&1).unwrap().held, 1);
    time.at(1.5).await;
    // Both are due, and neither has looked: the tokens are set aside.
    assert_eq!(limiter.snapshot_of(&0).unwrap().held, 1);
    assert_eq!(global.snapshot().held, 1);
    drop((in_line, above));
    assert_eq!(limiter.snapshot_of(&0).unwrap().level, 1.0);
    assert_eq!(limiter.snapshot_of(&1).unwrap().level, 1.0);
    assert_eq!(global.snapshot().level, 1.0);
    limiter.try_acquire(&0, 1).unwrap();
    assert_eq!(global.snapshot().counters.sent, 2);
}

/// A key that is paused while its caller stands in the global line: the caller leaves that line.
#[tokio::test(start_paused = true)]
async fn a_key_paused_meanwhile_holds_nothing_global() {
    let (limiter, global) = both(Quota::per_second(10), Quota::per_second(1));
    let time = Timeline::start();
    limiter.acquire(&0, 1).await.unwrap();
    let waiter = tokio::spawn({
        let (limiter, time) = (limiter.clone(), time.clone());
        async move {
            limiter.acquire(&1, 1).await.unwrap();
            time.now()
        }
    });
    time.at(0.5).await;
    limiter.penalize(&1, secs(3.0)).unwrap();
    time.at(1.5).await;
    assert_eq!(global.snapshot().held, 0);
    assert_eq!(global.snapshot().queue_len, 0);
    assert!(
        limiter.try_acquire(&2, 1).is_ok(),
        "the global token is free"
    );
    assert_times(&[waiter.await.unwrap()], &[3.5]);
}

/// Three were granted by their key while the global limiter was paused. When that lets them go one after the other, the key has room for
/// one, and the others take nothing global before their key has.
#[tokio::test(start_paused = true)]
async fn what_gathered_before_the_global_limiter_leaves_at_the_key_s_rate() {
    let (limiter, global) = both(Quota::per_second(1), Quota::per_second(100).burst(10));
    let time = Timeline::start();
    global.penalize(secs(5.0));
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let (limiter, time) = (limiter.clone(), time.clone());
            tokio::spawn(async move {
                limiter.acquire(&0, 1).await.unwrap();
                time.mark();
            })
        })
        .collect();
    time.at(4.0).await;
    assert_eq!(global.snapshot().queue_len, 3);
    time.at(5.5).await;
    let snapshot = global.snapshot();
    assert_eq!((snapshot.counters.sent, snapshot.held), (1, 0));
    for waiter in waiters {
        waiter.await.unwrap();
    }
    assert_times(&time.events(), &[5.0, 6.0, 7.0]);
    assert_eq!(global.snapshot().counters.sent, 3);
}
