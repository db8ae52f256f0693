use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use pin_project_lite::pin_project;

use super::{alarm::Alarm, cost::Cost, permit::Permit, place::Place, shared::Shared};
use crate::{
    audit,
    engine::{Ask, Costs, Priority},
    error::Error,
};

pin_project! {
    /// The future of [`Limiter::acquire`](super::Limiter::acquire) and [`acquire_timeout`](super::Limiter::acquire_timeout).
    ///
    /// It joins the line when it is first polled.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Acquire {
        place: Place,
        // The error is boxed because it is rare, and would make every future larger.
        costs: Result<Costs, Box<Error>>,
        patience: Option<Duration>,
        priority: Priority,
        #[pin]
        alarm: Alarm,
    }
}

impl Acquire {
    pub(super) fn new(shared: Arc<Shared>, cost: &Cost, patience: Option<Duration>) -> Self {
        Self {
            costs: cost.resolve(&shared).map_err(Box::new),
            place: Place::new(shared),
            patience,
            priority: Priority::Normal,
            alarm: Alarm::default(),
        }
    }

    /// Takes `amount` of the quota of this name instead of what was given for all. Has no effect once polled.
    ///
    /// If there is no such quota, the future gives an error ([`is_unknown_quota`](Error::is_unknown_quota)).
    ///
    /// ```
    /// # async fn example(limiter: tower_throttle::Limiter) -> Result<(), tower_throttle::Error> {
    /// limiter.acquire(1).of("tokens", 1_200).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn of(mut self, quota: &str, amount: u32) -> Self {
        if let Ok(costs) = self.costs {
            self.costs = match self.place.shared().quota_index(quota) {
                Some(index) => Ok(costs.with(index, amount)),
                None => Err(Box::new(Error::unknown_quota(quota))),
            };
        }
        self
    }

    /// Waits in this class; [`Priority::Normal`] if not said. Has no effect once polled.
    pub const fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }
}

impl Future for Acquire {
    type Output = Result<Permit, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let joined = if this.place.is_taken() {
            Ok(None)
        } else {
            match this.costs {
                Err(error) => Err((0, Error::clone(error))),
                &mut Ok(costs) => this.place.join_or_send(&Ask {
                    costs,
                    patience: *this.patience,
                    priority: *this.priority,
                    ..Ask::default()
                }),
            }
        };
        let sent = match joined {
            Ok(Some(grant)) => Ok(grant),
            Ok(None) => ready!(this.place.poll_sent(this.alarm, cx, false, None)),
            Err(refused) => Err(refused),
        };
        let shared = this.place.shared();
        Poll::Ready(match sent {
            Ok(grant) => {
                audit::acquired(&shared.name, &grant);
                Ok(Permit::new(Arc::clone(shared), grant))
            }
            Err((seq, error)) => {
                let cost = this.costs.as_ref().map_or(0, |costs| costs.first());
                audit::refused(&shared.name, seq, cost, &error);
                Err(error)
            }
        })
    }
}
