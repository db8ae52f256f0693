//! A real nginx whose `limit_req` refuses, as so many do: a leaky bucket that sends 503, or 429 if told to, and names no wait.

mod process;

use std::{
    env,
    future::Future,
    io::{self, Write},
    time::{Duration, Instant},
};

use http::StatusCode;
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::TokioExecutor,
};
use tower::{Layer, ServiceExt};
use tower_throttle::{Limiter, Quota, Throttle, ThrottleLayer};

use process::{BURST, Nginx, RATE};

#[tokio::test]
async fn at_its_rate_nothing_is_refused() {
    const REQUESTS: u32 = 40;
    let Some(nginx) = Nginx::start() else { return };
    let limiter = Limiter::new(Quota::per_second(RATE).burst(2)).unwrap();
    let client = client(&limiter);
    let start = Instant::now();
    let statuses = together(REQUESTS, || get(client.clone(), nginx.url("/429"))).await;
    let took = start.elapsed();

    assert_eq!(statuses, [StatusCode::OK; REQUESTS as usize]);
    // The burst at once, the others one after another; at most 10 ms of lateness are made up for.
    let least = Duration::from_secs(1) * (REQUESTS - 2) / RATE - Duration::from_millis(10);
    assert!(took >= least, "{took:?}");
    assert!(took <= 2 * least, "{took:?}");
    let snapshot = limiter.snapshot();
    assert_eq!(snapshot.counters.sent, u64::from(REQUESTS));
    assert_eq!(snapshot.counters.throttled, 0);
    assert_eq!(snapshot.rate, f64::from(RATE));
}

/// A limiter that was told a rate five times too high finds one that nginx accepts, and whoever retries gets an answer.
#[tokio::test]
async fn at_five_times_its_rate_refusals_correct_the_limiter() {
    const CALLERS: u32 = 15;
    const EACH: u32 = 4;
    const REQUESTS: u32 = CALLERS * EACH;
    let Some(nginx) = Nginx::start() else { return };
    let limiter = Limiter::new(Quota::per_second(5 * RATE)).unwrap();
    let client = client(&limiter);
    let start = Instant::now();
    let refusals = together(CALLERS, || insist(client.clone(), nginx.url("/429"), EACH)).await;
    let took = start.elapsed();

    let refused: u64 = refusals.iter().sum();
    let sent = u64::from(REQUESTS) + refused;
    let snapshot = limiter.snapshot();
    assert_eq!(snapshot.counters.sent, sent);
    assert_eq!(snapshot.counters.throttled, refused);
    assert!(snapshot.counters.pauses > 0);
    assert!(snapshot.rate < snapshot.configured_rate);
    // On a late machine all callers are under way when the first refusal comes; then one request at a time tests the server, and a
    // few flights that the first guess costs are not full.
    let most = u64::from(CALLERS) + 10;
    assert!(refused <= most, "{refused} of {sent} were refused");
    // The pauses do not waste much of nginx's time, which takes this long in any case.
    let least = Duration::from_secs(1) * (REQUESTS - 1 - BURST) / RATE;
    assert!(took <= 3 * least, "{took:?}");
}

/// With callers that never stop, a ceiling ten times too high and no headers, most of what nginx allows is used and next to nothing
/// refused. Ten seconds of it, or as many as `THROTTLE_NGINX_SECONDS` says.
#[tokio::test]
async fn the_rate_settles_just_under_what_nginx_allows() {
    const CALLERS: u32 = 15;
    let Some(nginx) = Nginx::start() else { return };
    let whole: f64 = env::var("THROTTLE_NGINX_SECONDS").map_or(10.0, |text| {
        text.parse()
            .expect("THROTTLE_NGINX_SECONDS is a number of seconds")
    });
    let whole = Duration::from_secs_f64(whole);
    let limiter = Limiter::new(Quota::per_second(10 * RATE).burst(10)).unwrap();
    let client = client(&limiter);
    let start = Instant::now();
    let callers = together(CALLERS, || {
        let (client, url) = (client.clone(), nginx.url("/429"));
        async move {
            let mut answers = Vec::new();
            while start.elapsed() < whole {
                let status = get(client.clone(), url.clone()).await;
                answers.push((start.elapsed(), status));
            }
            answers
        }
    })
    .await;

    // The first meeting is not counted.
    let from = whole.mul_f64(0.3);
    let settled = (callers.iter().flatten()).filter(|(at, _)| (from..whole).contains(at));
    let (accepted, refused): (Vec<_>, Vec<_>) =
        settled.partition::<Vec<&(Duration, StatusCode)>, _>(|(_, status)| status.is_success());
    let (accepted, refused) = (accepted.len() as f64, refused.len() as f64);
    let share = accepted / ((whole - from).as_secs_f64() * f64::from(RATE));
    let part = 100.0 * refused / (accepted + refused);
    let learned = limiter.learned();
    // Not `eprintln`, which is not shown for tests that pass.
    let _ = writeln!(
        io::stderr(),
        "nginx for {whole:?}: share {share:.3}, {part:.2} % refused, {learned:?}"
    );
    assert!(share <= 1.1, "more than nginx allows: {share}");
    assert!(share >= 0.85, "{share}");
    // A probe now and then; and one flight for a machine that stands still for a while.
    let most = 0.01 * (accepted + refused) + f64::from(CALLERS);
    assert!(refused <= most, "{refused} of {}", accepted + refused);
}

/// A server may be unavailable for many reasons, so a 503 by itself is no word about the rate.
#[tokio::test]
async fn a_503_without_retry_after_is_passed_through() {
    let Some(nginx) = Nginx::start() else { return };
    let limiter = Limiter::new(Quota::per_second(5 * RATE).burst(40)).unwrap();
    let client = client(&limiter);
    let statuses = together(40, || get(client.clone(), nginx.url("/503"))).await;

    assert!(refusals(&statuses) > 0, "{statuses:?}");
    let snapshot = limiter.snapshot();
    assert_eq!(snapshot.counters.sent, 40);
    assert_eq!(snapshot.counters.throttled, 0);
    assert_eq!(snapshot.counters.pauses, 0);
    assert_eq!(snapshot.rate, snapshot.configured_rate);
}

#[tokio::test]
async fn a_503_with_retry_after_holds_everybody() {
    const HOLD: Duration = Duration::from_secs(1);
    let Some(nginx) = Nginx::start() else { return };
    let limiter = Limiter::new(Quota::per_second(5 * RATE).burst(40)).unwrap();
    let client = client(&limiter);
    let start = Instant::now();
    let statuses = together(40, || get(client.clone(), nginx.url("/503-later"))).await;
    let answered = start.elapsed();
    let counters = limiter.snapshot().counters;

    assert!(refusals(&statuses) > 0, "{statuses:?}");
    assert_eq!(counters.throttled, refusals(&statuses));
    assert!(counters.pauses > 0);
    // Clones that nginx would have served at once.
    let times = together(5, || {
        let request = get(client.clone(), nginx.url("/429"));
        async move {
            assert_eq!(request.await, StatusCode::OK);
            start.elapsed()
        }
    })
    .await;
    for time in &times {
        assert!(*time >= HOLD, "{times:?}");
        assert!(*time <= answered + 2 * HOLD, "{answered:?}, {times:?}");
    }
    assert_eq!(limiter.snapshot().counters.throttled, counters.throttled);
}

type Client = Throttle<legacy::Client<HttpConnector, Empty<Bytes>>>;

fn client(limiter: &Limiter) -> Client {
    let client = legacy::Client::builder(TokioExecutor::new()).build_http();
    ThrottleLayer::new(limiter.clone()).layer(client)
}

async fn get(client: Client, url: String) -> StatusCode {
    let request = http::Request::get(url).body(Empty::new()).unwrap();
    let response = client.oneshot(request).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert!(status != StatusCode::OK || &body[..] == b"ok", "{body:?}");
    status
}

/// Makes `count` requests, each as often as it takes, and returns how many were refused. There is no wait here: that is the limiter's
/// work.
async fn insist(client: Client, url: String, count: u32) -> u64 {
    let (mut accepted, mut refused) = (0, 0);
    while accepted < count {
        match get(client.clone(), url.clone()).await {
            StatusCode::OK => accepted += 1,
            StatusCode::TOO_MANY_REQUESTS => refused += 1,
            other => panic!("{other}"),
        }
    }
    refused
}

/// Runs `count` of them, each in a task of its own.
async fn together<F>(count: u32, one: impl Fn() -> F) -> Vec<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let tasks: Vec<_> = (0..count).map(|_| tokio::spawn(one())).collect();
    let mut outputs = Vec::new();
    for task in tasks {
        outputs.push(task.await.unwrap());
    }
    outputs
}

/// How many were 503; the others must have been accepted.
fn refusals(statuses: &[StatusCode]) -> u64 {
    let mut refused = 0;
    for &status in statuses {
        match status {
            StatusCode::OK => {}
            StatusCode::SERVICE_UNAVAILABLE => refused += 1,
            other => panic!("{other}"),
        }
    }
    refused
}
