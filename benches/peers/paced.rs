//! The limiters that are compared, behind one face: "wait for your turn".

use std::{error::Error, future::Future, num::NonZeroU32, sync::Arc, time::Duration};

use governor::DefaultDirectRateLimiter;
use tower_throttle::{Limiter, Quota};

/// Something whose turns are limited. Clones share the limit.
pub(crate) trait Paced: Clone + Send + Sync + 'static {
    const NAME: &'static str;

    /// So many turns a second; `burst` may come at once after a quiet time.
    fn new(per_second: u32, burst: u32) -> Result<Self, Box<dyn Error>>;

    fn turn(&self) -> impl Future<Output = ()> + Send;
}

impl Paced for Limiter {
    const NAME: &'static str = "tower-throttle";

    fn new(per_second: u32, burst: u32) -> Result<Self, Box<dyn Error>> {
        Ok(Self::new(Quota::per_second(per_second).burst(burst))?)
    }

    async fn turn(&self) {
        self.acquire(1)
            .await
            .expect("a limiter without bounds refuses nobody");
    }
}

/// governor has no line: each waiter sleeps until it could have a turn and tries again.
impl Paced for Arc<DefaultDirectRateLimiter> {
    const NAME: &'static str = "governor";

    fn new(per_second: u32, burst: u32) -> Result<Self, Box<dyn Error>> {
        let per_second = NonZeroU32::try_from(per_second)?;
        let quota = governor::Quota::per_second(per_second).allow_burst(burst.try_into()?);
        Ok(Self::new(DefaultDirectRateLimiter::direct(quota)))
    }

    async fn turn(&self) {
        self.until_ready().await;
    }
}

/// leaky-bucket refills in steps, driven by a tokio timer whose grain is a millisecond. So one token at a time where the interval
/// is at least that, and above a thousand a second as many as fall to one millisecond.
///
/// Its `max` is the burst, but never below one step: it discards what is above `max` before it serves the line, so that a smaller
/// one would lose most of each step. Where that applies its burst is larger than the others', to its advantage.
///
/// It counts how late a step was in whole milliseconds and forgets the rest, up to a millisecond in each step, which is why it falls
/// behind; longer steps would lose less, and come in larger volleys.
impl Paced for Arc<leaky_bucket::RateLimiter> {
    const NAME: &'static str = "leaky-bucket";

    fn new(per_second: u32, burst: u32) -> Result<Self, Box<dyn Error>> {
        const GRAIN: Duration = Duration::from_millis(1);
        let (refill, interval) = match Duration::from_secs(1) / per_second {
            interval if interval >= GRAIN => (1, interval),
            _ => (usize::try_from(per_second / 1_000)?, GRAIN),
        };
        let max = usize::try_from(burst)?.max(refill);
        let limiter = leaky_bucket::RateLimiter::builder()
            .initial(max)
            .max(max)
            .refill(refill)
            .interval(interval)
            .build();
        Ok(Self::new(limiter))
    }

    async fn turn(&self) {
        self.acquire(1).await;
    }
}
