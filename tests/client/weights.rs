//! What requests cost in the layer: known from their head, from their extensions, or from their answers.

use std::time::Duration;

use tower::{Layer, ServiceExt};
use tower_throttle::{
    Cost, Deadline, Error, Limiter, Priority, Quota, ThrottleLayer, client::Receipt,
};

use crate::support::{Answer, Origin, Request, Timeline, assert_times, request, secs, settle};

fn two() -> Limiter {
    Limiter::builder()
        .quota("requests", Quota::per_second(10).burst(10))
        .quota("tokens", Quota::per_second(100).burst(100))
        .build()
        .unwrap()
}

fn level(limiter: &Limiter, quota: &str) -> f64 {
    let snapshot = limiter.snapshot();
    let state = snapshot.quotas.iter().find(|state| state.name == quota);
    state.unwrap().level
}

fn priced(cost: Cost) -> Request {
    let mut request = request();
    request.extensions_mut().insert(cost);
    request
}

fn error(error: &tower::BoxError) -> &Error {
    error.downcast_ref().unwrap()
}

/// A request is not held for the rest of its cost: those who follow are.
#[tokio::test(start_paused = true)]
async fn a_weighted_request_leaves_in_its_turn_and_its_followers_pay() {
    let time = Timeline::start();
    let limiter = Limiter::new(Quota::per_second(10).burst(5)).unwrap();
    let service = ThrottleLayer::new(limiter.clone()).layer(Origin::ok(&time));
    service
        .clone()
        .oneshot(priced(Cost::new(25)))
        .await
        .unwrap();
    assert_eq!(limiter.snapshot().level, -20.0);
    service.clone().oneshot(request()).await.unwrap();
    service.oneshot(request()).await.unwrap();
    assert_times(&time.events(), &[0.0, 2.1, 2.2]);
}

#[tokio::test(start_paused = true)]
async fn a_function_of_the_head_says_what_a_request_costs() {
    let time = Timeline::start();
    let limiter = two();
    let layer = ThrottleLayer::new(limiter.clone()).cost(|request| {
        assert_eq!(request.host(), "api.example.com");
        assert!(request.headers().is_some());
        Cost::new(1).of("tokens", 30)
    });
    let service = layer.layer(Origin::ok(&time));
    service.clone().oneshot(request()).await.unwrap();
    assert_eq!(level(&limiter, "tokens"), 70.0);
    assert_eq!(level(&limiter, "requests"), 9.0);
    // What the request says itself counts more.
    let cost = Cost::new(0).of("tokens", 5);
    service.oneshot(priced(cost)).await.unwrap();
    assert_eq!(level(&limiter, "tokens"), 65.0);
    assert_eq!(level(&limiter, "requests"), 9.0);
    assert_eq!(limiter.snapshot().in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_does_not_exist_refuses_the_request_and_takes_nothing() {
    let time = Timeline::start();
    let limiter = two();
    let service = ThrottleLayer::new(limiter.clone()).layer(Origin::ok(&time));
    let refused = service.oneshot(priced(Cost::new(1).of("points", 1))).await;
    assert!(error(&refused.unwrap_err()).is_unknown_quota());
    assert_eq!(time.count(), 0);
    assert_eq!(level(&limiter, "requests"), 10.0);
    assert_eq!(limiter.snapshot().held, 0);
}

#[tokio::test(start_paused = true)]
async fn the_head_of_a_response_settles_the_cost() {
    let time = Timeline::start();
    let limiter = two();
    let layer = ThrottleLayer::new(limiter.clone())
        .cost(|_| Cost::new(1).of("tokens", 50))
        .settle(|_, headers| {
            let used = headers.get("x-tokens-used")?.to_str().ok()?.parse().ok()?;
            Some(Cost::new(1).of("tokens", used))
        });
    let service = layer.layer(Origin::new(&time, |number| match number {
        0 => Answer::status(200).header("x-tokens-used", 10),
        1 => Answer::status(200).header("x-tokens-used", 300),
        _ => Answer::status(200),
    }));
    service.clone().oneshot(request()).await.unwrap();
    assert_eq!(level(&limiter, "tokens"), 90.0);
    service.clone().oneshot(request()).await.unwrap();
    assert_eq!(level(&limiter, "tokens"), -210.0);
    service.clone().oneshot(request()).await.unwrap();
    assert_times(&time.events(), &[0.0, 0.0, 2.11]);
}

/// What only the body tells.
#[tokio::test(start_paused = true)]
async fn a_receipt_settles_the_cost_later() {
    let time = Timeline::start();
    let limiter = two();
    let layer = ThrottleLayer::new(limiter.clone())
        .cost(|_| Cost::new(1).of("tokens", 50))
        .receipts(true);
    let service = layer.layer(Origin::ok(&time));
    let response = service.oneshot(request()).await.unwrap();
    let receipt = response.extensions().get::<Receipt>().unwrap().clone();
    assert_eq!(receipt.seq(), 1);
    let again = receipt.clone();
    receipt.settle(Cost::new(1).of("tokens", 80)).unwrap();
    assert_eq!(level(&limiter, "tokens"), 20.0);
    // A clone is of the same request.
    again.settle(Cost::new(1).of("tokens", 60)).unwrap();
    assert_eq!(level(&limiter, "tokens"), 40.0);
    assert!(again.settle(Cost::new(1).of("points", 60)).is_err());
    assert_eq!(level(&limiter, "tokens"), 40.0);
}

/// In flight it counts as what it costs, so that the server's budget is not overrun.
#[tokio::test(start_paused = true)]
async fn a_weighted_request_counts_in_flight_as_what_it_costs() {
    let time = Timeline::start();
    let limiter = Limiter::new(Quota::per_second(100).burst(100)).unwrap();
    let service = ThrottleLayer::new(limiter.clone())
        .layer(Origin::new(&time, |_| Answer::status(200).after(1.0)));
    let task = tokio::spawn(service.clone().oneshot(priced(Cost::new(7))));
    settle().await;
    assert_eq!(limiter.snapshot().in_flight, 7);
    task.await.unwrap().unwrap();
    assert_eq!(limiter.snapshot().in_flight, 0);
    let task = tokio::spawn(service.oneshot(priced(Cost::new(7))));
    settle().await;
    task.abort();
    settle().await;
    assert_eq!(limiter.snapshot().in_flight, 0);
}

/// Two layers over one limiter, each with its own patience.
#[tokio::test(start_paused = true)]
async fn each_layer_has_its_own_patience() {
    let time = Timeline::start();
    let limiter = Limiter::new(Quota::per_second(1)).unwrap();
    let patient = ThrottleLayer::new(limiter.clone()).layer(Origin::ok(&time));
    let hasty = ThrottleLayer::new(limiter.clone())
        .max_wait(secs(1.5))
        .layer(Origin::ok(&time));
    let strict = ThrottleLayer::new(limiter.clone())
        .max_queue(1)
        .layer(Origin::ok(&time));
    let calm = ThrottleLayer::new(limiter.clone())
        .max_pause(secs(5.0))
        .layer(Origin::ok(&time));
    patient.clone().oneshot(request()).await.unwrap();
    let waiting = [patient.clone(), patient].map(|one| tokio::spawn(one.oneshot(request())));
    settle().await;
    let refused = hasty.oneshot(request()).await.unwrap_err();
    assert!(error(&refused).is_wait_too_long());
    assert_eq!(error(&refused).retry_after(), Some(secs(3.0)));
    assert!(error(&strict.oneshot(request()).await.unwrap_err()).is_queue_full());
    limiter.penalize(secs(10.0));
    assert!(error(&calm.oneshot(request()).await.unwrap_err()).is_paused());
    for task in waiting {
        task.await.unwrap().unwrap();
    }
    assert_times(&time.events(), &[0.0, 10.0, 11.0]);
}

#[tokio::test(start_paused = true)]
async fn each_layer_has_its_own_class() {
    let time = Timeline::start();
    let limiter = Limiter::new(Quota::per_second(10)).unwrap();
    let job = ThrottleLayer::new(limiter.clone())
        .priority(Priority::Low)
        .layer(Origin::ok(&time));
    let page = ThrottleLayer::new(limiter)
        .priority(Priority::High)
        .layer(Origin::ok(&time));
    for _ in 0..100 {
        tokio::spawn(job.clone().oneshot(request()));
    }
    settle().await;
    let before = time.now();
    page.oneshot(request()).await.unwrap();
    assert!(time.now() - before <= Duration::from_millis(102));
}

#[tokio::test(start_paused = true)]
async fn a_request_past_its_deadline_is_refused_and_takes_nothing() {
    let time = Timeline::start();
    let limiter = Limiter::new(Quota::per_second(1).burst(5)).unwrap();
    let service = ThrottleLayer::new(limiter.clone()).layer(Origin::ok(&time));
    let due = |wait: f64| {
        let mut request = request();
        request.extensions_mut().insert(Deadline::after(secs(wait)));
        request
    };
    service.clone().oneshot(due(0.1)).await.unwrap();
    let late = due(0.1);
    time.at(0.1).await;
    let refused = service.clone().oneshot(late).await.unwrap_err();
    assert!(error(&refused).is_timeout());
    assert_eq!(limiter.snapshot().level, 4.1);
    // A pause between ready and call: refused at once, as it would be too late.
    let mut ready = service.clone();
    ready.ready().await.unwrap();
    limiter.penalize(secs(10.0));
    let refused = tower::Service::call(&mut ready, due(5.0))
        .await
        .unwrap_err();
    assert!(error(&refused).is_wait_too_long());
    assert!(time.now() <= secs(0.11));
    ready.ready().await.unwrap();
    limiter.penalize(secs(10.0));
    tower::Service::call(&mut ready, due(50.0)).await.unwrap();
    assert_eq!(limiter.snapshot().queue_len, 0);
}

/// Whoever is woken by a settlement may settle in turn: no lock is held then.
#[tokio::test(start_paused = true)]
async fn a_settlement_wakes_with_no_lock_held() {
    struct SettlesToo(Receipt);
    impl std::task::Wake for SettlesToo {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.settle(Cost::new(1).of("tokens", 1)).unwrap();
        }
    }
    let time = Timeline::start();
    let limiter = two();
    let layer = ThrottleLayer::new(limiter.clone())
        .cost(|_| Cost::new(1).of("tokens", 100))
        .receipts(true);
    let response = layer
        .layer(Origin::ok(&time))
        .oneshot(request())
        .await
        .unwrap();
    let receipt = response.extensions().get::<Receipt>().unwrap().clone();
    let mut waiting = Box::pin(limiter.acquire(1).of("tokens", 60));
    let waker = std::sync::Arc::new(SettlesToo(receipt.clone())).into();
    let mut cx = std::task::Context::from_waker(&waker);
    assert!(waiting.as_mut().poll(&mut cx).is_pending());
    receipt.settle(Cost::new(1).of("tokens", 40)).unwrap();
    assert!(waiting.as_mut().poll(&mut cx).is_ready());
    assert_eq!(level(&limiter, "tokens"), 39.0);
}
