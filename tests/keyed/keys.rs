use std::time::Duration;

use tower_throttle::{KeyedLimiter, Overflow, Quota};

use crate::support::{Timeline, assert_times, poll_once, secs, settle};

fn limiter(quota: Quota) -> KeyedLimiter<&'static str> {
    KeyedLimiter::new(quota).unwrap()
}

#[tokio::test(start_paused = true)]
async fn each_key_has_a_budget_of_its_own() {
    let limiter = limiter(Quota::per_second(1).burst(2));
    for key in ["a", "b", ""] {
        assert!(limiter.try_acquire(&key, 1).is_ok());
        assert!(limiter.try_acquire(&key, 1).is_ok());
        let error = limiter.try_acquire(&key, 1).unwrap_err();
        assert!(error.is_wait_too_long());
        assert_eq!(error.retry_after(), Some(secs(1.0)));
    }
    assert_eq!(limiter.len(), 3);
    let time = Timeline::start();
    limiter.acquire(&"a", 1).await.unwrap();
    limiter.acquire(&"b", 1).await.unwrap();
    assert_times(&[time.now()], &[1.0]);
}

#[tokio::test(start_paused = true)]
async fn callers_of_a_key_are_served_in_order_at_its_rate() {
    let limiter = limiter(Quota::per_second(1));
    let time = Timeline::start();
    let mut callers = Vec::new();
    for number in 0..5 {
        let (limiter, time) = (limiter.clone(), time.clone());
        callers.push(tokio::spawn(async move {
            let permit = limiter.acquire(&"a", 1).await.unwrap();
            let waited = secs(f64::from(number));
            assert!(permit.waited() >= waited && permit.waited() < waited + secs(0.01));
            time.mark();
            number
        }));
        settle().await;
    }
    for (number, caller) in callers.into_iter().enumerate() {
        assert_eq!(caller.await.unwrap(), number as i32);
    }
    assert_times(&time.events(), &[0.0, 1.0, 2.0, 3.0, 4.0]);
}

#[tokio::test(start_paused = true)]
async fn a_key_can_have_another_quota() {
    let limiter = KeyedLimiter::<String>::builder()
        .quota(Quota::per_second(1))
        .quota_for(|key| match key.as_str() {
            "large" => Some(Quota::per_second(10).burst(5)),
            "broken" => Some(Quota::per_second(0)),
            _ => None,
        })
        .build()
        .unwrap();
    let taken = |key: &str| {
        (0..10)
            .filter(|_| limiter.try_acquire(&key.to_owned(), 1).is_ok())
            .count()
    };
    assert_eq!(taken("large"), 5);
    assert_eq!(taken("small"), 1);
    let error = limiter.try_acquire(&"broken".to_owned(), 1).unwrap_err();
    assert!(error.is_invalid_quota());
    assert!(error.to_string().contains("amount"), "{error}");
    assert!(limiter.acquire(&"broken".to_owned(), 1).await.is_err());
    assert_eq!(limiter.len(), 2);
    let large = limiter.snapshot_of(&"large".to_owned()).unwrap();
    assert_eq!((large.configured_rate, large.burst), (10.0, 5));
    assert_eq!(limiter.snapshot_of(&"unknown".to_owned()), None);
}

#[tokio::test(start_paused = true)]
async fn refusals_say_what_is_wrong_and_take_nothing() {
    let limiter = KeyedLimiter::builder()
        .quota(Quota::per_second(1).burst(2))
        .max_wait(secs(1.0))
        .max_queue(1)
        .build()
        .unwrap();
    assert!(limiter.try_acquire(&1, 3).unwrap_err().is_too_expensive());
    assert!(limiter.acquire(&1, 3).await.unwrap_err().is_too_expensive());
    limiter.acquire(&1, 2).await.unwrap();
    assert!(limiter.acquire(&1, 2).await.unwrap_err().is_wait_too_long());
    let (_waiting, poll) = poll_once(limiter.acquire(&1, 1));
    assert!(poll.is_pending());
    assert!(limiter.acquire(&1, 0).await.unwrap_err().is_queue_full());
    // Another key's line is another line.
    limiter.acquire(&2, 2).await.unwrap();
    let impatient = limiter.acquire_timeout(&2, 1, Duration::from_millis(900));
    assert!(impatient.await.unwrap_err().is_wait_too_long());
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_gives_up_leaves_no_debt() {
    let limiter = limiter(Quota::per_second(1));
    let time = Timeline::start();
    limiter.acquire(&"a", 1).await.unwrap();
    let dead: Vec<_> = (0..6)
        .map(|_| poll_once(limiter.acquire(&"a", 1)).0)
        .collect();
    time.at(0.2).await;
    drop(dead);
    limiter.acquire(&"a", 1).await.unwrap();
    assert_times(&[time.now()], &[1.0]);
}

#[tokio::test(start_paused = true)]
async fn closing_ends_every_wait_and_refuses_who_comes() {
    let limiter = limiter(Quota::per_hour(1));
    limiter.acquire(&"a", 1).await.unwrap();
    let waiting = tokio::spawn({
        let limiter = limiter.clone();
        async move { limiter.acquire(&"a", 1).await }
    });
    settle().await;
    limiter.close();
    assert!(waiting.await.unwrap().unwrap_err().is_closed());
    assert!(limiter.try_acquire(&"b", 1).unwrap_err().is_closed());
    assert!(limiter.acquire(&"a", 1).await.unwrap_err().is_closed());
}

#[test]
fn a_configuration_that_cannot_work_is_an_error() {
    let field = |builder: tower_throttle::KeyedBuilder<u8>| builder.build().unwrap_err().field();
    let builder = KeyedLimiter::builder;
    assert_eq!(field(builder()), "quota");
    assert_eq!(field(builder().quota(Quota::per_second(0))), "amount");
    let quota = Quota::per_second(1);
    assert_eq!(field(builder().quota(quota).max_keys(0)), "max_keys");
    let zero = builder().quota(quota).backoff(Duration::ZERO, secs(1.0));
    assert_eq!(field(zero), "backoff");
}

#[tokio::test(start_paused = true)]
async fn without_room_a_new_key_is_refused_or_shares_and_it_shows() {
    for overflow in [Overflow::Refuse, Overflow::Share] {
        let limiter = KeyedLimiter::builder()
            .quota(Quota::per_second(1).burst(2))
            .max_keys(2)
            .overflow(overflow)
            .build()
            .unwrap();
        for key in [1, 2] {
            limiter.try_acquire(&key, 1).unwrap();
        }
        let new = [3, 4, 5].map(|key| limiter.try_acquire(&key, 1));
        assert_eq!(limiter.len(), 2);
        assert_eq!(limiter.snapshot().overflowed, 3);
        // Those with a place keep it.
        assert!(limiter.try_acquire(&1, 1).is_ok());
        match overflow {
            Overflow::Refuse => {
                assert!(
                    new.iter()
                        .all(|new| new.as_ref().unwrap_err().is_too_many_keys())
                );
                assert!(limiter.acquire(&6, 1).await.unwrap_err().is_too_many_keys());
            }
            _ => {
                assert_eq!(new.map(|new| new.is_ok()), [true, true, false]);
                let time = Timeline::start();
                limiter.acquire(&6, 1).await.unwrap();
                assert_times(&[time.now()], &[1.0]);
            }
        }
        // Once a key is as new, its place is free.
        tokio::time::advance(secs(2.0)).await;
        limiter.try_acquire(&7, 2).unwrap();
        assert!(limiter.len() <= 2);
    }
}
