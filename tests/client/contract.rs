use std::task::Poll;

use tower::{
    Layer, Service, ServiceExt,
    buffer::Buffer,
    limit::{ConcurrencyLimit, ConcurrencyLimitLayer},
    steer::Steer,
};
use tower_test::mock;
use tower_throttle::{Error, Limiter, Quota, Throttle, ThrottleLayer};

use crate::support::{Origin, Request, Timeline, assert_times, poll_once, request, secs, settle};

fn limiter(rate: u32, burst: u32) -> Limiter {
    Limiter::new(Quota::per_second(rate).burst(burst)).unwrap()
}

fn throttle(limiter: &Limiter, time: &Timeline) -> Throttle<Origin> {
    ThrottleLayer::new(limiter.clone()).layer(Origin::ok(time))
}

fn is_ready<S: Service<Request>>(service: &mut S) -> bool {
    let poll = std::future::poll_fn(|cx| Poll::Ready(service.poll_ready(cx).is_ready()));
    matches!(poll_once(poll).1, Poll::Ready(true))
}

/// The origin panics if any instance but the one polled ready is called.
#[tokio::test(start_paused = true)]
async fn the_instance_that_was_ready_is_the_one_called() {
    let time = Timeline::start();
    let limiter = limiter(1000, 1000);
    let layer = ThrottleLayer::new(limiter);
    let bare = layer.layer(Origin::ok(&time));
    let limited = layer.layer(ConcurrencyLimit::new(Origin::ok(&time), 1));
    let buffered = layer.layer(Buffer::new(Origin::ok(&time), 1));
    async fn drive<S>(service: S)
    where
        S: Service<Request> + Clone + Send + 'static,
        S::Error: std::fmt::Debug,
        S::Future: Send,
        S::Response: Send,
    {
        let mut one = service.clone();
        for _ in 0..100 {
            one.ready().await.unwrap().call(request()).await.unwrap();
        }
        let tasks: Vec<_> = (0..10)
            .map(|_| {
                let mut service = service.clone();
                tokio::spawn(async move {
                    for _ in 0..10 {
                        service
                            .ready()
                            .await
                            .unwrap()
                            .call(request())
                            .await
                            .unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    }
    drive(bare).await;
    drive(limited).await;
    drive(buffered).await;
    assert_eq!(time.count(), 600);
}

#[tokio::test(start_paused = true)]
async fn a_clone_of_a_ready_service_starts_unready() {
    let time = Timeline::start();
    let mut original = throttle(&limiter(1, 1), &time);
    original.ready().await.unwrap();
    let mut clone = original.clone();
    assert!(!is_ready(&mut clone));
    time.at(0.999).await;
    assert!(!is_ready(&mut clone));
    assert_eq!(time.count(), 0);
    clone.ready().await.unwrap();
    assert_times(&[time.now()], &[1.0]);
}

/// Loudly, with an error and nothing sent; a panic would take the task down for a mistake that harms nobody.
#[tokio::test(start_paused = true)]
async fn calling_an_unready_service_is_an_error_and_sends_nothing() {
    let time = Timeline::start();
    let mut service = throttle(&limiter(1, 1), &time);
    let error = service.call(request()).await.unwrap_err();
    assert!(error.downcast_ref::<Error>().unwrap().is_not_ready());
    assert_eq!(time.count(), 0);
    // Waiting in line is not ready either, and calling does not lose the place.
    service
        .ready()
        .await
        .unwrap()
        .call(request())
        .await
        .unwrap();
    assert!(!is_ready(&mut service));
    assert!(service.call(request()).await.is_err());
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
async fn a_ready_service_that_is_dropped_hands_its_token_on() {
    let time = Timeline::start();
    let limiter = limiter(1, 1);
    let mut idle = throttle(&limiter, &time);
    idle.ready().await.unwrap();
    let tasks: Vec<_> = [0.1, 0.2]
        .map(|at| {
            let (service, time) = (throttle(&limiter, &time), time.clone());
            tokio::spawn(async move {
                time.at(at).await;
                service.oneshot(request()).await.unwrap();
            })
        })
        .into();
    time.at(0.5).await;
    drop(idle);
    for task in tasks {
        task.await.unwrap();
    }
    assert_times(&time.events(), &[0.5, 1.5]);
}

#[tokio::test(start_paused = true)]
async fn a_ready_service_kept_for_an_hour_costs_one_token_in_all() {
    let time = Timeline::start();
    let limiter = limiter(1, 1);
    let mut idle = throttle(&limiter, &time);
    idle.ready().await.unwrap();
    let mut busy = throttle(&limiter, &time);
    for _ in 0..3600 {
        busy.ready().await.unwrap().call(request()).await.unwrap();
    }
    let due: Vec<f64> = (1..=3600).map(f64::from).collect();
    assert_times(&time.events(), &due);
    // Called after all, it waits for room instead of adding to the burst.
    idle.call(request()).await.unwrap();
    assert_times(&time.events()[3600..], &[3601.0]);
}

#[tokio::test(start_paused = true)]
async fn a_call_long_after_ready_uses_one_token() {
    let time = Timeline::start();
    let limiter = limiter(1, 1);
    let mut idle = throttle(&limiter, &time);
    idle.ready().await.unwrap();
    time.at(3600.0).await;
    idle.call(request()).await.unwrap();
    throttle(&limiter, &time).oneshot(request()).await.unwrap();
    assert_times(&time.events(), &[3600.0, 3601.0]);
}

#[tokio::test(start_paused = true)]
async fn polling_a_ready_service_again_takes_nothing() {
    let time = Timeline::start();
    let limiter = limiter(1, 5);
    let mut service = throttle(&limiter, &time);
    for _ in 0..1000 {
        assert!(is_ready(&mut service));
    }
    assert_eq!(limiter.snapshot().level, 4.0);
    assert_eq!(limiter.snapshot().held, 1);
}

#[tokio::test(start_paused = true)]
async fn an_inner_error_comes_from_poll_ready_and_the_token_goes_back() {
    let limiter = limiter(1, 1);
    let (service, mut handle) = mock::pair::<Request, http::Response<()>>();
    let mut service = ThrottleLayer::new(limiter.clone()).layer(service);
    handle.send_error("inner is down");
    let error = service.ready().await.unwrap_err();
    assert!(error.downcast_ref::<Error>().is_none());
    drop(service);
    assert_eq!(limiter.snapshot().level, 1.0);
}

/// The token comes first; while the inner service is not ready a pause arrives, and it is seen.
#[tokio::test(start_paused = true)]
async fn a_pause_set_while_the_inner_service_was_not_ready_is_seen() {
    let limiter = limiter(10, 10);
    let time = Timeline::start();
    let (service, mut handle) = mock::pair::<Request, http::Response<()>>();
    let mut service = ThrottleLayer::new(limiter.clone()).layer(service);
    handle.allow(0);
    let task = tokio::spawn({
        let time = time.clone();
        async move {
            service.ready().await.unwrap();
            let ready = time.now();
            (ready, service.call(request()).await)
        }
    });
    settle().await;
    limiter.penalize(secs(5.0));
    handle.allow(1);
    let (_, answer) = handle.next_request().await.unwrap();
    answer.send_response(http::Response::new(()));
    let (ready, answer) = task.await.unwrap();
    answer.unwrap();
    assert_times(&[ready], &[5.0]);
}

/// A pause arrives between ready and call: the request waits it out in its future, at the front of the line.
#[tokio::test(start_paused = true)]
async fn a_pause_between_ready_and_call_holds_the_request() {
    let limiter = limiter(10, 10);
    let time = Timeline::start();
    let mut service = throttle(&limiter, &time);
    service.ready().await.unwrap();
    limiter.penalize(secs(5.0));
    assert!(is_ready(&mut service), "ready stays ready");
    let held = tokio::spawn(service.call(request()));
    let later = tokio::spawn(throttle(&limiter, &time).oneshot(request()));
    held.await.unwrap().unwrap();
    assert_times(&[time.now()], &[5.0]);
    later.await.unwrap().unwrap();
    assert_times(&time.events(), &[5.0, 5.1]);
    // The service itself is usable again.
    service
        .ready()
        .await
        .unwrap()
        .call(request())
        .await
        .unwrap();
    assert_times(&time.events()[2..], &[5.2]);
}

/// `Steer` polls all its services ready and calls one; the other keeps its token set aside and nobody starves.
#[tokio::test(start_paused = true)]
async fn callers_that_poll_ready_and_never_call_starve_nobody() {
    let limiter = limiter(1, 1);
    let (never, always) = (Timeline::start(), Timeline::start());
    let services = vec![throttle(&limiter, &never), throttle(&limiter, &always)];
    let mut steer = Steer::new(services, |_: &Request, _: &[_]| 1);
    for _ in 0..5 {
        steer.ready().await.unwrap().call(request()).await.unwrap();
    }
    assert_eq!(never.count(), 0);
    assert_times(&always.events(), &[1.0, 2.0, 3.0, 4.0, 5.0]);
}

/// A machine that is late grants many at once, takes most of it back, and still serves everybody.
#[tokio::test(start_paused = true)]
async fn a_late_machine_parks_nobody() {
    for (callers, each, first, at, late, times) in [
        (80, 1, 429, 0.05, 0.8, 1),
        (80, 1, 429, 0.05, 0.1, 1),
        (30, 20, 200, 0.105, 0.2, 3),
    ] {
        let time = Timeline::start();
        let limiter = limiter(100, 1);
        let service =
            ThrottleLayer::new(limiter.clone()).layer(Origin::new(&time, move |number| {
                let status = if number == 0 { first } else { 200 };
                crate::support::Answer::status(status).after(0.002)
            }));
        let tasks: Vec<_> = (0..callers)
            .map(|_| {
                let service = service.clone();
                tokio::spawn(async move {
                    for _ in 0..each {
                        service.clone().oneshot(request()).await.unwrap();
                    }
                })
            })
            .collect();
        for _ in 0..times {
            tokio::time::sleep(secs(at)).await;
            tokio::time::advance(secs(late)).await;
        }
        for task in tasks {
            let done = tokio::time::timeout(secs(60.0), task).await;
            done.unwrap_or_else(|_| panic!("{:?}", limiter.snapshot()))
                .unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_concurrency_limit_outside_still_limits() {
    let time = Timeline::start();
    let service = tower::ServiceBuilder::new()
        .layer(ConcurrencyLimitLayer::new(1))
        .layer(ThrottleLayer::new(limiter(100, 100)))
        .service(Origin::new(&time, |_| {
            crate::support::Answer::status(200).after(1.0)
        }));
    let tasks: Vec<_> = (0..3)
        .map(|_| tokio::spawn(service.clone().oneshot(request())))
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_times(&time.events(), &[0.0, 1.0, 2.0]);
}
