use tower::{Layer, Service, ServiceExt};
use tower_throttle::{Limiter, Quota, ThrottleLayer};

use crate::support::{GRAIN, Origin, Timeline, request, secs};

/// 1500 clones in 1500 tasks are one budget; it makes no difference how the clones come about.
#[tokio::test(start_paused = true)]
async fn all_clones_share_one_budget() {
    let limiter = Limiter::new(Quota::per_second(5).burst(5)).unwrap();
    let time = Timeline::start();
    let layer = ThrottleLayer::new(limiter);
    let first = layer.layer(Origin::ok(&time));
    // Clones of clones, and services of a second use of the layer.
    let second = layer.clone().layer(Origin::ok(&time));
    let mut services = vec![first.clone(), second];
    while services.len() < 1500 {
        let clone = services[services.len() / 2].clone();
        services.push(clone);
    }
    // Half of them are dropped and made again.
    services.truncate(750);
    while services.len() < 1500 {
        services.push(first.clone());
    }
    drop(first);
    for service in services {
        tokio::spawn(service.oneshot(request()));
    }
    let sent_by = |seconds: f64| {
        (time.events().iter())
            .filter(|&&at| at <= secs(seconds) + GRAIN)
            .count()
    };
    time.at(300.0).await;
    assert_eq!(time.count(), 1500);
    assert_eq!(sent_by(0.0), 5);
    assert_eq!(sent_by(1.0), 10);
    assert_eq!(sent_by(10.0), 55);
    let last = time.events()[1499];
    assert!(
        last >= secs(299.0) && last <= secs(299.0) + GRAIN,
        "{last:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_response_says_how_it_was_paced() {
    let limiter = Limiter::new(Quota::per_second(1)).unwrap();
    let time = Timeline::start();
    let mut service = ThrottleLayer::new(limiter).layer(Origin::ok(&time));
    for waited in [0.0, 1.0] {
        let response = service
            .ready()
            .await
            .unwrap()
            .call(request())
            .await
            .unwrap();
        let pacing = response
            .extensions()
            .get::<tower_throttle::Pacing>()
            .unwrap();
        assert!(pacing.waited >= secs(waited) && pacing.waited <= secs(waited) + GRAIN);
        assert!(pacing.seq > 0);
        assert!(pacing.level < 0.01);
    }
}
