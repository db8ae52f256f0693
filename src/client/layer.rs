use std::{sync::Arc, time::Duration};

use http::{HeaderMap, StatusCode};
use tower_layer::Layer;

use super::{options::Options, service::Throttle};
use crate::{
    RequestHead,
    engine::Priority,
    feedback::{Dialect, Feedback, Reader},
    limiter::{Cost, Limiter},
};

/// Puts a [`Limiter`] in front of a client.
///
/// All services made by this layer, by its clones, and by other layers over clones of the same limiter share one budget.
///
/// Where to put it:
///
/// - *inside* retries and redirects, so that every attempt and every hop pays and is seen. Outside them, an operation pays once,
///   however many requests it makes, and the refusals in between are not noticed.
/// - a timeout, on either side, covers the request only: tower's `Timeout` starts with `call`, and the wait in line is in `poll_ready`.
///   Bound that wait with [`max_wait`](Self::max_wait), or put both into a future of your own: `timeout(limit, service.oneshot(request))`.
#[derive(Debug, Clone)]
pub struct ThrottleLayer {
    limiter: Limiter,
    options: Options,
}

impl ThrottleLayer {
    /// A layer over `limiter`.
    #[must_use]
    pub const fn new(limiter: Limiter) -> Self {
        Self {
            limiter,
            options: Options::NONE,
        }
    }

    /// Adds what names and values of the server's fields cannot tell: units, meanings, statuses. Without a dialect the general rules
    /// of [`feedback`](crate::feedback) apply.
    ///
    /// ```
    /// use tower_throttle::{Limiter, Quota, ThrottleLayer, feedback::Dialect};
    ///
    /// let limiter = Limiter::new(Quota::per_second(2).burst(40))?;
    /// let layer = ThrottleLayer::new(limiter).dialect(Dialect::shopify());
    /// # Ok::<(), tower_throttle::ConfigError>(())
    /// ```
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.options.reader = Some(Arc::new(Reader::new().dialect(dialect)));
        self
    }

    /// Lets `classify` see each response head and change what was read from it, before it is applied: to recognise a refusal the
    /// headers do not show, to name its wait, or to forgive one.
    ///
    /// ```
    /// use std::time::Duration;
    /// use http::StatusCode;
    /// use tower_throttle::{Limiter, Quota, ThrottleLayer, feedback::{Feedback, Hold}};
    ///
    /// let limiter = Limiter::new(Quota::per_second(10))?;
    /// let layer = ThrottleLayer::new(limiter).classify(|status, headers, feedback| {
    ///     if headers.contains_key("x-overloaded") {
    ///         feedback.refused = true;
    ///         feedback.hold = Some(Hold::new(Duration::from_secs(5)));
    ///     } else if status == StatusCode::SERVICE_UNAVAILABLE {
    ///         *feedback = Feedback::accepted();
    ///     }
    /// });
    /// # Ok::<(), tower_throttle::ConfigError>(())
    /// ```
    #[must_use]
    pub fn classify(
        mut self,
        classify: impl Fn(StatusCode, &HeaderMap, &mut Feedback) + Send + Sync + 'static,
    ) -> Self {
        self.options.classify = Some(Arc::new(classify));
        self
    }

    /// Says what each request costs, from its head; one unit of each quota if this is not said. A [`Cost`] in the request's extensions has
    /// the last word.
    ///
    /// `poll_ready` cannot see the request, so it takes one unit of each quota in line; the rest is charged when the request is sent, and
    /// those who follow wait for it. So a request may cost more than the burst: it is sent, and the limiter is in debt. If it costs less
    /// than a unit, the rest is given back.
    ///
    /// ```
    /// use tower_throttle::{Cost, Limiter, Quota, ThrottleLayer};
    ///
    /// // GitHub: 5000 an hour, and of those that write 80 a minute.
    /// let limiter = Limiter::builder()
    ///     .quota("requests", Quota::per_hour(5_000).burst(100))
    ///     .quota("writes", Quota::per_minute(80).burst(10))
    ///     .build()?;
    /// let layer = ThrottleLayer::new(limiter).cost(|request| {
    ///     let writes = u32::from(request.method() != "GET");
    ///     Cost::new(1).of("writes", writes)
    /// });
    /// # Ok::<(), tower_throttle::ConfigError>(())
    /// ```
    #[must_use]
    pub fn cost(mut self, cost: impl Fn(&dyn RequestHead) -> Cost + Send + Sync + 'static) -> Self {
        self.options.price = Some(Arc::new(cost));
        self
    }

    /// Says what a request really cost, from the head of its response, if that can be told there. The difference to what was taken is
    /// charged or given back.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tower_throttle::{Cost, Limiter, Quota, ThrottleLayer};
    ///
    /// // OpenAI: requests and tokens a minute. Each request is reckoned with 1,000 tokens until it is known better.
    /// let limiter = Limiter::builder()
    ///     .quota("requests", Quota::per_minute(500).burst(10))
    ///     .quota("tokens", Quota::per_minute(90_000).burst(90_000))
    ///     .build()?;
    /// let layer = ThrottleLayer::new(limiter)
    ///     .cost(|_| Cost::new(1).of("tokens", 1_000))
    ///     .settle(|_, headers| {
    ///         let used = headers.get("x-tokens-used")?.to_str().ok()?.parse().ok()?;
    ///         Some(Cost::new(1).of("tokens", used))
    ///     });
    /// # Ok::<(), tower_throttle::ConfigError>(())
    /// ```
    ///
    /// What only the body tells is settled through a [`Receipt`](crate::client::Receipt).
    #[must_use]
    pub fn settle(
        mut self,
        settle: impl Fn(StatusCode, &HeaderMap) -> Option<Cost> + Send + Sync + 'static,
    ) -> Self {
        self.options.settle = Some(Arc::new(settle));
        self
    }

    /// Whether responses carry a [`Receipt`](crate::client::Receipt) in their extensions, to settle the cost later. Off by default.
    #[must_use]
    pub const fn receipts(mut self, receipts: bool) -> Self {
        self.options.receipts = receipts;
        self
    }

    /// The class of all requests through this layer; [`Priority::Normal`] if not said. Two layers over one limiter give a web page and a
    /// nightly job their own.
    #[must_use]
    pub const fn priority(mut self, priority: Priority) -> Self {
        self.options.ask.priority = priority;
        self
    }

    /// As [`LimiterBuilder::max_wait`](crate::LimiterBuilder::max_wait), for this layer; the shorter one counts.
    #[must_use]
    pub const fn max_wait(mut self, wait: Duration) -> Self {
        self.options.ask.patience = Some(wait);
        self
    }

    /// As [`LimiterBuilder::max_queue`](crate::LimiterBuilder::max_queue), for this layer: refuses if so many wait in the whole limiter.
    #[must_use]
    pub const fn max_queue(mut self, callers: usize) -> Self {
        self.options.ask.max_queue = Some(callers);
        self
    }

    /// As [`LimiterBuilder::max_pause`](crate::LimiterBuilder::max_pause), for this layer, for those who come during a pause; the shorter one
    /// counts.
    #[must_use]
    pub const fn max_pause(mut self, pause: Duration) -> Self {
        self.options.ask.max_pause = Some(pause);
        self
    }

    /// Gives the cost of a request back when it is answered 304, for servers that do not count those. Off by default.
    #[must_use]
    pub const fn refund_not_modified(mut self, refund: bool) -> Self {
        self.options.refund_not_modified = refund;
        self
    }

    /// Whether responses carry [`Pacing`](crate::Pacing) in their extensions. On by default; off saves the three allocations that
    /// the extensions of a response take.
    #[must_use]
    pub const fn report_pacing(mut self, report: bool) -> Self {
        self.options.omit_pacing = !report;
        self
    }
}

impl<S> Layer<S> for ThrottleLayer {
    type Service = Throttle<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Throttle::new(inner, self.limiter.clone(), self.options.clone())
    }
}
