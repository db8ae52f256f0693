use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{
    audit,
    engine::Grant,
    error::Error,
    limiter::{Cost, Shared},
};

/// Lets the real cost of a request be told once it is known, such as the tokens that a response's body says were used.
///
/// Found in the extensions of a response if [`receipts`](crate::ThrottleLayer::receipts) asks for it. Clones are of one request.
///
/// ```
/// use http::Response;
/// use tower_throttle::{Cost, client::Receipt};
///
/// # fn tokens_in(_: &[u8]) -> u32 { 700 }
/// # fn example(response: Response<Vec<u8>>) -> Result<(), tower_throttle::Error> {
/// let receipt = response.extensions().get::<Receipt>().cloned();
/// let used = tokens_in(response.body());
/// if let Some(receipt) = receipt {
///     receipt.settle(Cost::new(1).of("tokens", used))?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Receipt {
    shared: Arc<Shared>,
    seq: u64,
    grant: Arc<Mutex<Grant>>,
}

impl Receipt {
    pub(super) fn new(shared: Arc<Shared>, grant: &Grant) -> Self {
        Self {
            shared,
            seq: grant.seq,
            grant: Arc::new(Mutex::new(*grant)),
        }
    }

    /// The request's number in the limiter's records.
    #[must_use]
    pub const fn seq(&self) -> u64 {
        self.seq
    }

    /// Says what the request really cost: the difference to what was taken is charged, and those who come later wait for it, or given back,
    /// never above the burst. May be said again when more is known.
    ///
    /// # Errors
    ///
    /// If the limiter does not have a quota that is named. Nothing is changed then.
    pub fn settle(&self, real: Cost) -> Result<(), Error> {
        let real = real.resolve(&self.shared)?;
        let took = self.shared.apply(|state, now| {
            // Inside, so that it is free again when those whom this concerns are woken.
            let mut grant = self.grant.lock().unwrap_or_else(PoisonError::into_inner);
            let took = grant.costs;
            state.engine.settle_of(now, &mut grant, &real);
            took
        });
        audit::settled(&self.shared.name, self.seq, took.first(), real.first());
        Ok(())
    }
}

impl fmt::Debug for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receipt")
            .field("limiter", &self.shared.name)
            .field("seq", &self.seq)
            .finish_non_exhaustive()
    }
}
