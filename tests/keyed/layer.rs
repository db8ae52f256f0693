use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
};

use http::HeaderName;
use http_body_util::Empty;
use tower::{Layer, Service, ServiceBuilder, ServiceExt};
use tower_throttle::{
    Error, KeyedLimiter, KeyedThrottleLayer, Limiter, Pacing, Quota,
    client::keyed::{HeaderKey, Host},
};

use crate::support::{Answer, Origin, Request, Timeline, assert_times, secs, settle};

fn get(uri: &str) -> Request {
    http::Request::get(uri).body(Empty::new()).unwrap()
}

fn host(number: usize) -> Request {
    get(&format!("https://host-{number}.example/"))
}

fn hosts(quota: Quota) -> KeyedLimiter<Host> {
    KeyedLimiter::new(quota).unwrap()
}

/// C42, behind a `Buffer` and without: A is paused for 60 s and 100 wait for it; 1000 other keys are not delayed.
#[tokio::test(start_paused = true)]
async fn c42_waiting_for_one_key_delays_no_other() {
    for buffered in [true, false] {
        let time = Timeline::start();
        let limiter = hosts(Quota::per_second(1));
        let throttle = KeyedThrottleLayer::by_host(limiter.clone()).layer(Origin::ok(&time));
        let service = if buffered {
            tower::util::BoxCloneService::new(ServiceBuilder::new().buffer(1).service(throttle))
        } else {
            tower::util::BoxCloneService::new(throttle)
        };
        limiter
            .penalize(&Host::from("host-0.example"), secs(60.0))
            .unwrap();
        for _ in 0..100 {
            tokio::spawn(service.clone().oneshot(host(0)));
        }
        time.at(1.0).await;
        assert_eq!(time.count(), 0);
        assert_eq!(
            limiter
                .snapshot_of(&"host-0.example".into())
                .unwrap()
                .queue_len,
            100
        );
        let others: Vec<_> = (1..=1000)
            .map(|number| tokio::spawn(service.clone().oneshot(host(number))))
            .collect();
        for other in others {
            other.await.unwrap().unwrap();
        }
        assert_eq!(time.events(), vec![secs(1.0); 1000]);
        time.at(62.0).await;
        let a: Vec<_> = time.events().split_off(1000);
        assert_times(&a, &[60.0, 61.0, 62.0][..a.len()]);
        assert!(a.len() >= 2);
    }
}

/// C43 c and d.
#[tokio::test(start_paused = true)]
async fn c43_one_host_is_one_key_however_it_is_written() {
    let time = Timeline::start();
    let limiter = hosts(Quota::per_hour(10).burst(10));
    let service = KeyedThrottleLayer::by_host(limiter.clone()).layer(Origin::ok(&time));
    let send = async |uri: &str| service.clone().oneshot(get(uri)).await.unwrap();
    for uri in [
        "https://API.example.com/x",
        "https://api.example.com:443/y",
        "https://api.example.com./z",
        "http://api.example.com:80/",
        "https://user@api.example.com/",
    ] {
        send(uri).await;
    }
    assert_eq!(limiter.len(), 1);
    let one = limiter
        .snapshot_of(&Host::from("Api.Example.Com."))
        .unwrap();
    assert_eq!(one.counters.sent, 5);
    send("https://api.example.com:8443/").await;
    send("http://api.example.com:443/").await;
    send("https://[2001:DB8::1]/").await;
    send("https://[2001:db8::1]:443/").await;
    assert_eq!(limiter.len(), 4);
    assert_eq!(
        limiter
            .snapshot_of(&"[2001:db8::1]".into())
            .unwrap()
            .counters
            .sent,
        2
    );
    // Without authority.
    send("/relative").await;
    send("*").await;
    assert_eq!(limiter.len(), 5);
    assert_eq!(
        limiter.snapshot_of(&Host::UNKNOWN).unwrap().counters.sent,
        2
    );
    assert_eq!(Host::from(""), Host::UNKNOWN);
}

/// C43 a and b, through the layer.
#[tokio::test(start_paused = true)]
async fn c43_an_answer_pauses_whom_it_concerns() {
    for everybody in [false, true] {
        let time = Timeline::start();
        let limiter = hosts(Quota::per_second(10).burst(10));
        let origin = Origin::new(&time, move |number| match (number, everybody) {
            (0, false) => Answer::status(429).header("retry-after", 60),
            (0, true) => {
                (Answer::status(429).header("retry-after", 60)).header("x-ratelimit-global", "true")
            }
            _ => Answer::status(200),
        });
        let service = KeyedThrottleLayer::by_host(limiter).layer(origin);
        let send = |number| service.clone().oneshot(host(number));
        assert_eq!(send(0).await.unwrap().status(), 429);
        send(1).await.unwrap();
        send(0).await.unwrap();
        let due = if everybody {
            [0.0, 60.0, 60.0]
        } else {
            [0.0, 0.0, 60.0]
        };
        assert_times(&time.events(), &due);
    }
}

#[tokio::test(start_paused = true)]
async fn a_classifier_can_say_that_an_answer_concerns_all() {
    let time = Timeline::start();
    let service = KeyedThrottleLayer::by_host(hosts(Quota::per_second(10)))
        .classify(|status, _, feedback| {
            if status == 429 {
                feedback.scope = tower_throttle::feedback::Scope::Global;
            }
        })
        .layer(Origin::new(&time, |number| match number {
            0 => Answer::status(429).header("retry-after", 5),
            _ => Answer::status(200),
        }));
    service.clone().oneshot(host(0)).await.unwrap();
    service.clone().oneshot(host(1)).await.unwrap();
    assert_times(&time.events(), &[0.0, 5.0]);
}

#[tokio::test(start_paused = true)]
async fn keys_come_from_a_header_or_a_function() {
    let time = Timeline::start();
    let name = HeaderName::from_static("x-api-key");
    let with = |key: Option<&str>| {
        let mut request = host(0);
        if let Some(key) = key {
            request.headers_mut().insert(&name, key.parse().unwrap());
        }
        request
    };
    let limiter = KeyedLimiter::new(Quota::per_second(1)).unwrap();
    let service =
        KeyedThrottleLayer::by_header(limiter.clone(), name.clone()).layer(Origin::ok(&time));
    for key in [Some("a"), Some("b"), None, Some(""), Some("a")] {
        service.clone().oneshot(with(key)).await.unwrap();
    }
    assert_times(&time.events(), &[0.0, 0.0, 0.0, 0.0, 1.0]);
    assert!(limiter.snapshot_of(&HeaderKey::new("b")).is_some());
    assert!(limiter.snapshot_of(&HeaderKey::ABSENT).is_some());
    assert!(!format!("{:?}", HeaderKey::new("secret")).contains("secret"));

    let time = Timeline::start();
    let limiter = KeyedLimiter::new(Quota::per_second(1)).unwrap();
    let layer = KeyedThrottleLayer::by(limiter, |request: &Request| request.uri().path().len());
    let service = layer.layer(Origin::ok(&time));
    for uri in ["http://h/ab", "http://h/cd", "http://h/abc"] {
        service.clone().oneshot(get(uri)).await.unwrap();
    }
    assert_times(&time.events(), &[0.0, 1.0, 1.0]);
}

#[tokio::test(start_paused = true)]
async fn errors_come_from_the_response_future_only() {
    let time = Timeline::start();
    let limiter = KeyedLimiter::builder()
        .quota(Quota::per_hour(1))
        .max_wait(secs(1.0))
        .max_keys(1)
        .build()
        .unwrap();
    let mut service = KeyedThrottleLayer::by_host(limiter.clone()).layer(Origin::ok(&time));
    let ours = |error: tower_throttle::BoxError| error.downcast_ref::<Error>().unwrap().clone();
    service.ready().await.unwrap().call(host(0)).await.unwrap();
    let refused = service.ready().await.unwrap().call(host(0)).await;
    assert!(ours(refused.unwrap_err()).is_wait_too_long());
    let refused = service.ready().await.unwrap().call(host(1)).await;
    assert!(ours(refused.unwrap_err()).is_too_many_keys());
    let refused = service.clone().call(host(0)).await;
    assert!(ours(refused.unwrap_err()).is_not_ready());
    limiter.close();
    let refused = service.ready().await.unwrap().call(host(0)).await;
    assert!(ours(refused.unwrap_err()).is_closed());
    assert_eq!(time.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_is_in_flight_until_it_is_over_and_its_key_is_kept() {
    let time = Timeline::start();
    let limiter = hosts(Quota::per_second(1));
    let service = KeyedThrottleLayer::by_host(limiter.clone())
        .layer(Origin::new(&time, |_| Answer::status(200).after(100.0)));
    let call = tokio::spawn(service.clone().oneshot(host(0)));
    time.at(50.0).await;
    assert_eq!(limiter.sweep(), 0);
    let key = Host::from("host-0.example");
    assert_eq!(limiter.snapshot_of(&key).unwrap().in_flight, 1);
    let response = call.await.unwrap().unwrap();
    let pacing = response.extensions().get::<Pacing>().unwrap();
    assert_eq!(pacing.waited, secs(0.0));
    assert_eq!(limiter.snapshot_of(&key).unwrap().in_flight, 0);
    assert_eq!((limiter.sweep(), limiter.len()), (1, 0));
    // Given up.
    let mut call = Box::pin(service.oneshot(host(0)));
    let poll = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(poll.is_pending());
    assert_eq!(limiter.snapshot_of(&key).unwrap().in_flight, 1);
    drop(call);
    assert_eq!(limiter.snapshot_of(&key).unwrap().in_flight, 0);
}

/// Dropped while it waits for its key, or past it for the global limiter.
#[tokio::test(start_paused = true)]
async fn a_dropped_request_gives_back_both() {
    let time = Timeline::start();
    let global = Limiter::new(Quota::per_second(1).burst(2)).unwrap();
    let limiter = KeyedLimiter::builder()
        .quota(Quota::per_second(1))
        .global(global.clone())
        .build()
        .unwrap();
    let service = KeyedThrottleLayer::by_host(limiter.clone()).layer(Origin::ok(&time));
    service.clone().oneshot(host(0)).await.unwrap();
    service.clone().oneshot(host(1)).await.unwrap();
    let mut waiting: Vec<_> = [0, 2]
        .map(|number| Box::pin(service.clone().oneshot(host(number))))
        .into();
    for call in &mut waiting {
        let poll = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(poll.is_pending());
    }
    assert_eq!(global.snapshot().queue_len, 1);
    drop(waiting);
    time.at(2.0).await;
    assert_eq!(global.snapshot().level, 2.0);
    for number in [0, 2] {
        service.clone().oneshot(host(number)).await.unwrap();
    }
    assert_times(&time.events(), &[0.0, 0.0, 2.0, 2.0]);
}

/// The inner service that was ready is the one that is called, after the wait, and its clones are asked anew.
#[tokio::test(start_paused = true)]
async fn poll_ready_asks_the_inner_service_and_takes_nothing() {
    #[derive(Clone)]
    struct Counted(Origin, Arc<AtomicUsize>);
    impl Service<Request> for Counted {
        type Response = http::Response<&'static str>;
        type Error = tower_throttle::BoxError;
        type Future = <Origin as Service<Request>>::Future;
        fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
            self.1.fetch_add(1, Ordering::Relaxed);
            self.0.poll_ready(cx)
        }
        fn call(&mut self, request: Request) -> Self::Future {
            self.0.call(request)
        }
    }
    let time = Timeline::start();
    let asked = Arc::new(AtomicUsize::new(0));
    let limiter = hosts(Quota::per_second(1));
    let mut service = KeyedThrottleLayer::by_host(limiter.clone())
        .layer(Counted(Origin::ok(&time), Arc::clone(&asked)));
    for _ in 0..3 {
        poll_fn(|cx| Service::<Request>::poll_ready(&mut service, cx))
            .await
            .unwrap();
    }
    assert_eq!(asked.load(Ordering::Relaxed), 3);
    assert!(limiter.is_empty());
    let first = service.call(host(0));
    assert_eq!(time.count(), 1, "sent by the call itself");
    let second = service.ready().await.unwrap().call(host(0));
    assert_eq!(time.count(), 1);
    settle().await;
    first.await.unwrap();
    second.await.unwrap();
    assert_times(&time.events(), &[0.0, 1.0]);
}
