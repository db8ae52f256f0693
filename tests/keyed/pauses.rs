use std::time::SystemTime;

use http::{HeaderMap, StatusCode};
use tower_throttle::{
    KeyedLimiter, Limiter, Quota,
    feedback::{Feedback, read},
};

use crate::support::{Timeline, assert_times, secs, settle};

pub(crate) fn refusal(fields: &[(&'static str, &str)]) -> Feedback {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.insert(*name, value.parse().unwrap());
    }
    read(StatusCode::TOO_MANY_REQUESTS, &headers, SystemTime::now())
}

#[tokio::test(start_paused = true)]
async fn c43_a_refusal_pauses_its_key_only() {
    let limiter = KeyedLimiter::new(Quota::per_second(10).burst(5)).unwrap();
    let time = Timeline::start();
    let permit = limiter.acquire(&"a.example", 1).await.unwrap();
    limiter.answered(&"a.example", &permit, &refusal(&[("retry-after", "60")]));
    limiter.try_acquire(&"b.example", 5).unwrap();
    assert!(limiter.try_acquire(&"a.example", 1).is_err());
    assert_eq!(limiter.snapshot().pause, None);
    limiter.acquire(&"a.example", 1).await.unwrap();
    assert_times(&[time.now()], &[60.0]);
}

#[tokio::test(start_paused = true)]
async fn c43_a_refusal_for_all_pauses_known_and_new_keys() {
    let global = Limiter::new(Quota::per_second(1000).burst(1000)).unwrap();
    for above in [false, true] {
        let builder = KeyedLimiter::builder().quota(Quota::per_second(10).burst(5));
        let limiter = if above {
            builder.global(global.clone()).build().unwrap()
        } else {
            builder.build().unwrap()
        };
        let time = Timeline::start();
        let permit = limiter.acquire(&"a", 1).await.unwrap();
        limiter.try_acquire(&"known", 1).unwrap();
        let said = refusal(&[("retry-after", "60"), ("x-ratelimit-global", "true")]);
        limiter.answered(&"a", &permit, &said);
        let (left, _) = limiter.snapshot().pause.unwrap();
        assert_eq!(left, secs(60.0));
        assert_eq!(global.snapshot().pause.is_some(), above);
        // A shorter one changes nothing.
        limiter.reconcile(
            &"c",
            &refusal(&[("retry-after", "5"), ("x-ratelimit-global", "true")]),
        );
        let waiters = ["a", "known", "new"].map(|key| {
            let (limiter, time) = (limiter.clone(), time.clone());
            tokio::spawn(async move {
                limiter.acquire(&key, 1).await.unwrap();
                time.mark();
            })
        });
        time.at(30.0).await;
        for key in ["a", "known", "new", "newer"] {
            let error = limiter.try_acquire(&key, 1).unwrap_err();
            assert!(error.retry_after().unwrap() >= secs(30.0), "{error}");
        }
        for waiter in waiters {
            waiter.await.unwrap();
        }
        if above {
            // The global limiter was told, too, and lets one test the server.
            assert_eq!(time.count(), 3);
            assert!(
                time.events()
                    .iter()
                    .all(|&at| at >= secs(60.0) && at < secs(60.1))
            );
        } else {
            assert_times(&time.events(), &[60.0, 60.0, 60.0]);
        }
        // At the end of the pause there was one token for each.
        assert!(limiter.try_acquire(&"a", 1).is_err());
        assert!(limiter.try_acquire(&"newer", 2).is_err());
        tokio::time::advance(secs(1.0)).await;
    }
}

/// Those who already wait for their key when the pause comes.
#[tokio::test(start_paused = true)]
async fn a_pause_for_all_holds_those_in_line() {
    let limiter = KeyedLimiter::new(Quota::per_second(1)).unwrap();
    let time = Timeline::start();
    limiter.acquire(&1, 1).await.unwrap();
    for _ in 0..3 {
        let (limiter, time) = (limiter.clone(), time.clone());
        tokio::spawn(async move {
            limiter.acquire(&1, 1).await.unwrap();
            time.mark();
        });
    }
    time.at(0.5).await;
    limiter.penalize_all(secs(10.0));
    time.at(20.0).await;
    assert_times(&time.events(), &[10.5, 11.5, 12.5]);
}

#[tokio::test(start_paused = true)]
async fn a_pause_longer_than_allowed_is_an_error_for_every_key() {
    let limiter = KeyedLimiter::builder()
        .quota(Quota::per_second(1))
        .max_pause(secs(60.0))
        .build()
        .unwrap();
    limiter.acquire(&1, 1).await.unwrap();
    let waiting = tokio::spawn({
        let limiter = limiter.clone();
        async move { limiter.acquire(&1, 1).await }
    });
    settle().await;
    limiter.penalize_all(secs(3_600.0));
    for key in [1, 2] {
        assert!(limiter.try_acquire(&key, 1).unwrap_err().is_paused());
        assert!(limiter.acquire(&key, 1).await.unwrap_err().is_paused());
    }
    assert!(waiting.await.unwrap().unwrap_err().is_paused());
    tokio::time::advance(secs(3_590.0)).await;
    assert!(limiter.acquire(&2, 1).await.is_ok());
}

/// A key nobody looked at during the pause has one token at its end, like the others.
#[tokio::test(start_paused = true)]
async fn no_volley_follows_a_pause_for_all() {
    let limiter = KeyedLimiter::new(Quota::per_second(1).burst(10)).unwrap();
    for key in [1, 2] {
        limiter.try_acquire(&key, 1).unwrap();
    }
    // One at rest, one with a limiter of its own.
    let fine = read(StatusCode::OK, &HeaderMap::new(), SystemTime::now());
    limiter.reconcile(&1, &fine);
    limiter.penalize_all(secs(100.0));
    tokio::time::advance(secs(102.0)).await;
    for key in [1, 2] {
        assert!(limiter.try_acquire(&key, 4).is_err());
        assert!(limiter.try_acquire(&key, 3).is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn answers_without_news_make_no_limiter_and_learnt_rates_are_kept() {
    let limiter = KeyedLimiter::new(Quota::per_second(100)).unwrap();
    let permit = limiter.acquire(&1, 1).await.unwrap();
    let fine = read(StatusCode::OK, &HeaderMap::new(), SystemTime::now());
    limiter.answered(&1, &permit, &fine);
    // A refusal without a time: the rate falls.
    for _ in 0..20 {
        let permit = limiter.acquire(&1, 1).await.unwrap();
        limiter.answered(&1, &permit, &fine);
    }
    let permit = limiter.acquire(&1, 1).await.unwrap();
    limiter.answered(&1, &permit, &refusal(&[]));
    tokio::time::advance(secs(600.0)).await;
    limiter.sweep();
    assert_eq!(limiter.len(), 1, "what was learnt is not forgotten");
    assert!(limiter.snapshot_of(&1).unwrap().rate < 100.0);
    tokio::time::advance(secs(90_000.0)).await;
    limiter.sweep();
    assert_eq!(limiter.len(), 0, "a day later it is worth nothing");
}
