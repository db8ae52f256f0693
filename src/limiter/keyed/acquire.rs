use std::{
    future::Future,
    hash::Hash,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use pin_project_lite::pin_project;

use super::{
    core::Start,
    handle::KeyedLimiter,
    pass::{Pass, Stopped},
    permit::KeyedPermit,
};
use crate::{audit, error::Error, limiter::Alarm};

pin_project! {
    /// The future of [`KeyedLimiter::acquire`] and [`acquire_timeout`](KeyedLimiter::acquire_timeout).
    ///
    /// It joins the key's line when it is first polled.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct KeyedAcquire<K> {
        limiter: KeyedLimiter<K>,
        key: K,
        cost: u32,
        patience: Option<Duration>,
        #[pin]
        waiting: Option<Waiting>,
    }
}

pin_project! {
    #[derive(Debug)]
    struct Waiting {
        pass: Pass,
        #[pin]
        alarm: Alarm,
    }
}

impl<K> KeyedAcquire<K> {
    pub(super) const fn new(
        limiter: KeyedLimiter<K>,
        key: K,
        cost: u32,
        patience: Option<Duration>,
    ) -> Self {
        Self {
            limiter,
            key,
            cost,
            patience,
            waiting: None,
        }
    }
}

impl<K> Future for KeyedAcquire<K>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
{
    type Output = Result<KeyedPermit, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if this.waiting.is_none() {
            let mut pass = match this.limiter.core().start(this.key, *this.cost)? {
                Start::Permit(permit) => return Poll::Ready(Ok(permit)),
                Start::Wait(pass) => pass,
            };
            match pass.start(*this.cost, *this.patience, false) {
                Ok(Some(passed)) => return Poll::Ready(Ok(passed.permit(pass.key()))),
                Ok(None) => {}
                Err(stopped) => return Poll::Ready(Err(stopped.recorded(*this.cost))),
            }
            let alarm = Alarm::default();
            this.waiting.set(Some(Waiting { pass, alarm }));
        }
        let Some(waiting) = this.waiting.as_mut().as_pin_mut() else {
            return Poll::Pending;
        };
        let waiting = waiting.project();
        let passed = ready!(waiting.pass.poll_sent(waiting.alarm, cx, false));
        let result = match passed {
            Ok(passed) => Ok(passed.permit(waiting.pass.key())),
            Err(stopped) => Err(stopped.recorded(*this.cost)),
        };
        this.waiting.set(None);
        Poll::Ready(result)
    }
}

impl Stopped {
    fn recorded(self, cost: u32) -> Error {
        audit::refused(&self.shared.name, self.seq, cost, &self.error);
        self.error
    }
}
