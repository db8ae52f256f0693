use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;
use tower_service::Service;

use super::{
    flight::InFlight,
    options::{Options, UNIT, deadline},
};
use crate::{
    BoxError, RequestHead, ResponseHead, audit,
    engine::{Costs, Grant},
    error::Error,
    limiter::{Alarm, Place, Shared},
};

pin_project! {
    /// The response future of [`Throttle`](super::Throttle).
    ///
    /// Fails with the inner service's error, or with an [`Error`] of the limiter.
    pub struct ResponseFuture<S, Req>
    where
        S: Service<Req>,
    {
        #[pin]
        state: State<S, Req>,
        options: Options,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<S, Req>
    where
        S: Service<Req>,
    {
        Refused { error: Error },
        // Rare, and large: it would make every future larger.
        Waiting { waiting: Pin<Box<Waiting<S, Req>>> },
        Calling {
            #[pin]
            future: S::Future,
            in_flight: InFlight,
        },
    }
}

pin_project! {
    /// A request whose turn has been lost between ready and call.
    #[project = WaitingProj]
    struct Waiting<S, Req> {
        place: Place,
        #[pin]
        alarm: Alarm,
        real: Option<Costs>,
        ready: S,
        request: Option<Req>,
    }
}

impl<S, Req> ResponseFuture<S, Req>
where
    S: Service<Req>,
    Req: RequestHead,
{
    pub(super) fn refused(shared: &Shared, seq: u64, error: Error, request: &Req) -> Self {
        audit::refused_request(&shared.name, seq, UNIT.first(), &error, request);
        Self {
            state: State::Refused { error },
            options: Options::NONE,
        }
    }

    pub(super) fn waiting(
        mut place: Place,
        options: Options,
        real: Option<Costs>,
        ready: S,
        request: Req,
    ) -> Self {
        // The turn is later now.
        if let Some(deadline) = deadline(&request)
            && let Err((seq, error)) = place.hurry(deadline.instant())
        {
            return Self::refused(place.shared(), seq, error, &request);
        }
        Self {
            state: State::Waiting {
                waiting: Box::pin(Waiting {
                    place,
                    alarm: Alarm::default(),
                    real,
                    ready,
                    request: Some(request),
                }),
            },
            options,
        }
    }

    pub(super) fn sent(
        shared: Arc<Shared>,
        options: Options,
        grant: Grant,
        inner: &mut S,
        request: Req,
    ) -> Self {
        Self {
            state: call(shared, grant, inner, request),
            options,
        }
    }
}

impl<S, Req> Future for ResponseFuture<S, Req>
where
    S: Service<Req>,
    S::Response: ResponseHead,
    S::Error: Into<BoxError>,
    Req: RequestHead,
{
    type Output = Result<S::Response, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            match this.state.as_mut().project() {
                StateProj::Refused { error } => return Poll::Ready(Err(error.clone().into())),
                StateProj::Waiting { waiting } => {
                    let WaitingProj {
                        place,
                        alarm,
                        real,
                        ready,
                        request,
                    } = waiting.as_mut().project();
                    let sent = ready!(place.poll_sent(alarm, cx, true, real.as_ref()));
                    let request = request
                        .take()
                        .expect("a response future is not polled after it is done");
                    let shared = Arc::clone(place.shared());
                    let next = match sent {
                        Ok(grant) => call(shared, grant, ready, request),
                        Err((seq, error)) => {
                            let cost = real.unwrap_or(UNIT).first();
                            audit::refused_request(&shared.name, seq, cost, &error, &request);
                            State::Refused { error }
                        }
                    };
                    this.state.set(next);
                }
                StateProj::Calling { future, in_flight } => {
                    return Poll::Ready(match ready!(future.poll(cx)) {
                        Ok(response) => Ok(in_flight.answered(response, this.options)),
                        Err(error) => {
                            in_flight.failed();
                            Err(error.into())
                        }
                    });
                }
            }
        }
    }
}

fn call<S, Req>(shared: Arc<Shared>, grant: Grant, inner: &mut S, request: Req) -> State<S, Req>
where
    S: Service<Req>,
    Req: RequestHead,
{
    audit::sent(&shared.name, &grant, &request);
    #[cfg(feature = "journal")]
    shared.note_request(&grant, &request);
    // Before the inner service is called, so that the record is closed even if that panics.
    let in_flight = InFlight::new(shared, grant);
    State::Calling {
        future: inner.call(request),
        in_flight,
    }
}

impl<S, Req> fmt::Debug for ResponseFuture<S, Req>
where
    S: Service<Req>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
