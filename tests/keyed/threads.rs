use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use tower_throttle::{KeyedLimiter, Limiter, Quota};

/// Tries, waits that are given up, sweeps and pauses from several threads, on the real clock: the cap and the quotas hold throughout.
#[test]
fn churn_in_several_threads_keeps_every_bound() {
    const KEYS: u64 = 64;
    const CAP: usize = 48;
    let global = Limiter::new(Quota::per_second(20_000).burst(100)).unwrap();
    let limiter = KeyedLimiter::builder()
        .quota(Quota::per_second(500).burst(5))
        .max_keys(CAP)
        .global(global.clone())
        .build()
        .unwrap();
    let sent: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    let start = Instant::now();
    let run = Duration::from_secs(2);
    thread::scope(|scope| {
        for seed in 1..=3_u64 {
            let (limiter, sent, runtime) = (&limiter, &sent, &runtime);
            scope.spawn(move || {
                let _guard = runtime.enter();
                let mut random = seed;
                let mut next = |below: u64| {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    (random >> 33) % below
                };
                while start.elapsed() < run {
                    let key = next(KEYS);
                    let count = || sent[key as usize].fetch_add(1, Ordering::Relaxed);
                    match next(100) {
                        0 => {
                            limiter.sweep();
                        }
                        1..50 => {
                            if limiter.try_acquire(&key, 1).is_ok() {
                                count();
                            }
                        }
                        _ => {
                            let wait = Duration::from_micros(next(3_000));
                            let acquired = runtime.block_on(async {
                                tokio::time::timeout(wait, limiter.acquire(&key, 1)).await
                            });
                            if matches!(acquired, Ok(Ok(_))) {
                                count();
                            }
                        }
                    }
                    assert!(limiter.len() <= CAP);
                }
            });
        }
    });
    let window = start.elapsed() + Duration::from_millis(10);
    let mut all = 0;
    for (key, sent) in sent.iter().enumerate() {
        let sent = sent.load(Ordering::Relaxed);
        all += sent;
        let most = 5.0 + 500.0 * window.as_secs_f64();
        assert!(sent as f64 <= most, "key {key}: {sent} > {most}");
    }
    assert!(all as f64 <= 100.0 + 20_000.0 * window.as_secs_f64());
    assert!(all > 1_000, "{all}");
    let snapshot = global.snapshot();
    assert_eq!((snapshot.held, snapshot.queue_len), (0, 0));
    assert_eq!(snapshot.counters.sent, all);
    thread::sleep(Duration::from_millis(50));
    limiter.sweep();
    assert_eq!(limiter.len(), 0);
}
