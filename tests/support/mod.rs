//! What the test programs share: a time line, and an origin server in memory whose answers are scripted.
#![allow(dead_code, unreachable_pub)]

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use http::Response;
use http_body_util::Empty;
use hyper::body::Bytes;
use tokio::time::Instant;
use tower::{BoxError, Layer, Service};
use tower_throttle::{Limiter, Throttle, ThrottleLayer};

/// tokio's timers have a grain of one millisecond; under the paused clock a send due at T happens in [T, T + 2 ms].
pub const GRAIN: Duration = Duration::from_millis(2);

pub fn secs(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// Asserts that things happened at these seconds, in this order, each at most the grain late and never early.
#[track_caller]
pub fn assert_times(happened: &[Duration], due: &[f64]) {
    let fits = happened.len() == due.len()
        && (happened.iter().zip(due)).all(|(&at, &due)| {
            // A nanosecond for the rounding of the literal.
            at + Duration::from_nanos(1) >= secs(due) && at <= secs(due) + GRAIN
        });
    assert!(fits, "happened at {happened:?}, were due at {due:?}");
}

/// A zero point and what happened since.
#[derive(Debug, Clone)]
pub struct Timeline {
    start: Instant,
    events: Arc<Mutex<Vec<Duration>>>,
}

impl Timeline {
    pub fn start() -> Self {
        Self {
            start: Instant::now(),
            events: Arc::default(),
        }
    }

    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    pub fn mark(&self) -> Duration {
        let now = self.now();
        self.events.lock().unwrap().push(now);
        now
    }

    pub fn events(&self) -> Vec<Duration> {
        self.events.lock().unwrap().clone()
    }

    pub fn count(&self) -> usize {
        self.events.lock().unwrap().len()
    }

    /// Waits until this many seconds after the start.
    pub async fn at(&self, seconds: f64) {
        tokio::time::sleep_until(self.start + secs(seconds)).await;
    }
}

/// One scripted answer.
pub struct Answer {
    pub delay: Duration,
    pub response: Response<&'static str>,
}

impl Answer {
    pub fn status(status: u16) -> Self {
        Self {
            delay: Duration::ZERO,
            response: Response::builder().status(status).body("body").unwrap(),
        }
    }

    pub fn header(mut self, name: &'static str, value: impl ToString) -> Self {
        let value = http::HeaderValue::from_bytes(value.to_string().as_bytes()).unwrap();
        self.response.headers_mut().append(name, value);
        self
    }

    pub fn after(mut self, seconds: f64) -> Self {
        self.delay = secs(seconds);
        self
    }
}

type Script = dyn Fn(usize) -> Answer + Send + Sync;

/// A server in memory. It insists on being called only by the instance that was polled ready, and marks each call on the time line.
pub struct Origin {
    pub sent: Timeline,
    script: Arc<Script>,
    ready: bool,
}

impl Origin {
    /// `script` is given the number of the call, from 0.
    pub fn new(
        timeline: &Timeline,
        script: impl Fn(usize) -> Answer + Send + Sync + 'static,
    ) -> Self {
        Self {
            sent: timeline.clone(),
            script: Arc::new(script),
            ready: false,
        }
    }

    pub fn ok(timeline: &Timeline) -> Self {
        Self::new(timeline, |_| Answer::status(200))
    }
}

impl Clone for Origin {
    fn clone(&self) -> Self {
        Self {
            sent: self.sent.clone(),
            script: Arc::clone(&self.script),
            ready: false,
        }
    }
}

impl Service<Request> for Origin {
    type Response = Response<&'static str>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request) -> Self::Future {
        assert!(
            std::mem::take(&mut self.ready),
            "the origin was called before it was ready"
        );
        let number = self.sent.count();
        self.sent.mark();
        let answer = (self.script)(number);
        Box::pin(async move {
            if !answer.delay.is_zero() {
                tokio::time::sleep(answer.delay).await;
            }
            Ok(answer.response)
        })
    }
}

/// The origin behind the limiter.
pub fn throttle(limiter: &Limiter, origin: Origin) -> Throttle<Origin> {
    ThrottleLayer::new(limiter.clone()).layer(origin)
}

pub type Request = http::Request<Empty<Bytes>>;

pub fn request() -> Request {
    http::Request::get("https://api.example.com/v1/search?key=secret")
        .body(Empty::new())
        .unwrap()
}

/// Lets every task run that can.
pub async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

/// Polls a future once, with nobody to wake.
pub fn poll_once<F: Future>(future: F) -> (Pin<Box<F>>, Poll<F::Output>) {
    let mut future = Box::pin(future);
    let poll = future
        .as_mut()
        .poll(&mut Context::from_waker(std::task::Waker::noop()));
    (future, poll)
}
