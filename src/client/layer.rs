use std::{fmt, sync::Arc};

use http::{HeaderMap, StatusCode};
use tower_layer::Layer;

use super::service::Throttle;
use crate::{
    feedback::{Dialect, Feedback, Reader},
    limiter::Limiter,
};

/// Puts a [`Limiter`] in front of a client.
///
/// All services made by this layer, by its clones, and by other layers over clones of the same limiter share one budget.
///
/// Where to put it:
///
/// - *inside* retries and redirects, so that every attempt and every hop pays and is seen. Outside them, an operation pays once,
///   however many requests it makes, and the refusals in between are not noticed.
/// - inside a timeout that should cover waiting in line; outside one that should cover only the request.
#[derive(Debug, Clone)]
pub struct ThrottleLayer {
    limiter: Limiter,
    options: Options,
}

/// What a user may change about reading answers.
#[derive(Clone, Default)]
pub(super) struct Options {
    pub(super) reader: Option<Arc<Reader>>,
    pub(super) classify: Option<Arc<Classify>>,
    pub(super) refund_not_modified: bool,
    pub(super) omit_pacing: bool,
}

type Classify = dyn Fn(StatusCode, &HeaderMap, &mut Feedback) + Send + Sync;

impl ThrottleLayer {
    /// A layer over `limiter`.
    #[must_use]
    pub const fn new(limiter: Limiter) -> Self {
        Self {
            limiter,
            options: Options {
                reader: None,
                classify: None,
                refund_not_modified: false,
                omit_pacing: false,
            },
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
    /// headers do not show, or to forgive one.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tower_throttle::{Limiter, Quota, ThrottleLayer};
    ///
    /// let limiter = Limiter::new(Quota::per_second(10))?;
    /// let layer = ThrottleLayer::new(limiter).classify(|status, headers, feedback| {
    ///     if status.is_success() && headers.contains_key("x-overloaded") {
    ///         feedback.refused = true;
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

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("reader", &self.reader)
            .field("classify", &self.classify.is_some())
            .field("refund_not_modified", &self.refund_not_modified)
            .field("omit_pacing", &self.omit_pacing)
            .finish()
    }
}
