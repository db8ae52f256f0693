use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;
use tower_service::Service;

use crate::{
    BoxError, RequestHead, ResponseHead, audit,
    client::{
        flight::InFlight,
        options::{Options, UNIT},
    },
    error::Error,
    limiter::{
        Alarm,
        keyed::{Above, Pass, Passed, Stopped, Wider},
    },
};

pin_project! {
    /// The response future of [`KeyedThrottle`](super::KeyedThrottle): waits for the key, then for the response.
    ///
    /// Fails with the inner service's error, or with an [`Error`] of the limiter. Dropping it while it waits gives its place up, and
    /// takes nothing from any budget.
    pub struct KeyedResponseFuture<S, Req>
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
        // Large, and it would make every future larger.
        Waiting { waiting: Pin<Box<Waiting<S, Req>>> },
        Calling {
            #[pin]
            future: S::Future,
            in_flight: InFlight,
            wider: Wider,
            above: Option<Above>,
        },
    }
}

pin_project! {
    /// A request whose turn has not come.
    #[project = WaitingProj]
    struct Waiting<S, Req> {
        pass: Pass,
        #[pin]
        alarm: Alarm,
        ready: S,
        request: Option<Req>,
    }
}

impl<S, Req> KeyedResponseFuture<S, Req>
where
    S: Service<Req>,
    Req: RequestHead,
{
    pub(super) fn refused(limiter: &str, seq: u64, error: Error, request: &Req) -> Self {
        audit::refused_request(limiter, seq, UNIT.first(), &error, request);
        Self {
            state: State::Refused { error },
            options: Options::NONE,
        }
    }

    pub(super) fn waiting(pass: Pass, options: Options, ready: S, request: Req) -> Self {
        Self {
            state: State::Waiting {
                waiting: Box::pin(Waiting {
                    pass,
                    alarm: Alarm::default(),
                    ready,
                    request: Some(request),
                }),
            },
            options,
        }
    }

    pub(super) fn sent(
        pass: &Pass,
        passed: Passed,
        options: Options,
        inner: &mut S,
        request: Req,
    ) -> Self {
        Self {
            state: call(pass, passed, inner, request),
            options,
        }
    }
}

impl<S, Req> Future for KeyedResponseFuture<S, Req>
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
                        pass,
                        alarm,
                        ready,
                        request,
                    } = waiting.as_mut().project();
                    let passed = ready!(pass.poll_sent(alarm, cx, true));
                    let request = request
                        .take()
                        .expect("a response future is not polled after it is done");
                    let next = match passed {
                        Ok(passed) => call(pass, passed, ready, request),
                        Err(Stopped { shared, seq, error }) => {
                            audit::refused_request(
                                &shared.name,
                                seq,
                                UNIT.first(),
                                &error,
                                &request,
                            );
                            State::Refused { error }
                        }
                    };
                    this.state.set(next);
                }
                StateProj::Calling {
                    future,
                    in_flight,
                    wider,
                    above,
                } => {
                    return Poll::Ready(match ready!(future.poll(cx)) {
                        Ok(response) => Ok(in_flight.answered_with(
                            response,
                            this.options,
                            |key, seq, flight, feedback| {
                                wider.observe(key, seq, flight, *above, feedback)
                            },
                        )),
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

fn call<S, Req>(pass: &Pass, passed: Passed, inner: &mut S, request: Req) -> State<S, Req>
where
    S: Service<Req>,
    Req: RequestHead,
{
    let Passed { grant, above } = passed;
    audit::sent(&pass.key().name, &grant, &request);
    // Before the inner service is called, so that the record is closed even if that panics.
    let in_flight = InFlight::new(Arc::clone(pass.key()), grant);
    State::Calling {
        future: inner.call(request),
        in_flight,
        wider: pass.wider().clone(),
        above,
    }
}

impl<S, Req> fmt::Debug for KeyedResponseFuture<S, Req>
where
    S: Service<Req>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedResponseFuture")
            .finish_non_exhaustive()
    }
}
