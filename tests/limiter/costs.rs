//! Several quotas, and what a request takes of each.

use std::time::Duration;

use tower_throttle::{Cost, Limiter, Quota};

use crate::support::{Timeline, assert_times, secs, settle};

fn two(first: Quota, second: Quota) -> Limiter {
    Limiter::builder()
        .quota("requests", first)
        .quota("tokens", second)
        .build()
        .unwrap()
}

fn level(limiter: &Limiter, quota: &str) -> f64 {
    let snapshot = limiter.snapshot();
    let state = snapshot.quotas.iter().find(|state| state.name == quota);
    state.unwrap().level
}

#[tokio::test(start_paused = true)]
async fn a_request_leaves_when_all_quotas_allow_it_and_takes_from_all() {
    let sent = Timeline::start();
    let limiter = two(
        Quota::per_second(10).burst(10),
        Quota::per_second(100).burst(100),
    );
    limiter.acquire(1).of("tokens", 100).await.unwrap();
    sent.mark();
    assert_eq!(
        (level(&limiter, "requests"), level(&limiter, "tokens")),
        (9.0, 0.0)
    );
    limiter.acquire(1).of("tokens", 50).await.unwrap();
    sent.mark();
    assert_times(&sent.events(), &[0.0, 0.5]);
    // While it waited for tokens it held no request. (Late timers may find a little more than the burst.)
    let left = level(&limiter, "requests");
    assert!((9.0..=9.1).contains(&left), "{left}");
}

/// A refusal by one takes nothing of the other, however often.
#[tokio::test(start_paused = true)]
async fn a_refusal_by_one_quota_takes_nothing_of_the_others() {
    let limiter = two(
        Quota::per_minute(100).burst(100),
        Quota::per_second(2).burst(2),
    );
    limiter.try_acquire(Cost::new(0).of("tokens", 2)).unwrap();
    for _ in 0..1000 {
        assert!(limiter.try_acquire(1).unwrap_err().is_wait_too_long());
    }
    assert_eq!(level(&limiter, "requests"), 100.0);
    for _ in 0..100 {
        limiter.try_acquire(Cost::new(1).of("tokens", 0)).unwrap();
    }
    assert!(level(&limiter, "requests") < 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_large_cost_of_one_quota_is_not_passed_by_small_ones() {
    let sent = Timeline::start();
    let limiter = two(
        Quota::per_second(100).burst(100),
        Quota::per_second(10).burst(10),
    );
    limiter.acquire(1).of("tokens", 10).await.unwrap();
    let large = tokio::spawn({
        let (limiter, sent) = (limiter.clone(), sent.clone());
        async move {
            limiter.acquire(1).of("tokens", 10).await.unwrap();
            sent.mark()
        }
    });
    settle().await;
    for step in 1..=5 {
        let (limiter, sent) = (limiter.clone(), sent.clone());
        tokio::spawn(async move {
            sent.at(0.1 * f64::from(step)).await;
            limiter.acquire(1).of("tokens", 1).await.unwrap();
            sent.mark();
        });
    }
    large.await.unwrap();
    sent.at(2.0).await;
    assert_times(&sent.events(), &[1.0, 1.1, 1.2, 1.3, 1.4, 1.5]);
}

#[tokio::test(start_paused = true)]
async fn a_cost_above_a_burst_is_an_error_that_names_both() {
    let limiter = two(
        Quota::per_second(10).burst(10),
        Quota::per_second(10).burst(50),
    );
    for (cost, of_tokens) in [(11, 1), (1, 51), (1, u32::MAX)] {
        let error = limiter
            .acquire(cost)
            .of("tokens", of_tokens)
            .await
            .unwrap_err();
        assert!(error.is_too_expensive());
        let (wanted, burst) = if cost > 10 {
            (cost, 10)
        } else {
            (of_tokens, 50)
        };
        let text = error.to_string();
        assert!(text.contains(&wanted.to_string()) && text.contains(&burst.to_string()));
    }
    assert_eq!(level(&limiter, "requests"), 10.0);
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_does_not_exist_is_an_error_that_names_it() {
    let limiter = Limiter::new(Quota::per_second(10).burst(10)).unwrap();
    let error = limiter.acquire(1).of("tokens", 1).await.unwrap_err();
    assert!(error.is_unknown_quota() && error.to_string().contains("tokens"));
    assert!(
        limiter
            .try_acquire(
                Cost::new(1)
                    .of("a", 1)
                    .of("b", 1)
                    .of("c", 1)
                    .of("d", 1)
                    .of("e", 1)
            )
            .unwrap_err()
            .is_unknown_quota()
    );
    let mut permit = limiter.acquire(1).await.unwrap();
    assert!(permit.settle(Cost::new(1).of("tokens", 5)).is_err());
    assert_eq!(limiter.snapshot().level, 9.0);
}

#[test]
fn too_many_quotas_or_two_of_one_name_are_errors() {
    let mut builder = Limiter::builder();
    for name in ["a", "b", "c", "d"] {
        builder = builder.quota(name, Quota::per_second(1));
    }
    assert!(builder.clone().build().is_ok());
    let error = builder
        .quota("e", Quota::per_second(1))
        .build()
        .unwrap_err();
    assert_eq!(error.field(), "quota");
    let twice = Limiter::builder()
        .quota("a", Quota::per_second(1))
        .quota("a", Quota::per_second(2));
    assert_eq!(twice.build().unwrap_err().field(), "quota");
    let bad = Limiter::builder()
        .quota("a", Quota::per_second(1))
        .quota("b", Quota::at_most(0, Duration::from_secs(1)));
    assert!(bad.build().is_err());
}

/// Riot's shape: 20 in any second and 100 in any two minutes.
#[tokio::test(start_paused = true)]
async fn strict_windows_hold_together() {
    let sent = Timeline::start();
    let limiter = Limiter::builder()
        .quota("second", Quota::at_most(20, secs(1.0)))
        .quota("two minutes", Quota::at_most(100, secs(120.0)))
        .build()
        .unwrap();
    let tasks: Vec<_> = (0..250)
        .map(|_| {
            let (limiter, sent) = (limiter.clone(), sent.clone());
            tokio::spawn(async move {
                limiter.acquire(1).await.unwrap();
                sent.mark();
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let events = sent.events();
    for (index, &end) in events.iter().enumerate() {
        for (most, window) in [(20, secs(1.0)), (100, secs(120.0))] {
            let within = events[..=index].iter().filter(|&&at| at + window > end);
            assert!(within.count() <= most, "{window:?} up to {end:?}");
        }
    }
    assert!(
        events[249] <= secs(2.0 * 120.0 * 65.0 / 64.0 + 4.0),
        "{events:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn settling_charges_or_gives_back_the_difference() {
    let sent = Timeline::start();
    let limiter = two(
        Quota::per_second(10).burst(10),
        Quota::per_second(100).burst(1000),
    );
    let mut permit = limiter.acquire(1).of("tokens", 500).await.unwrap();
    assert_eq!(level(&limiter, "tokens"), 500.0);
    permit.settle(Cost::new(1).of("tokens", 200)).unwrap();
    assert_eq!(level(&limiter, "tokens"), 800.0);
    // It turns out to be much more: those who follow wait for it.
    permit.settle(Cost::new(1).of("tokens", 1_100)).unwrap();
    assert_eq!(level(&limiter, "tokens"), -100.0);
    assert_eq!(level(&limiter, "requests"), 9.0);
    limiter.acquire(1).of("tokens", 100).await.unwrap();
    sent.mark();
    assert_times(&sent.events(), &[2.0]);
    // Never above the burst.
    sent.at(100.0).await;
    permit.settle(Cost::new(0)).unwrap();
    assert_eq!(level(&limiter, "tokens"), 1000.0);
}

#[tokio::test(start_paused = true)]
async fn a_name_beyond_those_there_is_room_for_is_not_forgotten() {
    let mut builder = Limiter::builder();
    for name in ["a", "b", "c", "d"] {
        builder = builder.quota(name, Quota::per_second(10).burst(10));
    }
    let limiter = builder.build().unwrap();
    let all = ["a", "b", "c", "d"].map(String::from).into_iter();
    let cost = all.fold(Cost::new(1), |cost, name| cost.of(name, 2));
    assert!(limiter.try_acquire(cost.clone()).is_ok());
    let error = limiter.acquire(cost.of("e", 2)).await.unwrap_err();
    assert!(error.to_string().contains("\"e\""), "{error}");
}
