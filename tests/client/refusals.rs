use tower::{Layer, Service, ServiceExt, buffer::Buffer};
use tower_throttle::{Error, Limiter, Quota, ThrottleLayer};

use crate::support::{Answer, Origin, Timeline, assert_times, request, secs};

/// A refusal is the error of one request. A `Buffer` around the stack, as kube, octocrab and tonic have, lives on.
#[tokio::test(start_paused = true)]
async fn a_refusal_does_not_kill_a_buffer() {
    let limiter = Limiter::builder()
        .quota("q", Quota::per_second(1))
        .max_wait(secs(0.5))
        .build()
        .unwrap();
    let time = Timeline::start();
    let mut service = Buffer::new(ThrottleLayer::new(limiter).layer(Origin::ok(&time)), 8);
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(service.ready().await.unwrap().call(request()));
    }
    let mut refused = 0;
    for answer in answers {
        if let Err(error) = answer.await {
            let error = error.downcast_ref::<Error>().unwrap();
            assert!(error.is_wait_too_long());
            assert_eq!(error.retry_after(), Some(secs(1.0)));
            refused += 1;
        }
    }
    assert_eq!(refused, 2);
    time.at(1.0).await;
    service
        .ready()
        .await
        .unwrap()
        .call(request())
        .await
        .unwrap();
    assert_times(&time.events(), &[0.0, 1.0]);
}

#[tokio::test(start_paused = true)]
async fn an_absurd_server_pause_is_an_error_that_says_when() {
    let limiter = Limiter::builder()
        .quota("q", Quota::per_second(1))
        .max_pause(secs(60.0))
        .build()
        .unwrap();
    let time = Timeline::start();
    let mut service = ThrottleLayer::new(limiter.clone()).layer(Origin::new(&time, |_| {
        Answer::status(429).header("retry-after", 7200)
    }));
    let refused = service.ready().await.unwrap().call(request()).await;
    assert_eq!(
        refused.unwrap().status(),
        429,
        "the answer itself is passed on"
    );
    let error = service
        .ready()
        .await
        .unwrap()
        .call(request())
        .await
        .unwrap_err();
    let error = error.downcast_ref::<Error>().unwrap();
    assert!(error.is_paused());
    assert_eq!(error.retry_after(), Some(secs(7200.0)));
    assert_eq!(time.count(), 1);
    assert_eq!(limiter.snapshot().counters.refused, 1);
}

#[tokio::test(start_paused = true)]
async fn a_closed_limiter_is_an_error_of_the_call() {
    let limiter = Limiter::new(Quota::per_second(1)).unwrap();
    let time = Timeline::start();
    let service = ThrottleLayer::new(limiter.clone()).layer(Origin::ok(&time));
    limiter.penalize(secs(100.0));
    let waiting = tokio::spawn(service.clone().oneshot(request()));
    crate::support::settle().await;
    limiter.close();
    for answer in [waiting.await.unwrap(), service.oneshot(request()).await] {
        assert!(
            answer
                .unwrap_err()
                .downcast_ref::<Error>()
                .unwrap()
                .is_closed()
        );
    }
    assert_eq!(time.count(), 0);
}
