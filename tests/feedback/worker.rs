//! What is told to a limiter without headers: by a worker that calls a database or a gRPC service, or by a classifier. All of it from
//! outside the crate, as a user writes it.

use std::time::Duration;

use tower::{Layer, ServiceExt};
use tower_throttle::{
    Adapt, Error, KeyedLimiter, KeyedThrottleLayer, Limiter, Quota, ThrottleLayer,
    feedback::{Feedback, Hold},
};

use crate::support::{Answer, Origin, Timeline, assert_times, request, secs};

struct TooMany {
    retry_in: Option<Duration>,
}

/// A database that refuses the calls of these numbers.
struct Database {
    calls: Timeline,
    refusals: Vec<(usize, Option<Duration>)>,
}

impl Database {
    async fn insert(&self, _: u32) -> Result<(), TooMany> {
        let number = self.calls.count();
        self.calls.mark();
        match self.refusals.iter().find(|(at, _)| *at == number) {
            Some(&(_, retry_in)) => Err(TooMany { retry_in }),
            None => Ok(()),
        }
    }
}

async fn work(limiter: &Limiter, database: &Database, mut jobs: Vec<u32>) -> Result<(), Error> {
    while let Some(job) = jobs.pop() {
        let permit = limiter.acquire(1).await?;
        let feedback = match database.insert(job).await {
            Ok(()) => Feedback::accepted(),
            Err(TooMany { retry_in }) => {
                jobs.push(job);
                Feedback::refusal(retry_in)
            }
        };
        limiter.answered(&permit, &feedback);
    }
    Ok(())
}

fn limiter() -> Limiter {
    Limiter::builder()
        .quota("calls", Quota::per_second(10))
        .adapt(Adapt::Off)
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_worker_names_the_wait_of_a_refusal() {
    let database = Database {
        calls: Timeline::start(),
        refusals: vec![(1, Some(Duration::from_secs(30)))],
    };
    let limiter = limiter();
    work(&limiter, &database, vec![1, 2, 3]).await.unwrap();
    assert_times(&database.calls.events(), &[0.0, 0.1, 30.1, 30.2]);
    let counters = limiter.snapshot().counters;
    assert_eq!((counters.throttled, counters.pauses), (1, 1));
}

/// Without a wait, or with one of zero, the limiter's own back-off holds, which grows.
#[tokio::test(start_paused = true)]
async fn a_refusal_without_a_wait_is_backed_off_from() {
    let database = Database {
        calls: Timeline::start(),
        refusals: vec![(1, None), (2, Some(Duration::ZERO))],
    };
    work(&limiter(), &database, vec![1, 2]).await.unwrap();
    assert_times(&database.calls.events(), &[0.0, 0.1, 1.1, 3.1]);
}

#[tokio::test(start_paused = true)]
async fn a_wait_beyond_the_longest_pause_ends_the_worker_with_an_error_that_says_when() {
    let database = Database {
        calls: Timeline::start(),
        refusals: vec![(0, Some(Duration::from_secs(7_200)))],
    };
    let error = work(&limiter(), &database, vec![1]).await.unwrap_err();
    assert!(error.is_paused());
    assert_eq!(error.retry_after(), Some(secs(7_200.0)));
}

#[tokio::test(start_paused = true)]
async fn a_worker_with_keys_does_the_same() {
    let limiter = KeyedLimiter::new(Quota::per_second(10)).unwrap();
    let permit = limiter.acquire(&"tenant", 1).await.unwrap();
    limiter.answered(&"tenant", &permit, &Feedback::refusal(Some(secs(5.0))));
    let time = Timeline::start();
    limiter.acquire(&"other", 1).await.unwrap();
    assert_times(&[time.now()], &[0.0]);
    limiter.acquire(&"tenant", 1).await.unwrap();
    assert_times(&[time.now()], &[5.0]);
}

/// A classifier can say that a 200 is a refusal, how long to wait, and where that stands.
#[tokio::test(start_paused = true)]
async fn a_classifier_names_the_wait_of_a_refusal() {
    let time = Timeline::start();
    let layer = ThrottleLayer::new(limiter()).classify(|_, headers, feedback| {
        if let Some(wait) = headers.get("x-overloaded-for") {
            let wait = wait.to_str().unwrap_or_default().parse().unwrap_or(1);
            let hold = Hold::new(Duration::from_secs(wait)).field("x-overloaded-for");
            feedback.refused = true;
            feedback.hold = Some(hold);
        }
    });
    let service = layer.layer(Origin::new(&time, |number| match number {
        0 => Answer::status(200).header("x-overloaded-for", 7),
        _ => Answer::status(200),
    }));
    for _ in 0..2 {
        service.clone().oneshot(request()).await.unwrap();
    }
    assert_times(&time.events(), &[0.0, 7.0]);
}

/// And that a refusal is none.
#[tokio::test(start_paused = true)]
async fn a_classifier_forgives_a_refusal() {
    let time = Timeline::start();
    let limiter = KeyedLimiter::new(Quota::per_second(10)).unwrap();
    let layer = KeyedThrottleLayer::by_host(limiter).classify(|_, headers, feedback| {
        if headers.contains_key("x-not-our-fault") {
            *feedback = Feedback::accepted();
        }
    });
    let service = layer.layer(Origin::new(&time, |_| {
        (Answer::status(429).header("retry-after", 60)).header("x-not-our-fault", "yes")
    }));
    for _ in 0..2 {
        service.clone().oneshot(request()).await.unwrap();
    }
    assert_times(&time.events(), &[0.0, 0.1]);
}

#[test]
fn what_is_told_looks_like_what_is_read() {
    assert_eq!(Feedback::accepted(), Feedback::default());
    let told = Feedback::refusal(Some(secs(30.0)));
    assert!(told.refused);
    assert_eq!(told.wait(), Some(secs(30.0)));
    let hold = told.hold.unwrap();
    assert_eq!(
        (hold, hold.field),
        (Hold::new(secs(30.0)), Hold::APPLICATION)
    );
    assert_eq!(Feedback::refusal(None).wait(), None);
    let read = crate::read::answer(429, &[("retry-after", "30")]);
    assert_eq!(read.hold, Some(Hold::new(secs(30.0)).field("retry-after")));
}
