use std::{sync::Arc, time::Duration};

use super::{
    acquire::Acquire, builder::LimiterBuilder, cost::Cost, permit::Permit, shared::Shared,
    snapshot::Snapshot,
};
use crate::{
    audit,
    engine::{Ask, ConfigError, Learned, Quota},
    error::Error,
    feedback::Feedback,
};

/// One budget, shared by all its clones.
///
/// A token bucket with a line: callers are served in the order in which they came, each as soon as its tokens are there. Cloning is
/// cheap and shares the budget; give clones to tasks, and to as many [`ThrottleLayer`](crate::ThrottleLayer)s as talk to the same
/// server under the same key. There is no background task. Building one needs no runtime; waiting needs tokio's time driver, and
/// tokio's paused clock works.
///
/// Two limiters share nothing: with one in each of four processes the server sees four times the rate. Give each its part.
///
/// ```
/// use tower_throttle::{Limiter, Quota};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let limiter = Limiter::new(Quota::per_second(100).burst(5))?;
/// let permit = limiter.acquire(1).await?;
/// println!("sent after {:?}", permit.waited());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Limiter {
    shared: Arc<Shared>,
}

impl Limiter {
    /// A limiter with this quota and the defaults of [`builder`](Self::builder).
    ///
    /// # Errors
    ///
    /// If the quota is invalid; see [`Quota::validate`].
    pub fn new(quota: Quota) -> Result<Self, ConfigError> {
        Self::builder().quota("quota", quota).build()
    }

    /// Starts building a limiter.
    pub fn builder() -> LimiterBuilder {
        LimiterBuilder::new()
    }

    pub(super) fn from_shared(shared: Shared) -> Self {
        Self {
            shared: Arc::new(shared),
        }
    }

    pub(super) const fn over(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    pub(crate) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Waits in line for `cost`: so many units, or a [`Cost`] that is not the same for all quotas. The permit says how long that took.
    ///
    /// A cost of zero takes nothing but waits its turn, and for the end of a pause.
    ///
    /// # Errors
    ///
    /// At once if the cost is above the burst or names a quota that does not exist, if the limiter is closed, if `max_wait` or `max_queue` forbids waiting, or during a
    /// pause longer than `max_pause`; later if one of the last three comes true while waiting.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future at any point takes nothing: the place in line is given up, tokens set aside go back at once.
    ///
    /// # Panics
    ///
    /// Waiting outside a tokio runtime with time enabled panics, as tokio's timers do.
    pub fn acquire(&self, cost: impl Into<Cost>) -> Acquire {
        Acquire::new(Arc::clone(&self.shared), &cost.into(), None)
    }

    /// As [`acquire`](Self::acquire), but waits at most `timeout`, and is refused at once if the projected wait is longer.
    ///
    /// The time counts from the first poll. Like `acquire` this is cancel safe.
    pub fn acquire_timeout(&self, cost: impl Into<Cost>, timeout: Duration) -> Acquire {
        Acquire::new(Arc::clone(&self.shared), &cost.into(), Some(timeout))
    }

    /// Takes `cost` now or not at all. Never passes those who wait.
    ///
    /// # Errors
    ///
    /// If it would have to wait ([`retry_after`](Error::retry_after) says how long), or can never be met. Nothing is taken.
    pub fn try_acquire(&self, cost: impl Into<Cost>) -> Result<Permit, Error> {
        let ask = Ask::from(cost.into().resolve(&self.shared)?);
        self.shared.admit()?;
        let sent = self.shared.apply(|state, now| {
            let sent = state.engine.try_send_as(now, &ask);
            state.counters.refused += u64::from(sent.is_err());
            sent
        });
        match sent {
            Ok(grant) => {
                audit::acquired(&self.shared.name, &grant);
                Ok(Permit::new(Arc::clone(&self.shared), grant))
            }
            Err((seq, refusal)) => {
                let error = Error::refused(refusal);
                audit::refused(&self.shared.name, seq, ask.costs.first(), &error);
                Err(error)
            }
        }
    }

    /// Holds everything back for `wait` from now, as after a 429: the next request leaves when it is over, alone, and the rest follow
    /// at the rate. A pause under way is extended, never shortened.
    pub fn penalize(&self, wait: Duration) {
        let (paused, now) = self.shared.apply(|state, now| {
            let paused = state.engine.penalize(now, wait);
            state.counters.pauses += u64::from(paused.is_some());
            (paused, now)
        });
        if let Some(pause) = paused {
            audit::paused(&self.shared.name, None, Some(wait), None, pause, now);
        }
    }

    /// Takes in the answer to the request that `permit` was for, for clients that are not behind a
    /// [`ThrottleLayer`](crate::ThrottleLayer). Late answers are recognised, and many refusals of one flight count as one.
    ///
    /// Pauses and budgets can only slow the limiter down; an accepted request helps a lowered rate to rise again, to the configured one.
    ///
    /// ```
    /// use std::time::SystemTime;
    /// use http::{HeaderMap, StatusCode};
    /// use tower_throttle::{Limiter, Quota, feedback};
    ///
    /// # async fn send() -> (StatusCode, HeaderMap) { (StatusCode::OK, HeaderMap::new()) }
    /// # async fn example(limiter: Limiter) -> Result<(), tower_throttle::Error> {
    /// let permit = limiter.acquire(1).await?;
    /// let (status, headers) = send().await;
    /// limiter.answered(&permit, &feedback::read(status, &headers, SystemTime::now()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A worker that calls a database, a queue or a gRPC service, none of which has headers to read:
    ///
    /// ```
    /// use std::time::Duration;
    /// use tower_throttle::{Error, Limiter, feedback::Feedback};
    ///
    /// # struct Job;
    /// # struct TooMany { retry_in: Option<Duration> }
    /// # async fn insert(_: &Job) -> Result<(), TooMany> { Ok(()) }
    /// async fn work(limiter: Limiter, mut jobs: Vec<Job>) -> Result<(), Error> {
    ///     while let Some(job) = jobs.pop() {
    ///         let permit = limiter.acquire(1).await?;
    ///         let feedback = match insert(&job).await {
    ///             Ok(()) => Feedback::accepted(),
    ///             Err(TooMany { retry_in }) => {
    ///                 jobs.push(job);
    ///                 Feedback::refusal(retry_in)
    ///             }
    ///         };
    ///         limiter.answered(&permit, &feedback);
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn answered(&self, permit: &Permit, feedback: &Feedback) {
        let grant = permit.grant();
        super::observe::observe(&self.shared, Some(grant.seq), Some(grant.flight), feedback);
    }

    /// Takes in what the server said outside any request of ours, or where the permit is not at hand: it applies as if an answer to
    /// the newest request had brought it. It can only slow the limiter down.
    ///
    /// With many requests at once use [`answered`](Self::answered): from here each refusal without a time looks like news and cuts the
    /// rate again.
    ///
    /// ```
    /// use std::time::SystemTime;
    /// use http::{HeaderMap, StatusCode};
    /// use tower_throttle::{Limiter, Quota, feedback};
    ///
    /// let limiter = Limiter::new(Quota::per_second(10))?;
    /// let mut headers = HeaderMap::new();
    /// headers.insert("retry-after", "30".parse()?);
    /// limiter.reconcile(&feedback::read(StatusCode::TOO_MANY_REQUESTS, &headers, SystemTime::now()));
    /// assert!(limiter.try_acquire(1).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reconcile(&self, feedback: &Feedback) {
        super::observe::observe(&self.shared, None, None, feedback);
    }

    /// Whole units of each quota that could be taken now without waiting, if nobody else came: zero during a pause and while others wait.
    #[must_use]
    pub fn available(&self) -> u64 {
        let view = self.shared.apply(|state, now| state.engine.view(now));
        if view.queue_len > 0 || view.pause.is_some() || view.halted {
            return 0;
        }
        let outstanding = view.held + view.in_flight;
        let levels = (view.quotas.iter()).map(|quota| quota.level.max(0.0) as u64);
        (view.windows.iter())
            .map(|window| window.left.saturating_sub(outstanding))
            .chain(levels)
            .min()
            .unwrap_or(0)
    }

    /// A look at the state.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let (view, now, counters, unreadable) = self.shared.apply(|state, now| {
            let unreadable = (state.unreadable.iter())
                .map(|(field, count)| (field.to_owned(), count))
                .collect();
            let view = state.engine.view(now);
            (view, now, state.counters, unreadable)
        });
        Snapshot::new(
            &self.shared.name,
            self.shared.quotas(),
            view,
            now,
            counters,
            unreadable,
        )
    }

    /// The server's limit, if refusals have told it for sure; see [`Learned`]. Give it to [`LimiterBuilder::learned`] after a restart.
    #[must_use]
    pub fn learned(&self) -> Option<Learned> {
        let adaptation = self
            .shared
            .apply(|state, now| state.engine.view(now).adaptation);
        let limit = adaptation.limit.filter(|_| adaptation.unsure == 0.0)?;
        Some(Learned::from_per_second(limit))
    }

    /// Ends it: those who wait and those who come get an error ([`is_closed`](Error::is_closed)) at once. Requests already sent are
    /// not touched.
    pub fn close(&self) {
        self.shared.apply(|state, now| state.engine.close(now));
        audit::closed(&self.shared.name);
    }
}
