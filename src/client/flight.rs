use std::{sync::Arc, time::Duration};

use super::{options::Options, receipt::Receipt};
use crate::{
    ResponseHead, audit,
    engine::{Flight, Grant},
    feedback::{Feedback, Reader},
    limiter::{Cost, Shared, answered_silently, observe, says_nothing, wall},
};
use http::StatusCode;

/// What an answer changed, and how long the request took.
type Applied = (audit::Answered, Duration);

/// A request on its way. Whatever becomes of it, it is closed once: by its answer, its error, or by being dropped.
#[derive(Debug)]
pub(super) struct InFlight {
    shared: Arc<Shared>,
    grant: Grant,
    open: bool,
}

/// How one request was paced; found in the extensions of its response.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Pacing {
    /// The request's number in the limiter's records, in order of arrival.
    pub seq: u64,
    /// How long it stood in line.
    pub waited: Duration,
    /// Tokens left after it.
    pub level: f64,
}

impl InFlight {
    pub(super) const fn new(shared: Arc<Shared>, grant: Grant) -> Self {
        Self {
            shared,
            grant,
            open: true,
        }
    }

    /// Reads and applies what the response says.
    pub(super) fn answered<R: ResponseHead>(&mut self, response: R, options: &Options) -> R {
        self.answered_with(response, options, observe)
    }

    /// The same where `apply` applies it, which may do more than [`observe`].
    pub(super) fn answered_with<R: ResponseHead>(
        &mut self,
        mut response: R,
        options: &Options,
        apply: impl FnOnce(&Shared, Option<u64>, Option<Flight>, &Feedback) -> Applied,
    ) -> R {
        let status = response.status();
        let general = Reader::default();
        let reader = options.reader.as_deref().unwrap_or(&general);
        let mut feedback = reader.read_with(status, response.headers(), &wall);
        if let Some(classify) = &options.classify {
            classify(status, response.headers(), &mut feedback);
        }
        if let Some(flight) = self.close() {
            let refund = options.refund_not_modified && status == StatusCode::NOT_MODIFIED;
            let silent = !refund && !audit::enabled() && says_nothing(&feedback);
            if !(silent && answered_silently(&self.shared, flight)) {
                let applied = apply(&self.shared, Some(self.grant.seq), Some(flight), &feedback);
                self.conclude(status, refund, &applied);
            }
        }
        if let Some(real) =
            (options.settle.as_ref()).and_then(|settle| settle(status, response.headers()))
        {
            self.settle(&real);
        }
        if options.receipts
            && let Some(extensions) = response.extensions_mut()
        {
            extensions.insert(Receipt::new(Arc::clone(&self.shared), &self.grant));
        }
        let extensions = (!options.omit_pacing)
            .then(|| response.extensions_mut())
            .flatten();
        if let Some(extensions) = extensions {
            extensions.insert(Pacing {
                seq: self.grant.seq,
                waited: self.grant.waited,
                level: self.grant.level(),
            });
        }
        response
    }

    fn conclude(&mut self, status: StatusCode, refund: bool, (answered, elapsed): &Applied) {
        let seq = self.grant.seq;
        if refund {
            let grant = &mut self.grant;
            self.shared
                .apply(|state, now| state.engine.refund_of(now, grant));
        }
        audit::answered(&self.shared.name, seq, status.as_u16(), *elapsed, answered);
    }

    fn settle(&mut self, real: &Cost) {
        let (shared, seq) = (&self.shared, self.grant.seq);
        match real.resolve(shared) {
            Ok(real) => {
                let took = self.grant.costs;
                let grant = &mut self.grant;
                shared.apply(|state, now| state.engine.settle_of(now, grant, &real));
                audit::settled(&shared.name, seq, took.first(), real.first());
            }
            // There is nobody to tell but the record.
            Err(error) => audit::unsettled(&shared.name, seq, &error),
        }
    }

    /// The inner service gave an error.
    pub(super) fn failed(&mut self) {
        if let Some(elapsed) = self.unanswered() {
            audit::failed(&self.shared.name, self.grant.seq, elapsed);
        }
    }

    fn unanswered(&mut self) -> Option<Duration> {
        let flight = self.close()?;
        Some(self.shared.apply(|state, now| {
            state.engine.unanswered(now, flight);
            now.since(flight.sent())
        }))
    }

    fn close(&mut self) -> Option<Flight> {
        std::mem::take(&mut self.open).then_some(self.grant.flight)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let Some(elapsed) = self.unanswered() {
            audit::abandoned(&self.shared.name, self.grant.seq, elapsed);
        }
    }
}
