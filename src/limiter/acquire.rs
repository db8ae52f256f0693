use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use pin_project_lite::pin_project;

use super::{alarm::Alarm, permit::Permit, place::Place, shared::Shared};
use crate::{audit, error::Error};

pin_project! {
    /// The future of [`Limiter::acquire`](super::Limiter::acquire) and [`acquire_timeout`](super::Limiter::acquire_timeout).
    ///
    /// It joins the line when it is first polled.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Acquire {
        place: Place,
        cost: u32,
        patience: Option<Duration>,
        #[pin]
        alarm: Alarm,
    }
}

impl Acquire {
    pub(super) fn new(shared: Arc<Shared>, cost: u32, patience: Option<Duration>) -> Self {
        Self {
            place: Place::new(shared),
            cost,
            patience,
            alarm: Alarm::default(),
        }
    }
}

impl Future for Acquire {
    type Output = Result<Permit, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let joined = if this.place.is_taken() {
            Ok(None)
        } else {
            this.place.join_or_send(*this.cost, *this.patience)
        };
        let sent = match joined {
            Ok(Some(grant)) => Ok(grant),
            Ok(None) => ready!(this.place.poll_sent(this.alarm, cx, false)),
            Err(refused) => Err(refused),
        };
        let shared = this.place.shared();
        Poll::Ready(match sent {
            Ok(grant) => {
                audit::acquired(&shared.name, &grant);
                Ok(Permit::new(grant))
            }
            Err((seq, error)) => {
                audit::refused(&shared.name, seq, *this.cost, &error);
                Err(error)
            }
        })
    }
}
