use std::{
    fmt,
    hash::Hash,
    mem,
    task::{Context, Poll},
};

use tower_service::Service;

use super::{future::KeyedResponseFuture, key::KeyOf};
use crate::{
    BoxError, RequestHead, ResponseHead,
    client::options::{Options, UNIT},
    error::Error,
    limiter::keyed::{KeyedLimiter, Stopped},
};

/// A client behind a [`KeyedLimiter`]; made by [`KeyedThrottleLayer`](super::KeyedThrottleLayer).
///
/// `poll_ready` asks the inner service and nothing else. `call` finds the key and gets in its line; if it has to wait, that is in the
/// response future, together with the inner service that was ready. This is why `S` must be [`Clone`]: the instance that was ready goes
/// into the future and its clone stays. A refusal by the limiter comes as the error of the response future.
pub struct KeyedThrottle<S, K, F> {
    inner: S,
    limiter: KeyedLimiter<K>,
    key: F,
    options: Options,
    ready: bool,
}

impl<S, K, F> KeyedThrottle<S, K, F> {
    pub(super) const fn new(inner: S, limiter: KeyedLimiter<K>, key: F, options: Options) -> Self {
        Self {
            inner,
            limiter,
            key,
            options,
            ready: false,
        }
    }

    /// The inner service.
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The inner service, mutable.
    pub const fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// Gives the inner service back.
    pub fn into_inner(self) -> S {
        self.inner
    }

    /// The limiter.
    pub const fn limiter(&self) -> &KeyedLimiter<K> {
        &self.limiter
    }
}

impl<S, K, F, Req> Service<Req> for KeyedThrottle<S, K, F>
where
    S: Service<Req> + Clone,
    S::Response: ResponseHead,
    S::Error: Into<BoxError>,
    K: Hash + Eq + Clone + Send + Sync + 'static,
    F: KeyOf<Req, K>,
    Req: RequestHead,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = KeyedResponseFuture<S, Req>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map(|ready| {
            self.ready = ready.is_ok();
            ready.map_err(Into::into)
        })
    }

    fn call(&mut self, request: Req) -> Self::Future {
        let options = self.options.clone();
        if !mem::take(&mut self.ready) {
            return self.refuse(Error::not_ready(), &request);
        }
        let key = self.key.key_of(&request);
        let mut pass = match self.limiter.core().pass(&key) {
            Ok(pass) => pass,
            Err(error) => return self.refuse(error, &request),
        };
        match pass.start(UNIT.first(), None, true) {
            Ok(Some(passed)) => {
                KeyedResponseFuture::sent(&pass, passed, options, &mut self.inner, request)
            }
            Ok(None) => {
                let clone = self.inner.clone();
                let ready = mem::replace(&mut self.inner, clone);
                KeyedResponseFuture::waiting(pass, options, ready, request)
            }
            Err(Stopped { shared, seq, error }) => {
                KeyedResponseFuture::refused(&shared.name, seq, error, &request)
            }
        }
    }
}

impl<S, K, F> KeyedThrottle<S, K, F>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
{
    fn refuse<Req>(&self, error: Error, request: &Req) -> KeyedResponseFuture<S, Req>
    where
        S: Service<Req>,
        Req: RequestHead,
    {
        KeyedResponseFuture::refused(self.limiter.core().name(), 0, error, request)
    }
}

/// A clone shares the limiter and starts unready.
impl<S: Clone, K, F: Clone> Clone for KeyedThrottle<S, K, F> {
    fn clone(&self) -> Self {
        Self::new(
            self.inner.clone(),
            self.limiter.clone(),
            self.key.clone(),
            self.options.clone(),
        )
    }
}

impl<S: fmt::Debug, K, F> fmt::Debug for KeyedThrottle<S, K, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedThrottle")
            .field("inner", &self.inner)
            .field("limiter", &self.limiter)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
