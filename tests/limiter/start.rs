//! What a limiter has at its start.

use std::time::Duration;

use tower_throttle::{KeyedLimiter, Limiter, Quota};

use crate::support::{Timeline, assert_times, secs};

#[tokio::test(start_paused = true)]
async fn a_limiter_that_starts_with_nothing_lets_the_first_one_wait() {
    let time = Timeline::start();
    let limiter = Limiter::new(Quota::per_second(2).burst(10).initial(0)).unwrap();
    for _ in 0..3 {
        limiter.acquire(1).await.unwrap();
        time.mark();
    }
    assert_times(&time.events(), &[0.5, 1.0, 1.5]);
}

#[tokio::test(start_paused = true)]
async fn a_limiter_that_starts_with_a_few_lets_as_many_leave_at_once() {
    let time = Timeline::start();
    let limiter = Limiter::builder()
        .quota("q", Quota::per_second(2).burst(10).initial(2))
        .quota("r", Quota::per_second(100).burst(100).initial(90))
        .build()
        .unwrap();
    for _ in 0..3 {
        limiter.acquire(1).await.unwrap();
        time.mark();
    }
    assert_times(&time.events(), &[0.0, 0.0, 0.5]);
    // It fills up to the burst as any other.
    tokio::time::sleep(secs(10.0)).await;
    assert_eq!(limiter.available(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_key_starts_as_if_it_had_been_there_from_the_beginning() {
    let limiter: KeyedLimiter<&str> =
        KeyedLimiter::new(Quota::per_second(2).burst(10).initial(0)).unwrap();
    assert!(limiter.try_acquire(&"a", 1).is_err());
    tokio::time::sleep(secs(1.0)).await;
    for key in ["a", "b"] {
        assert!(limiter.try_acquire(&key, 2).is_ok(), "{key}");
        let error = limiter.try_acquire(&key, 1).unwrap_err();
        assert_eq!(error.retry_after(), Some(Duration::from_millis(500)));
    }
}

#[test]
fn no_more_can_be_there_at_the_start_than_the_burst() {
    let error = Limiter::new(Quota::per_second(2).burst(3).initial(4)).unwrap_err();
    assert_eq!(error.field(), "initial");
}
