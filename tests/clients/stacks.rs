//! Whole stacks as their users build them: clients that bring a tower stack of their own, and a server that is itself a client.

use std::{
    error::Error,
    future,
    time::{Duration, Instant, SystemTime},
};

use axum::{
    Router,
    extract::State,
    response::{IntoResponse, Response},
    routing::get,
};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Bytes;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use octocrab::{AuthState, Octocrab, OctocrabBuilder};
use tonic::{Code, transport::Channel};
use tonic_health::pb::{
    HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient,
};
use tower::{ServiceBuilder, ServiceExt};
use tower_throttle::{Limiter, Quota, Throttle, ThrottleLayer, feedback::Dialect};

use crate::server::{Server, serve};

const RATE: u32 = 20;
const INTERVAL: Duration = Duration::from_millis(1000 / RATE as u64);

/// Up to this much lateness of its timers the limiter makes up for.
const LATENESS: Duration = Duration::from_millis(10);

/// What a busy machine may add. No test needs it short: without the throttle all requests come at once.
const SLACK: Duration = Duration::from_secs(3);

fn limiter() -> Limiter {
    Limiter::new(Quota::per_second(RATE)).unwrap()
}

/// Lets one request leave in a second and refuses whoever comes before the next.
fn impatient_limiter() -> Limiter {
    Limiter::builder()
        .quota("requests", Quota::per_second(1))
        .max_wait(Duration::from_millis(1))
        .build()
        .unwrap()
}

/// The first of the `times` is not before `start`, and each next one is due an interval later. A busy machine can only delay an arrival,
/// so this holds however busy it is.
fn assert_paced(times: &[Instant], start: Instant) {
    let since: Vec<Duration> = times.iter().map(|time| *time - start).collect();
    let mut due = Duration::ZERO;
    for time in &since {
        assert!(*time + LATENESS >= due, "one due at {due:?} in {since:?}");
        due += INTERVAL;
    }
    assert!(since.iter().all(|time| *time <= due + SLACK), "{since:?}");
}

/// The first request was told to wait for `pause`: the second leaves after that, the others at the rate.
///
/// Measured from the arrival of the first, which is before its answer, so the pause cannot look shorter than it was.
fn assert_paused_and_paced(server: &Server, pause: Duration) {
    let arrivals = server.arrivals();
    let waited = arrivals[1] - arrivals[0];
    assert!(waited >= pause, "the second came after {waited:?}");
    assert_paced(&arrivals[1..], arrivals[0] + pause);
}

/// The limiter's error, wherever the client has put it.
fn throttle_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a tower_throttle::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// `refused` came from the limiter and says how long to wait; after that a request passes.
async fn wait_as_told(refused: &(dyn Error + 'static)) {
    let error = throttle_error(refused).unwrap_or_else(|| panic!("{refused:?}"));
    assert!(error.is_wait_too_long(), "{error}");
    tokio::time::sleep(error.retry_after().unwrap()).await;
}

// kube

/// `Client::new` adds no retries, and puts the stack into a buffer.
fn kube_client(server: &Server, limiter: Limiter) -> kube::Client {
    let base = format!("http://{}/", server.address).parse().unwrap();
    let service = ServiceBuilder::new()
        .layer(kube::client::middleware::BaseUriLayer::new(base))
        .layer(ThrottleLayer::new(limiter))
        .service(Client::builder(TokioExecutor::new()).build_http::<kube::client::Body>());
    kube::Client::new(service, "default")
}

fn kube_request() -> http::Request<Vec<u8>> {
    http::Request::get("/version").body(Vec::new()).unwrap()
}

#[tokio::test]
async fn kube_waits_for_the_server_then_for_the_rate() {
    let server = Server::start(1, "1").await;
    let client = kube_client(&server, limiter());
    let refused = client.request_text(kube_request()).await.unwrap_err();
    assert!(
        matches!(&refused, kube::Error::Api(status) if status.code == 429),
        "{refused:?}"
    );
    let tasks: Vec<_> = (0..5)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.request_text(kube_request()).await.unwrap() })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap(), "hello");
    }
    assert_eq!(server.requests(), 6);
    assert_paused_and_paced(&server, Duration::from_secs(1));
}

/// An error from `poll_ready` would close the client's buffer for good; the limiter's comes from the call, and harms one request.
#[tokio::test]
async fn kube_outlives_a_refusal_by_the_limiter() {
    let server = Server::start(0, "").await;
    let client = kube_client(&server, impatient_limiter());
    client.request_text(kube_request()).await.unwrap();
    let refused = client.request_text(kube_request()).await.unwrap_err();
    assert!(matches!(refused, kube::Error::Service(_)), "{refused:?}");
    wait_as_told(&refused).await;
    assert_eq!(client.request_text(kube_request()).await.unwrap(), "hello");
    assert_eq!(server.requests(), 2, "the refused one was not sent");
}

// octocrab

/// A stack of one's own has only the layers given here: octocrab's retries are in the client it builds by default, and would hide the
/// refusal for five seconds or more. Whoever wants them adds them as a layer after the throttle's, which puts the throttle inside, so
/// that each attempt pays.
fn octocrab_client(server: &Server, limiter: Limiter) -> Octocrab {
    let base = format!("http://{}/", server.address).parse().unwrap();
    OctocrabBuilder::new_empty()
        .with_service(Client::builder(TokioExecutor::new()).build_http::<octocrab::OctoBody>())
        .with_layer(&ThrottleLayer::new(limiter).dialect(Dialect::github()))
        .with_layer(&octocrab::service::middleware::base_uri::BaseUriLayer::new(
            base,
        ))
        .with_auth(AuthState::None)
        .build()
        .unwrap()
}

async fn octocrab_request(client: &Octocrab) -> octocrab::Result<serde_json::Value> {
    client.get("/rate_limit", None::<&()>).await
}

/// GitHub's primary limit: no `Retry-After`, but nothing left until an instant on the server's clock, which is an hour behind ours here.
#[tokio::test]
async fn octocrab_waits_for_the_reset() {
    let date = SystemTime::now() - Duration::from_secs(3600);
    let epoch = date.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let reset = epoch.as_secs() + 2;
    let server = Server::answering(move |number| {
        let (status, remaining, body) = match number {
            0 => (403, "0", r#"{"message": "API rate limit exceeded"}"#),
            _ => (200, "59", "{}"),
        };
        let headers = [
            ("date", httpdate::fmt_http_date(date)),
            ("x-ratelimit-limit", "60".to_owned()),
            ("x-ratelimit-remaining", remaining.to_owned()),
            // The next window is an hour long.
            (
                "x-ratelimit-reset",
                (reset + 3600 * u64::from(number > 0)).to_string(),
            ),
        ];
        let status = http::StatusCode::from_u16(status).unwrap();
        (status, headers, body).into_response()
    })
    .await;
    let limiter = limiter();
    let client = octocrab_client(&server, limiter.clone());
    let refused = octocrab_request(&client).await.unwrap_err();
    let octocrab::Error::GitHub { source, .. } = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(source.status_code, http::StatusCode::FORBIDDEN);
    assert_eq!(source.message, "API rate limit exceeded");
    assert_eq!(source.rate_limit_reset, Some(reset));
    let snapshot = limiter.snapshot();
    assert_eq!(snapshot.counters.throttled, 1);
    assert!(snapshot.pause.is_some(), "{snapshot:?}");
    octocrab_request(&client).await.unwrap();
    assert_paused_and_paced(&server, Duration::from_secs(2));
}

#[tokio::test]
async fn octocrab_outlives_a_refusal_by_the_limiter() {
    let server = Server::answering(|_| "{}".into_response()).await;
    let client = octocrab_client(&server, impatient_limiter());
    octocrab_request(&client).await.unwrap();
    let refused = octocrab_request(&client).await.unwrap_err();
    wait_as_told(&refused).await;
    octocrab_request(&client).await.unwrap();
    assert_eq!(server.requests(), 2, "the refused one was not sent");
}

// tonic

async fn health_client(server: &Server, limiter: Limiter) -> HealthClient<Throttle<Channel>> {
    let url = format!("http://{}", server.address);
    let channel = Channel::from_shared(url).unwrap().connect().await.unwrap();
    let service = ServiceBuilder::new()
        .layer(ThrottleLayer::new(limiter))
        .service(channel);
    HealthClient::new(service)
}

fn grpc_head() -> http::response::Builder {
    Response::builder().header("content-type", "application/grpc")
}

/// A refusal comes without a message, so its status stands in the head and not in trailers.
fn grpc_refusal() -> Response {
    grpc_head()
        .header("grpc-status", "8")
        .header("grpc-message", "slow down")
        .header("grpc-retry-pushback-ms", "1000")
        .body(axum::body::Body::empty())
        .unwrap()
}

/// One message: uncompressed, two bytes long, field 1 is `SERVING`.
fn grpc_serving() -> Response {
    let message = Full::new(Bytes::from_static(&[0, 0, 0, 0, 2, 0x08, 1]));
    let trailers = http::HeaderMap::from_iter([(
        http::HeaderName::from_static("grpc-status"),
        http::HeaderValue::from_static("0"),
    )]);
    let body = message.with_trailers(future::ready(Some(Ok(trailers))));
    grpc_head().body(axum::body::Body::new(body)).unwrap()
}

#[tokio::test]
async fn tonic_waits_for_the_pushback() {
    let server = Server::answering(|number| match number {
        0 => grpc_refusal(),
        _ => grpc_serving(),
    })
    .await;
    let limiter = limiter();
    let mut client = health_client(&server, limiter.clone()).await;
    let refused = client.check(HealthCheckRequest::default()).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert_eq!(refused.message(), "slow down");
    assert_eq!(
        refused.metadata().get("grpc-retry-pushback-ms").unwrap(),
        "1000"
    );
    assert!(
        refused.source().is_none(),
        "the server's own, not the limiter's"
    );
    assert_eq!(limiter.snapshot().counters.throttled, 1);
    for _ in 0..3 {
        let answer = client.check(HealthCheckRequest::default()).await.unwrap();
        assert_eq!(answer.into_inner().status(), ServingStatus::Serving);
    }
    assert_paused_and_paced(&server, Duration::from_secs(1));
}

#[tokio::test]
async fn tonic_outlives_a_refusal_by_the_limiter() {
    let server = Server::answering(|_| grpc_serving()).await;
    let mut client = health_client(&server, impatient_limiter()).await;
    client.check(HealthCheckRequest::default()).await.unwrap();
    let refused = client.check(HealthCheckRequest::default()).await;
    wait_as_told(&refused.unwrap_err()).await;
    client.check(HealthCheckRequest::default()).await.unwrap();
    assert_eq!(server.requests(), 2, "the refused one was not sent");
}

// axum

type Outbound = Throttle<Client<HttpConnector, Empty<Bytes>>>;

#[derive(Clone)]
struct Gateway {
    outbound: Outbound,
    upstream: String,
}

async fn forward(State(gateway): State<Gateway>) -> Result<Response, http::StatusCode> {
    let request = http::Request::get(&gateway.upstream)
        .body(Empty::new())
        .map_err(|_| http::StatusCode::INTERNAL_SERVER_ERROR)?;
    let answer = gateway.outbound.oneshot(request).await;
    let answer = answer.map_err(|_| http::StatusCode::BAD_GATEWAY)?;
    Ok(answer.map(axum::body::Body::new))
}

/// Each inbound request has a clone of the state, and with it of the client; the budget is one.
#[tokio::test]
async fn an_axum_service_paces_what_it_sends() {
    const INBOUND: usize = 20;
    let upstream = Server::start(0, "").await;
    let limiter = limiter();
    let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let outbound = ServiceBuilder::new()
        .layer(ThrottleLayer::new(limiter.clone()))
        .service(client.clone());
    let state = Gateway {
        outbound,
        upstream: upstream.url(),
    };
    let address = serve(Router::new().route("/", get(forward)).with_state(state)).await;
    let start = Instant::now();
    let tasks: Vec<_> = (0..INBOUND)
        .map(|_| {
            let url = format!("http://{address}/");
            let request = http::Request::get(url).body(Empty::new()).unwrap();
            let client = client.clone();
            tokio::spawn(async move { client.request(request).await.unwrap() })
        })
        .collect();
    for task in tasks {
        let answer = task.await.unwrap();
        assert_eq!(answer.status(), http::StatusCode::OK);
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(&body[..], b"hello");
    }
    let arrivals = upstream.arrivals();
    assert_eq!(arrivals.len(), INBOUND);
    assert_paced(&arrivals, start);
    assert_eq!(limiter.snapshot().counters.sent, 20);
}
