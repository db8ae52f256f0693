use tower::{Layer, ServiceExt};
use tower_throttle::{Limiter, Quota, ThrottleLayer};

use crate::support::{Answer, Origin, Timeline, assert_times, request};

#[tokio::test(start_paused = true)]
async fn a_redirect_layer_outside_pays_for_each_hop_and_inside_for_one() {
    for (outside, due) in [(true, [0.0, 1.0]), (false, [0.0, 0.0])] {
        let time = Timeline::start();
        let throttle = ThrottleLayer::new(Limiter::new(Quota::per_second(1)).unwrap());
        let redirect = tower_http::follow_redirect::FollowRedirectLayer::new();
        let origin = Origin::new(&time, |number| {
            if number == 0 {
                Answer::status(302).header("location", "/elsewhere")
            } else {
                Answer::status(200)
            }
        });
        let status = if outside {
            let service = redirect.layer(throttle.layer(origin));
            service.oneshot(request()).await.unwrap().status()
        } else {
            let service = throttle.layer(redirect.layer(origin));
            service.oneshot(request()).await.unwrap().status()
        };
        assert_eq!(status, 200);
        assert_times(&time.events(), &due);
    }
}
