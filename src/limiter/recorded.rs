//! An engine whose every step can be recorded.
//!
//! Its methods are those of [`Engine`] that change something; each tells the journal, if there is one, what the engine was told and what
//! it decided. That costs the entry and no I/O, so it happens under the limiter's lock, in the order of the steps.

use std::{ops::Deref, time::Duration};

#[cfg(feature = "journal")]
use std::sync::Arc;

use crate::engine::{
    Answer, Ask, Cancelled, ConfigError, Correction, Costs, Decision, Departed, Departure, Engine,
    Flight, Grant, Pause, Poll, Quota, Refusal, Step, TicketId, Time, Told, View,
};

#[cfg(feature = "journal")]
use crate::{
    audit::journal::{Body, Journal},
    engine::Record,
};

#[derive(Debug)]
pub(crate) struct Recorded {
    engine: Engine,
    #[cfg(feature = "journal")]
    tape: Option<Tape>,
}

/// Where steps are recorded, and under which name.
#[cfg(feature = "journal")]
#[derive(Debug, Clone)]
pub(crate) struct Tape {
    pub(crate) journal: Journal,
    pub(crate) limiter: Arc<str>,
    /// Steps since the last checkpoint.
    pub(crate) steps: u32,
}

/// A checkpoint follows so many steps, so that a journal can be replayed without its oldest files.
#[cfg(feature = "journal")]
const CHECKPOINT: u32 = 10_000;

/// There is none while more callers than this wait: it would take long, under the lock.
#[cfg(feature = "journal")]
const SHORT: usize = 1_000;

impl Recorded {
    pub(crate) const fn new(engine: Engine) -> Self {
        Self {
            engine,
            #[cfg(feature = "journal")]
            tape: None,
        }
    }

    #[cfg(feature = "journal")]
    pub(crate) fn record(&mut self, tape: Tape) {
        self.tape = Some(tape);
    }

    #[cfg(feature = "journal")]
    fn note(&mut self, step: impl FnOnce() -> Step, decision: impl FnOnce(&Engine) -> Decision) {
        if let Some(tape) = &mut self.tape {
            let record = Record {
                step: step(),
                decision: decision(&self.engine),
                after: self.engine.after(),
            };
            let at = self.engine.now().as_nanos();
            tape.journal
                .push(&tape.limiter, at, Body::Step(Box::new(record)));
            tape.steps += 1;
            if tape.steps >= CHECKPOINT && self.engine.slots() <= SHORT {
                tape.steps = 0;
                let checkpoint = Box::new(self.engine.checkpoint());
                tape.journal
                    .push(&tape.limiter, at, Body::Checkpoint(checkpoint));
            }
        }
    }

    #[cfg(not(feature = "journal"))]
    #[expect(
        clippy::unused_self,
        reason = "nothing is recorded without the feature"
    )]
    fn note(&mut self, _: impl FnOnce() -> Step, _: impl FnOnce(&Engine) -> Decision) {}

    pub(crate) fn join_as(&mut self, now: Time, ask: &Ask) -> Result<TicketId, (u64, Refusal)> {
        let joined = self.engine.join_as(now, ask);
        self.note(
            || Step::Join(*ask),
            |engine| Decision::joined(&joined, engine),
        );
        joined
    }

    pub(crate) fn try_send_as(&mut self, now: Time, ask: &Ask) -> Result<Grant, (u64, Refusal)> {
        let sent = self.engine.try_send_as(now, ask);
        self.note(|| Step::TrySend(*ask), |_| Decision::tried(&sent));
        sent
    }

    pub(crate) fn try_send(&mut self, now: Time, cost: u32) -> Result<Grant, (u64, Refusal)> {
        self.try_send_as(now, &Ask::from(Costs::each(cost)))
    }

    pub(crate) fn poll(&mut self, now: Time, id: TicketId) -> Poll {
        let poll = self.engine.poll(now, id);
        self.note(|| Step::Poll(id), |_| Decision::polled(&poll));
        poll
    }

    pub(crate) fn send(&mut self, now: Time, id: TicketId, tracked: bool) -> Departure {
        let departure = self.engine.send(now, id, tracked);
        self.note(
            || Step::Send(id, tracked),
            |_| Decision::departed(&departure),
        );
        departure
    }

    pub(crate) fn reprice(&mut self, now: Time, grant: &mut Grant, real: &Costs) {
        let departed = Departed::of(grant);
        self.engine.reprice(now, grant, real);
        self.note(|| Step::Reprice(departed, *real), |_| Decision::Done);
    }

    pub(crate) fn settle_of(&mut self, now: Time, grant: &mut Grant, real: &Costs) {
        let departed = Departed::of(grant);
        self.engine.settle_of(now, grant, real);
        self.note(|| Step::Settle(departed, *real), |_| Decision::Done);
    }

    pub(crate) fn refund_of(&mut self, now: Time, grant: &mut Grant) {
        self.settle_of(now, grant, &Costs::NONE);
    }

    pub(crate) fn cancel(&mut self, now: Time, id: TicketId) -> Option<Cancelled> {
        let cancelled = self.engine.cancel(now, id);
        self.note(
            || Step::Cancel(id),
            |_| Decision::cancelled(cancelled.as_ref()),
        );
        cancelled
    }

    pub(crate) fn hurry(
        &mut self,
        now: Time,
        id: TicketId,
        deadline: Time,
    ) -> Option<(u64, Refusal)> {
        let refused = self.engine.hurry(now, id, deadline);
        self.note(
            || Step::Hurry(id, deadline),
            |_| Decision::hurried(refused.as_ref()),
        );
        refused
    }

    pub(crate) fn answer(&mut self, now: Time, flight: Flight, answer: &Answer<'_>) -> Correction {
        let correction = self.engine.answer(now, flight, answer);
        self.note(
            || Step::Answer(flight, Told::from(answer)),
            |_| Decision::corrected(&correction),
        );
        correction
    }

    pub(crate) fn answer_silent(&mut self, flight: Flight) -> Option<()> {
        let silent = self.engine.answer_silent(flight);
        self.note(
            || Step::AnswerSilent(flight),
            |_| Decision::Accepted(silent.is_some()),
        );
        silent
    }

    pub(crate) fn unanswered(&mut self, now: Time, flight: Flight) {
        self.engine.unanswered(now, flight);
        self.note(|| Step::Unanswered(flight), |_| Decision::Done);
    }

    pub(crate) fn reconcile(&mut self, now: Time, answer: &Answer<'_>) -> Correction {
        let correction = self.engine.reconcile(now, answer);
        self.note(
            || Step::Reconcile(Told::from(answer)),
            |_| Decision::corrected(&correction),
        );
        correction
    }

    pub(crate) fn penalize(&mut self, now: Time, wait: Duration) -> Option<Pause> {
        let paused = self.engine.penalize(now, wait);
        self.note(|| Step::Penalize(wait), |_| Decision::Paused(paused));
        paused
    }

    pub(crate) fn set_quota(
        &mut self,
        now: Time,
        index: usize,
        quota: Quota,
    ) -> Result<(), ConfigError> {
        let set = self.engine.set_quota(now, index, quota);
        self.note(
            || Step::SetQuota(index, quota),
            |_| Decision::Accepted(set.is_ok()),
        );
        set
    }

    pub(crate) fn set_patience(
        &mut self,
        now: Time,
        max_wait: Option<Duration>,
        max_queue: Option<usize>,
        max_pause: Duration,
    ) {
        self.engine
            .set_patience(now, max_wait, max_queue, max_pause);
        self.note(
            || Step::SetPatience(max_wait, max_queue, max_pause),
            |_| Decision::Done,
        );
    }

    pub(crate) fn halt(&mut self, now: Time) {
        self.engine.halt(now);
        self.note(|| Step::Halt, |_| Decision::Done);
    }

    pub(crate) fn resume(&mut self, now: Time) {
        self.engine.resume(now);
        self.note(|| Step::Resume, |_| Decision::Done);
    }

    pub(crate) fn set_observe(&mut self, now: Time, observe: bool) {
        self.engine.set_observe(now, observe);
        self.note(|| Step::SetObserve(observe), |_| Decision::Done);
    }

    pub(crate) fn close(&mut self, now: Time) {
        self.engine.close(now);
        self.note(|| Step::Close, |_| Decision::Done);
    }

    pub(crate) fn view(&mut self, now: Time) -> View {
        let view = self.engine.view(now);
        self.note(|| Step::Advance, |_| Decision::Done);
        view
    }

    pub(crate) fn could_send(&mut self, now: Time, cost: u32) -> bool {
        let could = self.engine.could_send(now, cost);
        self.note(|| Step::Advance, |_| Decision::Done);
        could
    }

    /// The engine of a key, which is not recorded.
    pub(crate) const fn of_key(&mut self) -> &mut Engine {
        &mut self.engine
    }

    pub(crate) fn take_woken(&mut self) -> Option<TicketId> {
        self.engine.take_woken()
    }
}

/// What changes nothing is not recorded.
impl Deref for Recorded {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}
