//! The same scene with each client: a 429 that asks for a second, then the rate of the limiter.

use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use tower::{Service, ServiceBuilder, ServiceExt};
use tower_throttle::{BoxError, Limiter, Quota, ThrottleLayer};

use crate::server::Server;

fn limiter() -> Limiter {
    Limiter::new(Quota::per_second(20)).unwrap()
}

/// What must hold for four requests: the second waits for the server, the others for the rate.
fn check(times: &[Duration], server: &Server) {
    assert_eq!(server.requests(), 4);
    assert!(times[1] >= Duration::from_secs(1), "{times:?}");
    assert!(times[3] >= Duration::from_millis(1100), "{times:?}");
    assert!(times[3] <= Duration::from_millis(1600), "{times:?}");
}

async fn drive<S, Req>(mut service: S, request: impl Fn() -> Req) -> Vec<Duration>
where
    S: Service<Req, Error = BoxError>,
{
    let start = Instant::now();
    let mut times = Vec::new();
    for _ in 0..4 {
        let ready = service.ready().await.unwrap();
        times.push(start.elapsed());
        ready.call(request()).await.unwrap();
    }
    times
}

#[tokio::test]
async fn hyper_util() {
    let server = Server::start(1, "1").await;
    let service = ServiceBuilder::new()
        .layer(ThrottleLayer::new(limiter()))
        .service(Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>());
    let times = drive(service, || {
        http::Request::get(server.url()).body(Empty::new()).unwrap()
    })
    .await;
    check(&times, &server);
}

#[tokio::test]
async fn reqwest_through_http_types() {
    let server = Server::start(1, "1").await;
    let service = ServiceBuilder::new()
        .layer(ThrottleLayer::new(limiter()))
        .map_request(|request: http::Request<&'static str>| {
            reqwest::Request::try_from(request).expect("the request has an absolute URI")
        })
        .map_response(http::Response::<reqwest::Body>::from)
        .service(reqwest::Client::new());
    let times = drive(service, || {
        http::Request::get(server.url()).body("").unwrap()
    })
    .await;
    check(&times, &server);
}

/// kube, octocrab and tonic keep their stack in a buffer; the body arrives whole and unchanged.
#[tokio::test]
async fn a_buffered_stack_with_other_layers() {
    let server = Server::start(0, "").await;
    let service = ServiceBuilder::new()
        .buffer(16)
        .layer(tower_http::trace::TraceLayer::new_for_http())
        .layer(ThrottleLayer::new(limiter()))
        .service(Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>());
    let start = Instant::now();
    let tasks: Vec<_> = (0..10)
        .map(|_| {
            let service = service.clone();
            let request = http::Request::get(server.url()).body(Empty::new()).unwrap();
            tokio::spawn(async move { service.oneshot(request).await.unwrap() })
        })
        .collect();
    for task in tasks {
        let response = task.await.unwrap();
        assert!(
            response
                .extensions()
                .get::<tower_throttle::Pacing>()
                .is_some()
        );
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(&body[..], b"hello");
    }
    assert!(start.elapsed() >= Duration::from_millis(440));
    assert_eq!(server.requests(), 10);
}

/// A server that is not there: the client's own error comes through, and is counted as used, not as a refusal.
#[tokio::test]
async fn an_unreachable_server_is_the_clients_error() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let limiter = limiter();
    let service = ServiceBuilder::new()
        .layer(ThrottleLayer::new(limiter.clone()))
        .service(Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>());
    let request = http::Request::get(url).body(Empty::new()).unwrap();
    let error = service.oneshot(request).await.unwrap_err();
    assert!(error.downcast_ref::<tower_throttle::Error>().is_none());
    let snapshot = limiter.snapshot();
    assert_eq!(snapshot.in_flight, 0);
    assert_eq!(snapshot.counters.throttled, 0);
    assert!(snapshot.pause.is_none());
}
