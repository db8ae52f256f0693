//! Changes while it runs, and trial runs.

use std::time::Duration;

use tower_throttle::{Limiter, Quota, Regime};

use crate::support::{Timeline, assert_times, secs, settle};

/// Callers in line at 0 s, each marking when it got its permit.
async fn line(limiter: &Limiter, callers: u32) -> Timeline {
    let sent = Timeline::start();
    for _ in 0..callers {
        let (limiter, sent) = (limiter.clone(), sent.clone());
        tokio::spawn(async move {
            if limiter.acquire(1).await.is_ok() {
                sent.mark();
            }
        });
    }
    settle().await;
    sent
}

fn limiter(quota: Quota) -> Limiter {
    Limiter::builder().quota("q", quota).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_new_rate_is_seen_by_those_who_wait() {
    let limiter = limiter(Quota::per_minute(1));
    let sent = line(&limiter, 4).await;
    sent.at(1.0).await;
    limiter.set_quota("q", Quota::per_second(10)).unwrap();
    sent.at(2.0).await;
    // A sixtieth of a token had come.
    let first = 1.0 + 0.1 * (59.0 / 60.0);
    assert_times(&sent.events(), &[0.0, first, first + 0.1, first + 0.2]);
    limiter.set_quota("q", Quota::per_minute(1)).unwrap();
    assert_eq!(limiter.snapshot().configured_rate, 1.0 / 60.0);
}

#[tokio::test(start_paused = true)]
async fn tokens_stay_but_for_what_is_above_the_new_burst() {
    let limiter = limiter(Quota::per_second(10).burst(10));
    limiter.try_acquire(4).unwrap();
    limiter
        .set_quota("q", Quota::per_minute(7).burst(100))
        .unwrap();
    assert_eq!(limiter.snapshot().level, 6.0);
    limiter.resize("q", 5).unwrap();
    assert_eq!(limiter.snapshot().level, 5.0);
    assert_eq!(limiter.snapshot().burst, 5);
    limiter.resize("q", 50).unwrap();
    assert_eq!(limiter.snapshot().level, 5.0);
}

#[tokio::test(start_paused = true)]
async fn a_bad_change_changes_nothing() {
    let limiter = limiter(Quota::per_second(10).burst(10));
    assert!(limiter.set_quota("other", Quota::per_second(1)).is_err());
    assert!(limiter.set_quota("q", Quota::per_second(0)).is_err());
    assert!(limiter.resize("q", 0).is_err());
    assert!(limiter.resize("other", 1).is_err());
    assert!(
        limiter
            .set_quota("q", Quota::at_most(5, Duration::from_secs(1)))
            .is_err()
    );
    let snapshot = limiter.snapshot();
    assert_eq!((snapshot.configured_rate, snapshot.burst), (10.0, 10));
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_more_than_the_new_burst_is_told() {
    let limiter = limiter(Quota::per_second(1).burst(10));
    limiter.try_acquire(10).unwrap();
    let large = tokio::spawn({
        let limiter = limiter.clone();
        async move { limiter.acquire(8).await }
    });
    let small = tokio::spawn({
        let limiter = limiter.clone();
        async move { limiter.acquire(2).await }
    });
    settle().await;
    limiter.resize("q", 5).unwrap();
    assert!(large.await.unwrap().unwrap_err().is_too_expensive());
    assert_eq!(small.await.unwrap().unwrap().waited(), secs(2.0));
}

#[tokio::test(start_paused = true)]
async fn a_pause_holds_everybody_until_it_is_ended() {
    let limiter = limiter(Quota::per_second(10).burst(10));
    limiter.pause();
    assert_eq!(limiter.snapshot().regime, Regime::Paused);
    let sent = line(&limiter, 3).await;
    sent.at(5.0).await;
    assert!(limiter.try_acquire(1).is_err());
    assert_eq!(sent.count(), 0);
    limiter.resume();
    sent.at(6.0).await;
    assert_times(&sent.events(), &[5.0, 5.1, 5.2]);
}

#[tokio::test(start_paused = true)]
async fn the_servers_pause_outlasts_ours() {
    let limiter = limiter(Quota::per_second(10).burst(10));
    limiter.pause();
    limiter.penalize(secs(3.0));
    let sent = line(&limiter, 2).await;
    sent.at(1.0).await;
    limiter.resume();
    sent.at(4.0).await;
    assert_times(&sent.events(), &[3.0, 3.1]);
}

#[tokio::test(start_paused = true)]
async fn patience_can_be_changed() {
    let limiter = limiter(Quota::per_second(1));
    let sent = line(&limiter, 3).await;
    limiter.set_max_queue(Some(2));
    assert!(limiter.acquire(1).await.unwrap_err().is_queue_full());
    limiter.set_max_queue(None);
    limiter.set_max_wait(Some(secs(1.0)));
    let error = limiter.acquire(1).await.unwrap_err();
    assert!(error.is_wait_too_long());
    assert_eq!(error.retry_after(), Some(secs(3.0)));
    limiter.penalize(secs(100.0));
    limiter.set_max_pause(secs(50.0));
    settle().await;
    assert!(limiter.acquire(1).await.unwrap_err().is_paused());
    // Those in line were told.
    assert_eq!(limiter.snapshot().queue_len, 0);
    sent.at(200.0).await;
    assert_eq!(sent.count(), 1);
}

/// Three hours of a trial run leave no debt.
#[tokio::test(start_paused = true)]
async fn a_trial_run_delays_nothing_and_owes_nothing() {
    let limiter = Limiter::builder()
        .quota("q", Quota::per_second(10).burst(10))
        .observe_only()
        .build()
        .unwrap();
    let time = Timeline::start();
    let (mut would, mut sent) = (0, 0);
    while time.now() < secs(3.0 * 3600.0) {
        let before = time.now();
        let permit = limiter.acquire(1).await.unwrap();
        assert_eq!(time.now(), before);
        assert_eq!(permit.waited(), Duration::ZERO);
        would += u64::from(permit.would_wait() > Duration::ZERO);
        sent += 1;
        tokio::time::advance(Duration::from_millis(50)).await;
    }
    let share = would as f64 / f64::from(sent);
    assert!((0.45..=0.55).contains(&share), "{share}");
    assert_eq!(limiter.snapshot().counters.would_wait, would);
    limiter.set_observe_only(false);
    limiter
        .set_quota("q", Quota::per_second(30).burst(10))
        .unwrap();
    let permit = limiter.acquire(1).await.unwrap();
    assert!(permit.waited() <= Duration::from_millis(34), "{permit:?}");
}

#[tokio::test(start_paused = true)]
async fn a_trial_run_can_begin_and_end_at_any_time() {
    let limiter = limiter(Quota::per_second(1));
    let sent = line(&limiter, 10).await;
    limiter.set_observe_only(true);
    settle().await;
    assert_eq!(sent.count(), 10);
    limiter.penalize(secs(10.0));
    let permit = limiter.acquire(1).await.unwrap();
    assert!(permit.would_wait() >= secs(10.0), "{permit:?}");
    limiter.set_observe_only(false);
    let permit = limiter.acquire(1).await.unwrap();
    assert_eq!(permit.waited(), secs(10.0));
    limiter.set_observe_only(true);
    limiter.close();
    assert!(limiter.acquire(1).await.unwrap_err().is_closed());
}
