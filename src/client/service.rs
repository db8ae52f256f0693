use std::{
    fmt, mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tower_service::Service;

use super::{
    future::ResponseFuture,
    options::{Options, deadline},
};
use crate::{
    BoxError, RequestHead, ResponseHead,
    error::Error,
    limiter::{Alarm, Limiter, Place},
};

/// A client behind a [`Limiter`]; made by [`ThrottleLayer`](crate::ThrottleLayer).
///
/// `poll_ready` waits in line for one unit and then for the inner service. The unit is set aside for this instance until it is called
/// or dropped; a clone starts without one. `poll_ready` fails only if the inner service does: a refusal by the limiter comes as the
/// error of the response future, because a `Buffer` around this service would never recover from the former.
///
/// Between ready and call nothing is promised twice: if a pause comes in between, or the unit was held so long that others needed it,
/// the response future waits, at the front of the line, before the inner service is called. This is why `S` must be [`Clone`]: the
/// instance that was ready goes into the future and its clone stays. Wrap other services in a `Buffer`.
pub struct Throttle<S> {
    inner: S,
    gate: Gate,
    place: Place,
    alarm: Option<Pin<Box<Alarm>>>,
    limiter: Limiter,
    options: Options,
}

#[derive(Debug)]
enum Gate {
    /// Nothing asked yet.
    Idle,
    /// In line.
    Line,
    /// Granted; the inner service has yet to be ready. `lagged`: it was not at first, so the grant has to be looked at again.
    Granted { lagged: bool },
    /// Both are there.
    Ready,
    /// The limiter refused the caller with this number; the next call is told.
    Refused(u64, Error),
}

impl<S> Throttle<S> {
    pub(super) fn new(inner: S, limiter: Limiter, options: Options) -> Self {
        Self {
            inner,
            gate: Gate::Idle,
            place: Place::new(Arc::clone(limiter.shared())),
            alarm: None,
            limiter,
            options,
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
    pub const fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    fn poll_place(&mut self, cx: &mut Context<'_>) -> Poll<Gate> {
        let alarm = self
            .alarm
            .get_or_insert_with(|| Box::pin(Alarm::default()))
            .as_mut();
        self.place
            .poll_granted(alarm, cx)
            .map(|granted| match granted {
                Ok(()) => Gate::Granted { lagged: false },
                Err((seq, error)) => Gate::Refused(seq, error),
            })
    }
}

impl<S, Req> Service<Req> for Throttle<S>
where
    S: Service<Req> + Clone,
    S::Response: ResponseHead,
    S::Error: Into<BoxError>,
    Req: RequestHead,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S, Req>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        loop {
            self.gate = match self.gate {
                Gate::Idle => match self.place.join(&self.options.ask) {
                    Ok(true) => Gate::Granted { lagged: false },
                    Ok(false) => Gate::Line,
                    Err((seq, error)) => Gate::Refused(seq, error),
                },
                Gate::Line => ready!(self.poll_place(cx)),
                Gate::Granted { ref mut lagged } => {
                    match self.inner.poll_ready(cx) {
                        Poll::Pending => {
                            *lagged = true;
                            return Poll::Pending;
                        }
                        Poll::Ready(ready) => ready.map_err(Into::into)?,
                    }
                    if *lagged {
                        // A pause may have come while the inner service was not ready.
                        self.gate = Gate::Line;
                        match ready!(self.poll_place(cx)) {
                            Gate::Granted { .. } => Gate::Ready,
                            other => other,
                        }
                    } else {
                        Gate::Ready
                    }
                }
                Gate::Ready | Gate::Refused(..) => return Poll::Ready(Ok(())),
            };
        }
    }

    fn call(&mut self, request: Req) -> Self::Future {
        match mem::replace(&mut self.gate, Gate::Idle) {
            Gate::Ready => self.send(request),
            Gate::Refused(seq, error) => self.refuse(seq, error, &request),
            unready => {
                // A caller's mistake; what was begun is kept.
                self.gate = unready;
                self.refuse(0, Error::not_ready(), &request)
            }
        }
    }
}

impl<S> Throttle<S> {
    /// The place is granted, and the inner service ready.
    fn send<Req>(&mut self, request: Req) -> ResponseFuture<S, Req>
    where
        S: Service<Req> + Clone,
        Req: RequestHead,
    {
        let options = self.options.clone();
        let shared = Arc::clone(self.limiter.shared());
        let hurried = match deadline(&request) {
            Some(deadline) => self.place.hurry(deadline.instant()),
            None => Ok(()),
        };
        if let Err((seq, error)) = hurried {
            return self.refuse(seq, error, &request);
        }
        let real = match options.price(&shared, &request) {
            Ok(real) => real,
            Err(error) => {
                let seq = self.place.withdraw();
                return self.refuse(seq, error, &request);
            }
        };
        match self.place.send(true, real.as_ref()) {
            Some(Ok(grant)) => {
                ResponseFuture::sent(shared, options, grant, &mut self.inner, request)
            }
            Some(Err((seq, error))) => self.refuse(seq, error, &request),
            None => {
                let place = mem::replace(&mut self.place, Place::new(shared));
                let clone = self.inner.clone();
                let ready = mem::replace(&mut self.inner, clone);
                ResponseFuture::waiting(place, options, real, ready, request)
            }
        }
    }

    fn refuse<Req>(&self, seq: u64, error: Error, request: &Req) -> ResponseFuture<S, Req>
    where
        S: Service<Req>,
        Req: RequestHead,
    {
        ResponseFuture::refused(self.limiter.shared(), seq, error, request)
    }
}

/// A clone shares the limiter and starts unready: what this instance has set aside stays with it.
impl<S: Clone> Clone for Throttle<S> {
    fn clone(&self) -> Self {
        Self::new(
            self.inner.clone(),
            self.limiter.clone(),
            self.options.clone(),
        )
    }
}

impl<S: fmt::Debug> fmt::Debug for Throttle<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Throttle")
            .field("inner", &self.inner)
            .field("gate", &self.gate)
            .field("limiter", &self.limiter)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
