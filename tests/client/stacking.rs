use std::time::Duration;

use http::Response;
use tower::{Layer, Service, ServiceBuilder, ServiceExt, retry::Policy};
use tower_throttle::{BoxError, Limiter, Quota, ThrottleLayer};

use crate::support::{Answer, Origin, Request, Timeline, assert_times, request, secs};

fn limiter(quota: Quota) -> Limiter {
    Limiter::new(quota).unwrap()
}

/// Repeats what was not a success, as a retry layer does.
#[derive(Debug, Clone)]
struct Again(usize);

impl Policy<Request, Response<&'static str>, BoxError> for Again {
    type Future = std::future::Ready<()>;

    fn retry(
        &mut self,
        _: &mut Request,
        result: &mut Result<Response<&'static str>, BoxError>,
    ) -> Option<Self::Future> {
        let failed = !matches!(result, Ok(response) if response.status().is_success());
        self.0 = self.0.checked_sub(1)?;
        failed.then(|| std::future::ready(()))
    }

    fn clone_request(&mut self, request: &Request) -> Option<Request> {
        Some(request.clone())
    }
}

fn flaky(time: &Timeline) -> Origin {
    Origin::new(time, |number| {
        Answer::status(if number < 2 { 503 } else { 200 })
    })
}

#[tokio::test(start_paused = true)]
async fn retries_outside_the_throttle_pay_for_each_attempt() {
    let time = Timeline::start();
    let limiter = limiter(Quota::per_second(1));
    let service = ServiceBuilder::new()
        .retry(Again(5))
        .layer(ThrottleLayer::new(limiter.clone()))
        .service(flaky(&time));
    assert_eq!(service.oneshot(request()).await.unwrap().status(), 200);
    assert_times(&time.events(), &[0.0, 1.0, 2.0]);
    assert_eq!(limiter.snapshot().counters.sent, 3);
}

#[tokio::test(start_paused = true)]
async fn retries_inside_the_throttle_pay_once() {
    let time = Timeline::start();
    let limiter = limiter(Quota::per_second(1));
    let service = ServiceBuilder::new()
        .layer(ThrottleLayer::new(limiter.clone()))
        .retry(Again(5))
        .service(flaky(&time));
    assert_eq!(service.oneshot(request()).await.unwrap().status(), 200);
    assert_times(&time.events(), &[0.0, 0.0, 0.0]);
    assert_eq!(limiter.snapshot().counters.sent, 1);
}

#[tokio::test(start_paused = true)]
async fn a_retry_waits_for_the_server_and_pays_a_token() {
    let time = Timeline::start();
    let limiter = limiter(Quota::new(1, Duration::from_secs(2)));
    let origin = Origin::new(&time, |number| {
        if number == 0 {
            Answer::status(429).header("retry-after", 5)
        } else {
            Answer::status(200)
        }
    });
    let service = ServiceBuilder::new()
        .retry(Again(5))
        .layer(ThrottleLayer::new(limiter.clone()))
        .service(origin);
    let first = tokio::spawn(service.clone().oneshot(request()));
    time.at(1.0).await;
    let second = tokio::spawn(service.oneshot(request()));
    assert_eq!(first.await.unwrap().unwrap().status(), 200);
    assert_eq!(second.await.unwrap().unwrap().status(), 200);
    assert_times(&time.events(), &[0.0, 5.0, 7.0]);
    assert_eq!(limiter.snapshot().counters.sent, 3);
}

#[tokio::test(start_paused = true)]
async fn a_not_modified_answer_is_refunded_only_if_asked() {
    for (refund, left) in [(true, 1.0), (false, 0.0)] {
        let time = Timeline::start();
        let limiter = limiter(Quota::per_second(1));
        let mut service = ThrottleLayer::new(limiter.clone())
            .refund_not_modified(refund)
            .layer(Origin::new(&time, |_| Answer::status(304)));
        service
            .ready()
            .await
            .unwrap()
            .call(request())
            .await
            .unwrap();
        assert_eq!(limiter.snapshot().level, left);
    }
}

#[tokio::test(start_paused = true)]
async fn queue_time_and_request_time_have_their_own_deadlines() {
    let bounded = || {
        Limiter::builder()
            .quota("q", Quota::per_second(1))
            .max_wait(secs(2.0))
            .build()
            .unwrap()
    };
    // A slow answer is within a timeout around the call, though it stood in line before.
    let time = Timeline::start();
    let limiter = bounded();
    let mut service = ServiceBuilder::new()
        .timeout(secs(5.0))
        .layer(ThrottleLayer::new(limiter.clone()))
        .service(Origin::new(&time, |_| Answer::status(200).after(4.0)));
    limiter.try_acquire(1).unwrap();
    service
        .ready()
        .await
        .unwrap()
        .call(request())
        .await
        .unwrap();
    assert_times(&time.events(), &[1.0]);
    // `max_wait` does not cut a request that has left.
    let time = Timeline::start();
    let service = ThrottleLayer::new(bounded())
        .layer(Origin::new(&time, |_| Answer::status(200).after(10.0)));
    service.oneshot(request()).await.unwrap();
    assert_times(&[time.now()], &[10.0]);
    // A caller that stops waiting is not sent later.
    let time = Timeline::start();
    let limiter = bounded();
    let mut service = ThrottleLayer::new(limiter.clone()).layer(Origin::ok(&time));
    limiter.try_acquire(1).unwrap();
    let waiting = tokio::time::timeout(secs(0.5), service.ready());
    assert!(waiting.await.is_err());
    drop(service);
    let service = ThrottleLayer::new(limiter).layer(Origin::ok(&time));
    service.oneshot(request()).await.unwrap();
    assert_times(&time.events(), &[1.0]);
}

/// Dropping the response future counts the request as used and closes it.
#[tokio::test(start_paused = true)]
async fn a_request_given_up_in_flight_is_over_and_used() {
    let time = Timeline::start();
    let limiter = limiter(Quota::per_second(1));
    let mut service = ThrottleLayer::new(limiter.clone())
        .layer(Origin::new(&time, |_| Answer::status(200).after(100.0)));
    let call = service.ready().await.unwrap().call(request());
    assert_eq!(limiter.snapshot().in_flight, 1);
    assert!(tokio::time::timeout(secs(0.5), call).await.is_err());
    assert_eq!(limiter.snapshot().in_flight, 0);
    assert!(limiter.try_acquire(1).is_err(), "nothing is refunded");
}
