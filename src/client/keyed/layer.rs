use std::{fmt, hash::Hash, sync::Arc};

use http::{HeaderMap, HeaderName, StatusCode};
use tower_layer::Layer;

use super::{
    host::Host,
    key::{By, ByHeader, ByHost, HeaderKey},
    service::KeyedThrottle,
};
use crate::{
    client::options::Options,
    feedback::{Dialect, Feedback, Reader},
    limiter::keyed::KeyedLimiter,
};

/// Puts a [`KeyedLimiter`] in front of a client: one budget for each key, which is found in the request.
///
/// All services made by this layer, by its clones, and by other layers over clones of the same limiter share the budgets. It belongs
/// where [`ThrottleLayer`](crate::ThrottleLayer) does: inside retries and redirects. Unlike there, the wait happens in the response
/// future; see the [module](super) for what follows from that.
///
/// ```
/// use tower_throttle::{KeyedLimiter, KeyedThrottleLayer, Quota};
///
/// let quota = Quota::per_second(2);
/// let hosts = KeyedThrottleLayer::by_host(KeyedLimiter::new(quota)?);
/// let tokens = KeyedThrottleLayer::by_header(KeyedLimiter::new(quota)?, http::header::AUTHORIZATION);
/// let shards = KeyedThrottleLayer::by(KeyedLimiter::new(quota)?, |request: &http::Request<String>| {
///     request.uri().path().len() % 16
/// });
/// # drop((hosts, tokens, shards));
/// # Ok::<(), tower_throttle::ConfigError>(())
/// ```
pub struct KeyedThrottleLayer<K, F> {
    limiter: KeyedLimiter<K>,
    key: F,
    options: Options,
}

impl KeyedThrottleLayer<Host, ByHost> {
    /// One budget for each server: case, default port and trailing dot make no difference. Requests without authority share the key
    /// [`Host::UNKNOWN`].
    #[must_use]
    pub fn by_host(limiter: KeyedLimiter<Host>) -> Self {
        Self::new(limiter, ByHost)
    }
}

impl KeyedThrottleLayer<HeaderKey, ByHeader> {
    /// One budget for each value of a request's header field, an API key for example. Requests without it share the key
    /// [`HeaderKey::ABSENT`].
    #[must_use]
    pub fn by_header(limiter: KeyedLimiter<HeaderKey>, name: HeaderName) -> Self {
        Self::new(limiter, ByHeader(name))
    }
}

impl<K, F> KeyedThrottleLayer<K, By<F>> {
    /// One budget for each value of `key`. It is called once for each request, without any lock.
    #[must_use]
    pub fn by<Req>(limiter: KeyedLimiter<K>, key: F) -> Self
    where
        F: Fn(&Req) -> K,
    {
        Self::new(limiter, By(key))
    }
}

impl<K, F> KeyedThrottleLayer<K, F> {
    /// One budget for each key that `key` finds.
    #[must_use]
    pub fn new(limiter: KeyedLimiter<K>, key: F) -> Self {
        Self {
            limiter,
            key,
            options: Options::NONE,
        }
    }

    /// As [`ThrottleLayer::dialect`](crate::ThrottleLayer::dialect).
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.options.reader = Some(Arc::new(Reader::new().dialect(dialect)));
        self
    }

    /// As [`ThrottleLayer::classify`](crate::ThrottleLayer::classify). Besides, `classify` can say whom an answer concerns: with
    /// [`Scope::Global`](crate::feedback::Scope::Global) in [`Feedback::scope`] it is all keys.
    #[must_use]
    pub fn classify(
        mut self,
        classify: impl Fn(StatusCode, &HeaderMap, &mut Feedback) + Send + Sync + 'static,
    ) -> Self {
        self.options.classify = Some(Arc::new(classify));
        self
    }

    /// As [`ThrottleLayer::refund_not_modified`](crate::ThrottleLayer::refund_not_modified), to the key's budget. Off by default.
    #[must_use]
    pub fn refund_not_modified(mut self, refund: bool) -> Self {
        self.options.refund_not_modified = refund;
        self
    }

    /// As [`ThrottleLayer::report_pacing`](crate::ThrottleLayer::report_pacing). On by default.
    #[must_use]
    pub fn report_pacing(mut self, report: bool) -> Self {
        self.options.omit_pacing = !report;
        self
    }
}

impl<S, K, F> Layer<S> for KeyedThrottleLayer<K, F>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    F: Clone,
{
    type Service = KeyedThrottle<S, K, F>;

    fn layer(&self, inner: S) -> Self::Service {
        KeyedThrottle::new(
            inner,
            self.limiter.clone(),
            self.key.clone(),
            self.options.clone(),
        )
    }
}

impl<K, F: Clone> Clone for KeyedThrottleLayer<K, F> {
    fn clone(&self) -> Self {
        Self {
            limiter: self.limiter.clone(),
            key: self.key.clone(),
            options: self.options.clone(),
        }
    }
}

impl<K, F> fmt::Debug for KeyedThrottleLayer<K, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedThrottleLayer")
            .field("limiter", &self.limiter)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
