use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep_until};

use super::clock::Clock;
use crate::engine::Time;

pin_project! {
    /// A timer that can be moved.
    ///
    /// It is made anew at each move instead of being reset: the future it is part of may have come to another runtime.
    #[derive(Debug, Default)]
    pub(crate) struct Alarm {
        #[pin]
        sleep: Option<Sleep>,
        // Zero, which has passed for ever, if it is not set.
        at: Time,
    }
}

impl Alarm {
    /// Ready once `at` has come; otherwise the task is woken then.
    pub(crate) fn poll_at(
        self: Pin<&mut Self>,
        clock: &Clock,
        at: Time,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        let mut this = self.project();
        if *this.at != at {
            this.sleep.set(Some(sleep_until(clock.alarm(at))));
            *this.at = at;
        }
        while let Some(sleep) = this.sleep.as_mut().as_pin_mut() {
            ready!(sleep.poll(cx));
            // It may have been set for a part of the wait.
            let rest = at > clock.now();
            this.sleep.set(rest.then(|| sleep_until(clock.alarm(at))));
        }
        *this.at = Time::ZERO;
        Poll::Ready(())
    }

    /// Stops the timer.
    pub(crate) fn stop(self: Pin<&mut Self>) {
        let mut this = self.project();
        *this.at = Time::ZERO;
        if this.sleep.is_some() {
            this.sleep.set(None);
        }
    }
}
