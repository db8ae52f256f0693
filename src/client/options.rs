use std::{fmt, sync::Arc};

use http::{HeaderMap, StatusCode};

use crate::{
    RequestHead,
    engine::{Ask, Costs},
    error::Error,
    feedback::{Feedback, Reader},
    limiter::{Cost, Deadline, Shared},
};

/// What a user may change about a layer.
#[derive(Clone, Default)]
pub(super) struct Options {
    pub(super) reader: Option<Arc<Reader>>,
    pub(super) classify: Option<Arc<Classify>>,
    pub(super) price: Option<Arc<Price>>,
    pub(super) settle: Option<Arc<Settle>>,
    pub(super) refund_not_modified: bool,
    pub(super) omit_pacing: bool,
    pub(super) receipts: bool,
    /// How callers wait; what they take is [`UNIT`].
    pub(super) ask: Ask,
}

pub(super) type Classify = dyn Fn(StatusCode, &HeaderMap, &mut Feedback) + Send + Sync;
pub(super) type Price = dyn Fn(&dyn RequestHead) -> Cost + Send + Sync;
pub(super) type Settle = dyn Fn(StatusCode, &HeaderMap) -> Option<Cost> + Send + Sync;

/// What `poll_ready` takes, before the request is known.
pub(super) const UNIT: Costs = Costs::each(1);

impl Options {
    pub(super) const NONE: Self = Self {
        reader: None,
        classify: None,
        price: None,
        settle: None,
        refund_not_modified: false,
        omit_pacing: false,
        receipts: false,
        ask: Ask {
            costs: UNIT,
            patience: None,
            max_queue: None,
            max_pause: None,
            priority: crate::engine::Priority::Normal,
        },
    };

    /// What a request really costs, if that is not the unit that was taken.
    pub(super) fn price(
        &self,
        shared: &Shared,
        request: &impl RequestHead,
    ) -> Result<Option<Costs>, Error> {
        let stated = request
            .extensions()
            .and_then(|extensions| extensions.get::<Cost>());
        let cost = match (stated, &self.price) {
            (Some(cost), _) => cost.clone(),
            (None, Some(price)) => price(request),
            (None, None) => return Ok(None),
        };
        let costs = cost.resolve(shared)?;
        Ok(Some(costs).filter(|&costs| costs != UNIT))
    }
}

/// When a request has to be sent at the latest, if it says so.
pub(super) fn deadline(request: &impl RequestHead) -> Option<Deadline> {
    request.extensions()?.get::<Deadline>().copied()
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("reader", &self.reader)
            .field("classify", &self.classify.is_some())
            .field("price", &self.price.is_some())
            .field("settle", &self.settle.is_some())
            .field("refund_not_modified", &self.refund_not_modified)
            .field("omit_pacing", &self.omit_pacing)
            .field("receipts", &self.receipts)
            .field("ask", &self.ask)
            .finish()
    }
}
