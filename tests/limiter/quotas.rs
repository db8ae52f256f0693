use std::{thread, time::Duration};

use tower_throttle::{Limiter, Quota};

use crate::support::{Timeline, assert_times};

#[test]
fn a_bad_quota_is_an_error_that_names_the_field() {
    let cases = [
        (Quota::per_second(0), "amount"),
        (Quota::new(1, Duration::ZERO), "period"),
        (Quota::new(1, Duration::MAX), "period"),
        (Quota::per_second(1).burst(0), "burst"),
    ];
    for (quota, field) in cases {
        let error = Limiter::new(quota).unwrap_err();
        assert_eq!(error.field(), field);
        assert!(error.to_string().contains(field));
    }
    for rate in [0.0, -1.0, -0.0, f64::NAN, f64::INFINITY, 5e9] {
        assert_eq!(Quota::from_rate(rate).unwrap_err().field(), "rate");
    }
    assert_eq!(Limiter::builder().build().unwrap_err().field(), "quota");
}

#[test]
fn a_rate_given_as_a_number_is_kept() {
    for rate in [0.5, 1.0, 0.1, 2.5, 1e-6, 1.0 / 3.0, 12_345.678, 4e9] {
        let quota = Quota::from_rate(rate).unwrap();
        assert!((quota.rate() / rate - 1.0).abs() < 1e-6, "{rate} {quota:?}");
        assert!(quota.rate() <= rate * (1.0 + 1e-9), "{rate} {quota:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tiny_rate_sends_once_and_then_blocks() {
    for rate in [f64::MIN_POSITIVE, 1e-300, 1e-15] {
        let limiter = Limiter::new(Quota::from_rate(rate).unwrap()).unwrap();
        limiter.acquire(1).await.unwrap();
        assert!(limiter.try_acquire(1).is_err());
        let waiting = tokio::time::timeout(Duration::from_secs(1_000_000), limiter.acquire(1));
        assert!(waiting.await.is_err());
    }
}

#[test]
fn a_rate_above_a_billion_keeps_to_its_ceiling_from_two_threads() {
    let (rate, burst) = (1_000_000_001_u32, 1000);
    let limiter = Limiter::new(Quota::per_second(rate).burst(burst)).unwrap();
    let start = std::time::Instant::now();
    let granted: u64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    (0..500_000)
                        .filter(|_| limiter.try_acquire(1).is_ok())
                        .count()
                })
            })
            .collect();
        (threads.into_iter())
            .map(|thread| thread.join().unwrap() as u64)
            .sum()
    });
    let ceiling = f64::from(burst) + f64::from(rate) * start.elapsed().as_secs_f64();
    // A call takes longer than a token: nobody is ever refused.
    assert_eq!(granted, 1_000_000);
    assert!(granted as f64 <= ceiling);
}

#[tokio::test(start_paused = true)]
async fn odd_rates_are_exact() {
    async fn last(quota: Quota, requests: usize) -> Duration {
        let limiter = Limiter::new(quota).unwrap();
        let time = Timeline::start();
        for _ in 0..requests {
            limiter.acquire(1).await.unwrap();
        }
        time.now()
    }
    let at = last(Quota::per_minute(700), 701).await;
    assert_times(&[at], &[60.0]);
    let at = last(Quota::per_minute(120_000).burst(10), 1000).await;
    assert_times(&[at], &[0.495]);
    let at = last(Quota::new(7, Duration::from_secs(3)), 701).await;
    assert_times(&[at], &[300.0]);
}

#[tokio::test(start_paused = true)]
async fn ages_of_idleness_fill_the_bucket_and_no_more() {
    for (rate, burst) in [(104_857_600, 104_857_600), (1_000_000_000, u32::MAX)] {
        let limiter = Limiter::new(Quota::per_second(rate).burst(burst)).unwrap();
        for idle in [7 * 86_400, 90 * 365 * 86_400_u64] {
            limiter.try_acquire(614).unwrap();
            tokio::time::advance(Duration::from_secs(idle)).await;
            assert_eq!(limiter.snapshot().level, f64::from(burst));
        }
        limiter.try_acquire(614).unwrap();
    }
}
