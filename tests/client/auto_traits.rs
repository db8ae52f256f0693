//! What may be sent between threads is part of the interface.

use tower_throttle::{
    ConfigError, Error, KeyedLimiter, KeyedPermit, KeyedThrottle, KeyedThrottleLayer, Limiter,
    Permit, Quota, Snapshot, Throttle, ThrottleLayer,
    client::ResponseFuture,
    client::keyed::{ByHost, Host, KeyedResponseFuture},
    engine::Engine,
    feedback::Feedback,
    limiter::Acquire,
    limiter::keyed::KeyedAcquire,
};

fn all<T: Send + Sync + Unpin + 'static>() {}
fn send_and_sync<T: Send + Sync + 'static>() {}

#[test]
fn public_types_can_be_shared_between_threads() {
    type Hyper = hyper_util::client::legacy::Client<
        hyper_util::client::legacy::connect::HttpConnector,
        http_body_util::Empty<hyper::body::Bytes>,
    >;

    all::<Limiter>();
    all::<Quota>();
    all::<Permit>();
    all::<Snapshot>();
    all::<Feedback>();
    all::<Engine>();
    all::<Error>();
    all::<ConfigError>();
    all::<ThrottleLayer>();
    all::<Throttle<Hyper>>();
    all::<KeyedLimiter<String>>();
    all::<KeyedPermit>();
    all::<KeyedThrottleLayer<Host, ByHost>>();
    all::<KeyedThrottle<Hyper, Host, ByHost>>();
    send_and_sync::<KeyedAcquire<String>>();
    send_and_sync::<Acquire>();

    fn send<T: Send + 'static>() {}
    send::<ResponseFuture<Hyper, http::Request<http_body_util::Empty<hyper::body::Bytes>>>>();
    send::<KeyedResponseFuture<Hyper, http::Request<http_body_util::Empty<hyper::body::Bytes>>>>();
}

/// A hundred thousand of them may wait at once.
#[test]
fn a_waiting_future_is_small() {
    let size = size_of::<Acquire>();
    assert!(size <= 200, "{size}");
}
