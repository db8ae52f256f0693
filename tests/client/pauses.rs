use tower::{Service, ServiceExt};
use tower_throttle::{Adapt, Limiter, Quota};

use crate::support::{Answer, GRAIN, Origin, Timeline, assert_times, request, secs, throttle};

fn fixed(rate: u32, burst: u32) -> Limiter {
    Limiter::builder()
        .quota("q", Quota::per_second(rate).burst(burst))
        .adapt(Adapt::Off)
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn one_clones_429_holds_all_clones() {
    let time = Timeline::start();
    let limiter = Limiter::new(Quota::per_second(10)).unwrap();
    let service = throttle(
        &limiter,
        Origin::new(&time, |number| {
            if number == 0 {
                Answer::status(429).header("retry-after", 60).after(0.05)
            } else {
                Answer::status(200)
            }
        }),
    );
    let tasks: Vec<_> = (0..20)
        .map(|_| tokio::spawn(service.clone().oneshot(request())))
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    let mut due = vec![0.0];
    due.extend((0..19).map(|index| 60.05 + 0.1 * f64::from(index)));
    assert_times(&time.events(), &due);
}

#[tokio::test(start_paused = true)]
async fn a_late_success_does_not_lift_a_pause() {
    let time = Timeline::start();
    let limiter = Limiter::new(Quota::per_second(100).burst(100)).unwrap();
    let service = throttle(
        &limiter,
        Origin::new(&time, |number| match number {
            0 => Answer::status(200).after(5.0),
            1 => Answer::status(429).header("retry-after", 30).after(0.1),
            _ => Answer::status(200),
        }),
    );
    let slow = tokio::spawn(service.clone().oneshot(request()));
    time.at(1.0).await;
    let refused = tokio::spawn(service.clone().oneshot(request()));
    time.at(6.0).await;
    assert!(slow.is_finished() && refused.is_finished());
    service.oneshot(request()).await.unwrap();
    assert_times(&time.events(), &[0.0, 1.0, 31.1]);
}

/// Nor does it raise the rate that the refusal lowered.
#[tokio::test(start_paused = true)]
async fn a_late_success_does_not_raise_the_rate() {
    let time = Timeline::start();
    let limiter = Limiter::new(Quota::per_second(10).burst(10)).unwrap();
    let service = throttle(
        &limiter,
        Origin::new(&time, |number| match number {
            0 => Answer::status(200).after(0.2),
            _ => Answer::status(429).after(0.1),
        }),
    );
    let slow = tokio::spawn(service.clone().oneshot(request()));
    let refused = tokio::spawn(service.clone().oneshot(request()));
    let waiting: Vec<_> = (0..12)
        .map(|_| tokio::spawn(service.clone().oneshot(request())))
        .collect();
    slow.await.unwrap().unwrap();
    refused.await.unwrap().unwrap();
    assert_eq!(limiter.snapshot().rate, 5.0);
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn the_owner_of_a_pause_may_be_aborted() {
    for abort_at in [1.0, 4.9, 5.0, 5.05] {
        let time = Timeline::start();
        let limiter = Limiter::new(Quota::per_second(10)).unwrap();
        let service = throttle(
            &limiter,
            Origin::new(&time, |number| {
                if number == 0 {
                    Answer::status(429).header("retry-after", 5)
                } else {
                    Answer::status(200)
                }
            }),
        );
        let owner = tokio::spawn({
            let mut service = service.clone();
            async move {
                service
                    .ready()
                    .await
                    .unwrap()
                    .call(request())
                    .await
                    .unwrap();
                // A retry wrapper that sleeps out the pause by itself, past the test.
                tokio::time::sleep(secs(100.0)).await;
                service
                    .ready()
                    .await
                    .unwrap()
                    .call(request())
                    .await
                    .unwrap();
            }
        });
        time.at(0.5).await;
        let others: Vec<_> = (0..2)
            .map(|_| tokio::spawn(service.clone().oneshot(request())))
            .collect();
        drop(service);
        time.at(abort_at).await;
        owner.abort();
        for task in others {
            task.await.unwrap().unwrap();
        }
        assert_times(&time.events(), &[0.0, 5.0, 5.1]);
    }
}

/// Without a hint the pause doubles while nothing is accepted, to its cap, and starts again after a success.
#[tokio::test(start_paused = true)]
async fn refusals_without_headers_back_off_and_recover() {
    let time = Timeline::start();
    let limiter = Limiter::builder()
        .quota("q", Quota::per_second(100))
        .adapt(Adapt::Off)
        .backoff(secs(1.0), secs(60.0))
        .build()
        .unwrap();
    let service = throttle(
        &limiter,
        Origin::new(&time, |number| {
            Answer::status(if number < 8 || number == 18 { 429 } else { 200 })
        }),
    );
    let tasks: Vec<_> = (0..20)
        .map(|_| tokio::spawn(service.clone().oneshot(request())))
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    let mut due = vec![0.0, 1.0, 3.0, 7.0, 15.0, 31.0, 63.0, 123.0];
    due.extend((0..=10).map(|index| 183.0 + 0.01 * f64::from(index)));
    // The next one starts from one second again.
    due.push(184.1);
    assert_times(&time.events(), &due);
}

/// After a pause of our own choice one request tests the server, and the others wait for its answer.
#[tokio::test(start_paused = true)]
async fn refusals_of_one_flight_back_off_once_and_one_request_tests_the_server() {
    let time = Timeline::start();
    let limiter = fixed(100, 1);
    let service = throttle(
        &limiter,
        Origin::new(&time, |_| Answer::status(429).after(0.2)),
    );
    let tasks: Vec<_> = (0..60)
        .map(|_| tokio::spawn(service.clone().oneshot(request())))
        .collect();
    time.at(1.15).await;
    // 20 in the first flight (0 to 0.19 s, and the one at 0.2 s where its first answer comes).
    let first = time.count();
    assert!((20..=21).contains(&first), "{first}");
    time.at(3.25).await;
    assert_eq!(time.count() - first, 1);
    assert_eq!(limiter.snapshot().counters.pauses, 2);
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
}

/// With the adaptive rate: halved once by a flight of refusals, and never above the configured rate again.
#[tokio::test(start_paused = true)]
async fn a_flight_of_refusals_halves_the_rate_once_and_successes_restore_it() {
    let time = Timeline::start();
    let limiter = Limiter::new(Quota::per_second(10).burst(10)).unwrap();
    let service = throttle(
        &limiter,
        Origin::new(&time, |number| {
            Answer::status(if (1..10).contains(&number) { 429 } else { 200 }).after(0.1)
        }),
    );
    let first: Vec<_> = (0..10)
        .map(|_| tokio::spawn(service.clone().oneshot(request())))
        .collect();
    for task in first {
        task.await.unwrap().unwrap();
    }
    assert_eq!(limiter.snapshot().rate, 5.0);
    assert_eq!(limiter.snapshot().counters.throttled, 9);
    let rest: Vec<_> = (0..1000)
        .map(|_| tokio::spawn(service.clone().oneshot(request())))
        .collect();
    for task in rest {
        task.await.unwrap().unwrap();
        assert!(limiter.snapshot().rate <= 10.0);
    }
    assert_eq!(
        limiter.snapshot().rate,
        10.0,
        "1000 successes bring it back"
    );
}

/// A refusal with a wait recovers by itself: the first request leaves at the server's instant and nothing else is needed.
#[tokio::test(start_paused = true)]
async fn a_pause_needs_no_success_to_end() {
    let time = Timeline::start();
    let limiter = Limiter::new(Quota::per_second(10).burst(10)).unwrap();
    let service = throttle(
        &limiter,
        Origin::new(&time, |number| {
            if number == 0 {
                Answer::status(429).header("retry-after", 2)
            } else {
                Answer::status(200)
            }
        }),
    );
    let offered: Vec<_> = (0..40)
        .map(|index| {
            let (service, time) = (service.clone(), time.clone());
            tokio::spawn(async move {
                time.at(0.1 * f64::from(index)).await;
                service.oneshot(request()).await.unwrap();
            })
        })
        .collect();
    for task in offered {
        task.await.unwrap();
    }
    let events = time.events();
    assert_times(&events[..3], &[0.0, 2.0, 2.1]);
    assert_eq!(limiter.snapshot().rate, 10.0);
    assert!(events[39] <= secs(6.0) + GRAIN);
}

/// As one would who asks again at once whatever the answer is.
/// Whether it has served before or not.
#[tokio::test(start_paused = true)]
async fn a_server_that_names_a_short_wait_for_ever_is_asked_less_and_less_often() {
    refuses_for_ever_after(0).await;
    refuses_for_ever_after(100).await;
}

async fn refuses_for_ever_after(served: usize) {
    let time = Timeline::start();
    let limiter = Limiter::new(Quota::per_second(100)).unwrap();
    let origin = Origin::new(&time, move |number| {
        if number < served {
            return Answer::status(200).after(0.05);
        }
        Answer::status(429).header("retry-after", 1).after(0.05)
    });
    let service = throttle(&limiter, origin);
    let tasks: Vec<_> = (0..32)
        .map(|_| {
            let service = service.clone();
            tokio::spawn(async move {
                loop {
                    drop(service.clone().oneshot(request()).await);
                }
            })
        })
        .collect();
    time.at(600.0).await;
    for task in tasks {
        task.abort();
    }
    let events = time.events().split_off(served);
    assert!(events.len() < 40, "{}", events.len());
    // What left before the first refusal came; then each pause is tested by one request.
    let first = events[0] + secs(0.06);
    let tests: Vec<_> = events.iter().filter(|&&at| at > first).collect();
    let gaps: Vec<_> = (tests.windows(2))
        .map(|pair| (*pair[1] - *pair[0]).as_secs_f64().round())
        .collect();
    assert_eq!(gaps[..6], [1.0, 1.0, 2.0, 4.0, 8.0, 16.0]);
    assert!(
        gaps[6..].iter().all(|&gap| (31.0..61.0).contains(&gap)),
        "{gaps:?}"
    );
}

/// Once something is accepted the server is believed again.
#[tokio::test(start_paused = true)]
async fn a_named_wait_is_taken_at_its_word_after_something_was_accepted() {
    let time = Timeline::start();
    let limiter = Limiter::builder()
        .quota("q", Quota::per_second(100))
        .adapt(Adapt::Off)
        .build()
        .unwrap();
    let origin = Origin::new(&time, |number| match number {
        2 | 5 | 8 | 11 | 14 => Answer::status(200),
        _ => Answer::status(429).header("retry-after", 3),
    });
    let mut service = throttle(&limiter, origin);
    for _ in 0..16 {
        drop(service.ready().await.unwrap().call(request()).await);
    }
    let events = time.events();
    for pair in events.windows(2) {
        assert!(pair[1] - pair[0] <= secs(3.0) + GRAIN, "{events:?}");
    }
}
