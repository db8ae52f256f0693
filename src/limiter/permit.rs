use std::{fmt, sync::Arc, time::Duration};

use super::{cost::Cost, shared::Shared};
use crate::{
    audit,
    engine::{Grant, WaitReason},
    error::Error,
};

/// Leave to do one unit of work, or several, now.
///
/// What it cost has been taken; dropping it gives nothing back.
#[derive(Clone)]
pub struct Permit {
    shared: Arc<Shared>,
    grant: Grant,
}

impl Permit {
    pub(super) const fn new(shared: Arc<Shared>, grant: Grant) -> Self {
        Self { shared, grant }
    }

    /// Says what the work really cost, once that is known: the difference to what was taken is charged, and those who come later wait for
    /// it, or given back, never above the burst. May be said again when more is known.
    ///
    /// ```
    /// use tower_throttle::{Cost, Limiter};
    ///
    /// # async fn ask() -> u32 { 700 }
    /// # async fn example(limiter: Limiter) -> Result<(), tower_throttle::Error> {
    /// let mut permit = limiter.acquire(1).of("tokens", 1_000).await?;
    /// let used = ask().await;
    /// permit.settle(Cost::new(1).of("tokens", used))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the limiter does not have a quota that is named. Nothing is changed then.
    pub fn settle(&mut self, real: Cost) -> Result<(), Error> {
        let real = real.resolve(&self.shared)?;
        let took = self.grant.costs;
        let grant = &mut self.grant;
        self.shared
            .apply(|state, now| state.engine.settle_of(now, grant, &real));
        audit::settled(
            &self.shared.name,
            self.grant.seq,
            took.first(),
            real.first(),
        );
        Ok(())
    }

    pub(super) const fn grant(&self) -> &Grant {
        &self.grant
    }

    /// The caller's number in the limiter's records, in order of arrival.
    #[must_use]
    pub const fn seq(&self) -> u64 {
        self.grant.seq
    }

    /// What was taken; of the first quota, if there are several.
    #[must_use]
    pub const fn cost(&self) -> u32 {
        self.grant.cost
    }

    /// How long the caller stood in line. Zero if it did not wait.
    #[must_use]
    pub const fn waited(&self) -> Duration {
        self.grant.waited
    }

    /// How long it would have waited at least, in a trial run; see [`observe_only`](super::LimiterBuilder::observe_only).
    #[must_use]
    pub const fn would_wait(&self) -> Duration {
        self.grant.would_wait
    }

    /// What it waited for last.
    #[must_use]
    pub const fn reason(&self) -> WaitReason {
        self.grant.reason
    }

    /// Tokens that were left.
    #[must_use]
    pub fn level(&self) -> f64 {
        self.grant.level()
    }

    /// The rate in use, in units a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.grant.rate()
    }
}

impl PartialEq for Permit {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared) && self.grant == other.grant
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("limiter", &self.shared.name)
            .field("grant", &self.grant)
            .finish()
    }
}
