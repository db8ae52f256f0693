use std::{
    array,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Waker},
};

use super::{clock::Clock, recorded::Recorded, snapshot::Counters, unreadable::Unreadable};
use crate::{
    engine::{Departure, Engine, TicketId, Time},
    error::Error,
};

#[cfg(feature = "journal")]
use {
    super::recorded::Tape,
    crate::{
        RequestHead,
        audit::journal::{Body, Journal, Opened, Request},
        engine::Grant,
    },
    std::sync::Arc,
};

/// How many tasks are woken in one go between two holds of the lock.
const BATCH: usize = 32;

/// What all handles of one limiter share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) name: Box<str>,
    /// The names of the quotas, in the order in which the engine has them.
    quotas: Box<[Box<str>]>,
    #[cfg(feature = "journal")]
    tape: Option<Tape>,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) engine: Recorded,
    pub(crate) counters: Counters,
    pub(crate) unreadable: Unreadable,
    /// The task behind each waiting ticket, by its slot.
    wakers: Vec<Option<Waker>>,
}

impl Shared {
    pub(crate) fn new(name: Box<str>, quotas: Box<[Box<str>]>, engine: Engine) -> Self {
        Self {
            clock: Clock::default(),
            name,
            quotas,
            #[cfg(feature = "journal")]
            tape: None,
            state: Mutex::new(State {
                engine: Recorded::new(engine),
                counters: Counters::default(),
                unreadable: Unreadable::default(),
                wakers: Vec::new(),
            }),
        }
    }

    /// Records everything from now on.
    #[cfg(feature = "journal")]
    pub(crate) fn recording(mut self, journal: Journal) -> Self {
        let tape = Tape {
            journal,
            limiter: Arc::from(&*self.name),
            steps: 0,
        };
        let opened = self.touch(|state| {
            state.engine.record(tape.clone());
            Opened {
                quotas: self.quotas.iter().map(ToString::to_string).collect(),
                config: state.engine.config().clone(),
            }
        });
        tape.journal
            .push(&tape.limiter, 0, Body::Opened(Box::new(opened)));
        self.tape = Some(tape);
        self
    }

    /// Whether a new request can be recorded. May block if the journal is to; not to be called under the lock.
    #[cfg(feature = "journal")]
    pub(crate) fn admit(&self) -> Result<(), Error> {
        match &self.tape {
            Some(tape) => tape.journal.admit().map_err(|_| Error::unrecorded()),
            None => Ok(()),
        }
    }

    #[cfg(not(feature = "journal"))]
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "without the feature"
    )]
    pub(crate) const fn admit(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Records what the caller of this number sends.
    #[cfg(feature = "journal")]
    pub(crate) fn note_request(&self, grant: &Grant, request: &impl RequestHead) {
        if let Some(tape) = &self.tape {
            let request = Request {
                seq: grant.seq,
                method: request.method().to_owned(),
                scheme: request.scheme().to_owned(),
                host: request.host().to_owned(),
                port: request.port(),
                path: request.path().to_owned(),
            };
            let at = grant.flight.sent().as_nanos();
            tape.journal
                .push(&tape.limiter, at, Body::Request(Box::new(request)));
        }
    }

    pub(crate) const fn quotas(&self) -> &[Box<str>] {
        &self.quotas
    }

    pub(crate) fn quota_index(&self, name: &str) -> Option<usize> {
        self.quotas.iter().position(|quota| **quota == *name)
    }

    /// As [`new`](Self::new), on a clock that others use too. `base`: how many of the requests the engine counts as sent are not its own.
    pub(crate) fn on_clock(name: Box<str>, engine: Engine, clock: Clock, base: u64) -> Self {
        let shared = Self {
            clock,
            ..Self::new(name, Box::from([Box::from("quota")]), engine)
        };
        shared.touch(|state| state.counters.sent = base);
        shared
    }

    /// Changes the state; afterwards, with the lock released, wakes everybody the change concerns.
    ///
    /// `change` must not call foreign code.
    pub(crate) fn apply<R>(&self, change: impl FnOnce(&mut State, Time) -> R) -> R {
        // Not under the lock, to hold it shortly. Who comes second may bring the earlier time; to the engine that is no time.
        let now = self.clock.now();
        let mut state = self.lock();
        let result = change(&mut state, now);
        while let Some(first) = state.next_woken() {
            let mut batch: [Option<Waker>; BATCH] = array::from_fn(|_| None);
            batch[0] = Some(first);
            let mut full = true;
            for place in &mut batch[1..] {
                *place = state.next_woken();
                if place.is_none() {
                    full = false;
                    break;
                }
            }
            drop(state);
            batch.into_iter().flatten().for_each(Waker::wake);
            if !full {
                return result;
            }
            state = self.lock();
        }
        result
    }

    /// Changes what needs no time and concerns nobody.
    pub(crate) fn touch<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        change(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No foreign code runs under the lock, so a poisoned one holds a sound state all the same.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Remembers the task to wake for a ticket. Returns what was remembered before, to be dropped outside the lock.
    pub(crate) fn remember(&mut self, id: TicketId, cx: &Context<'_>) -> Option<Waker> {
        if self.wakers.len() <= id.slot() {
            self.wakers.resize(self.engine.slots(), None);
        }
        match &mut self.wakers[id.slot()] {
            Some(known) if known.will_wake(cx.waker()) => None,
            place => place.replace(cx.waker().clone()),
        }
    }

    /// Counts what became of a ticket, and forgets the task behind it unless it waits.
    pub(crate) fn settle<T>(&mut self, id: TicketId, departure: &Departure<T>) -> Option<Waker> {
        match departure {
            Departure::Wait(_) => return None,
            Departure::Sent(_) => {}
            Departure::Refused(_) => self.counters.refused += 1,
        }
        self.forget(id)
    }

    /// Forgets the task behind a ticket that is gone. The waker is to be dropped outside the lock.
    pub(crate) fn forget(&mut self, id: TicketId) -> Option<Waker> {
        let waker = self.wakers.get_mut(id.slot()).and_then(Option::take);
        if self.engine.slots() == 0 && !self.wakers.is_empty() {
            // The engine gave its memory back; all places are empty.
            self.wakers = Vec::new();
        }
        waker
    }

    fn next_woken(&mut self) -> Option<Waker> {
        while let Some(id) = self.engine.take_woken() {
            if let Some(waker) = self.wakers.get_mut(id.slot()).and_then(Option::take) {
                return Some(waker);
            }
        }
        None
    }
}
