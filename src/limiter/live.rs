//! What can be changed while a limiter runs. Each change is seen by those who wait at once.

use std::time::Duration;

use super::handle::Limiter;
use crate::{
    audit,
    engine::{ConfigError, Quota},
};

impl Limiter {
    /// Changes the quota of this name.
    ///
    /// As many units are there as before, but no more than the new burst; a debt stays a debt. What a limiter has learnt stays, as far as
    /// the new rate allows. Who waits for more than the new burst gets an error.
    ///
    /// # Errors
    ///
    /// If there is no quota of this name, the new one is invalid, or one of the two is a [`Quota::at_most`] and the other is not one of the
    /// same window. Nothing is changed then.
    pub fn set_quota(&self, name: &str, quota: Quota) -> Result<(), ConfigError> {
        let shared = self.shared();
        let index = shared
            .quota_index(name)
            .ok_or(ConfigError::new("quota", "is not one of this limiter's"))?;
        shared.apply(|state, now| state.engine.set_quota(now, index, quota))?;
        audit::changed(&shared.name, "quota");
        Ok(())
    }

    /// Changes the burst of the quota of this name; see [`set_quota`](Self::set_quota).
    ///
    /// # Errors
    ///
    /// If there is no quota of this name, or the burst is zero.
    pub fn resize(&self, name: &str, burst: u32) -> Result<(), ConfigError> {
        let shared = self.shared();
        let index = shared.quota_index(name);
        let resized = shared.apply(|state, now| {
            let quota = index.and_then(|index| state.engine.config().quota_at(index));
            let quota = quota.ok_or(ConfigError::new("quota", "is not one of this limiter's"))?;
            state
                .engine
                .set_quota(now, index.unwrap_or(0), quota.burst(burst))
        });
        resized?;
        audit::changed(&shared.name, "burst");
        Ok(())
    }

    /// Changes how long callers may wait from now on; see [`max_wait`](super::LimiterBuilder::max_wait). Those who wait keep the patience they
    /// came with.
    pub fn set_max_wait(&self, wait: Option<Duration>) {
        self.patience(|patience| patience.0 = wait);
    }

    /// Changes how many callers may wait; see [`max_queue`](super::LimiterBuilder::max_queue). Those who wait stay.
    pub fn set_max_queue(&self, callers: Option<usize>) {
        self.patience(|patience| patience.1 = callers);
    }

    /// Changes how long a pause may be; see [`max_pause`](super::LimiterBuilder::max_pause). Those who wait in a longer one get an error at
    /// once.
    pub fn set_max_pause(&self, pause: Duration) {
        self.patience(|patience| patience.2 = pause);
    }

    /// Holds everything back until [`resume`](Self::resume). Those who come wait, or are refused where a bound says so.
    pub fn pause(&self) {
        let shared = self.shared();
        shared.apply(|state, now| state.engine.halt(now));
        audit::changed(&shared.name, "paused");
    }

    /// Ends what [`pause`](Self::pause) began: one request leaves, and the rest follow at the rate. A pause that the server asked for goes on.
    pub fn resume(&self) {
        let shared = self.shared();
        shared.apply(|state, now| state.engine.resume(now));
        audit::changed(&shared.name, "resumed");
    }

    /// Begins or ends a trial run; see [`observe_only`](super::LimiterBuilder::observe_only). Those who wait when it begins leave at once;
    /// when it ends no debt is left.
    pub fn set_observe_only(&self, observe: bool) {
        let shared = self.shared();
        shared.apply(|state, now| state.engine.set_observe(now, observe));
        audit::changed(
            &shared.name,
            if observe { "observing" } else { "enforcing" },
        );
    }

    fn patience(&self, change: impl FnOnce(&mut (Option<Duration>, Option<usize>, Duration))) {
        let shared = self.shared();
        shared.apply(|state, now| {
            let config = state.engine.config();
            let mut patience = (config.max_wait, config.max_queue, config.max_pause);
            change(&mut patience);
            state
                .engine
                .set_patience(now, patience.0, patience.1, patience.2);
        });
        audit::changed(&shared.name, "patience");
    }
}
