use std::time::Duration;

use tower_throttle::{KeyedLimiter, Limiter, Quota};

use crate::support::{poll_once, secs};

/// C44: a million keys, one request each, over 100 s.
#[tokio::test(start_paused = true)]
async fn c44_tracked_keys_stay_few_and_all_are_forgotten() {
    const KEYS: u32 = 1_000_000;
    let quota = Quota::per_second(1).burst(10);
    let name = |key: u32| {
        if key == 0 {
            String::new()
        } else {
            key.to_string()
        }
    };
    for (cap, most) in [(10_000, 10_000), (usize::MAX, 20_000)] {
        let limiter = KeyedLimiter::builder()
            .quota(quota)
            .max_keys(cap)
            .build()
            .unwrap();
        let mut largest = 0;
        for key in 0..KEYS {
            let permit = limiter.try_acquire(&name(key), 1);
            assert!(permit.is_ok(), "key {key}: {permit:?}");
            largest = largest.max(limiter.len());
            assert!(largest <= most, "{largest} keys at key {key}");
            tokio::time::advance(Duration::from_micros(100)).await;
        }
        assert!(largest >= 10_000, "{largest}");
        tokio::time::advance(secs(60.0)).await;
        assert!(limiter.sweep() > 0);
        assert_eq!(limiter.len(), 0);
        assert_eq!(limiter.snapshot().forgotten, u64::from(KEYS));
    }
}

#[tokio::test(start_paused = true)]
async fn the_empty_key_is_like_any_other() {
    let limiter = KeyedLimiter::builder()
        .quota(Quota::per_second(1))
        .max_keys(1)
        .build()
        .unwrap();
    limiter.try_acquire(&"", 1).unwrap();
    assert!(limiter.try_acquire(&"a", 1).unwrap_err().is_too_many_keys());
    tokio::time::advance(secs(1.0)).await;
    limiter.try_acquire(&"a", 1).unwrap();
    assert_eq!(limiter.snapshot_of(&""), None);
}

/// Whatever tells a key from a new one keeps it.
#[tokio::test(start_paused = true)]
async fn a_key_that_differs_from_a_new_one_is_kept() {
    let global = Limiter::new(Quota::per_hour(1)).unwrap();
    let limiter = KeyedLimiter::builder()
        .quota(Quota::per_second(1))
        .build()
        .unwrap();
    let above = KeyedLimiter::builder()
        .quota(Quota::per_second(1))
        .global(global.clone())
        .build()
        .unwrap();
    // Not full yet.
    limiter.try_acquire(&"spent", 1).unwrap();
    assert_eq!(limiter.sweep(), 0);
    // Somebody waits, for the key or above it.
    limiter.try_acquire(&"line", 1).unwrap();
    let (in_line, _) = poll_once(limiter.acquire(&"line", 1));
    above.try_acquire(&"line", 1).unwrap();
    let (held, _) = poll_once(above.acquire(&"held", 1));
    // Paused.
    limiter.penalize(&"paused", secs(20.0)).unwrap();
    tokio::time::advance(secs(10.0)).await;
    assert_eq!((limiter.sweep(), limiter.len()), (1, 2));
    assert_eq!((above.sweep(), above.len()), (1, 1));
    drop((in_line, held));
    tokio::time::advance(secs(20.0)).await;
    assert_eq!((limiter.sweep(), limiter.len()), (2, 0));
    assert_eq!((above.sweep(), above.len()), (1, 0));
}

/// Forgetting is not a way to get more: the same key again and again, with sweeps in between.
#[tokio::test(start_paused = true)]
async fn a_sweep_gives_nobody_a_fresh_bucket() {
    let limiter = KeyedLimiter::new(Quota::per_second(10).burst(3)).unwrap();
    let mut sent = 0;
    for _ in 0..1000 {
        sent += u32::from(limiter.try_acquire(&"a", 1).is_ok());
        limiter.sweep();
        tokio::time::advance(Duration::from_millis(10)).await;
    }
    assert!(sent <= 3 + 100, "{sent}");
    assert!(sent >= 100, "{sent}");
}

/// Callers of a key have numbers that grow, even if the key was forgotten between them.
#[tokio::test(start_paused = true)]
async fn numbers_are_not_given_twice() {
    let limiter = KeyedLimiter::new(Quota::per_second(1)).unwrap();
    let mut last = 0;
    for round in 0..20 {
        let permit = match round % 2 {
            0 => limiter.try_acquire(&"a", 1).unwrap(),
            _ => limiter.acquire(&"a", 1).await.unwrap(),
        };
        let number = permit.seq();
        assert!(number > last, "{number} after {last}");
        last = number;
        if round % 3 == 0 {
            assert!(limiter.snapshot_of(&"a").is_some());
        }
        tokio::time::advance(secs(2.0)).await;
        if round % 4 < 2 {
            assert_eq!(limiter.sweep(), 1);
        }
    }
}
