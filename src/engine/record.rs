//! What an engine was told and what it decided, in values that can be kept: told the same, another engine must decide the same.

use std::time::Duration;

use super::{
    answer::{Answer, Correction, Flight, Pause, RateCause, Reading},
    costs::Costs,
    line::Ask,
    machine::Engine,
    outcome::{Cancelled, Departure, Grant, Poll, Refusal, WaitReason},
    quota::Quota,
    tickets::TicketId,
    time::Time,
};

/// One call of an engine, and what it decided.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
pub struct Record {
    /// What it was told.
    pub step: Step,
    /// What it decided.
    pub decision: Decision,
    /// How it looked then.
    pub after: After,
}

/// What an engine can be told; see its methods of the same names.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "journal",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Step {
    /// Time passed; somebody looked.
    Advance,
    /// A caller joins the line.
    Join(Ask),
    /// A caller sends at once or not at all.
    TrySend(Ask),
    /// A caller asks how it stands.
    Poll(TicketId),
    /// A caller wants to send. `true`: its answer will be told.
    Send(TicketId, bool),
    /// A caller leaves.
    Cancel(TicketId),
    /// A caller's patience is bounded anew.
    Hurry(TicketId, Time),
    /// An answer came.
    Answer(Flight, Told),
    /// An answer came that says nothing.
    AnswerSilent(Flight),
    /// A request ended without an answer.
    Unanswered(Flight),
    /// The server said something outside any request.
    Reconcile(Told),
    /// The application asked for a pause.
    Penalize(Duration),
    /// What a request costs is known as it leaves.
    Reprice(Departed, Costs),
    /// What a request really cost is known.
    Settle(Departed, Costs),
    /// A quota is changed.
    SetQuota(usize, Quota),
    /// Patience is changed: longest wait, most callers, longest pause.
    SetPatience(Option<Duration>, Option<usize>, Duration),
    /// Everything is held back.
    Halt,
    /// No longer.
    Resume,
    /// A trial run begins or ends.
    SetObserve(bool),
    /// The limiter is closed.
    Close,
}

/// What an engine can decide.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(
    feature = "journal",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "snake_case")
)]
#[non_exhaustive]
pub enum Decision {
    /// Nothing that is told to anybody.
    Done,
    /// The caller has this place, and is or is not granted already.
    Placed(TicketId, bool),
    /// The caller may send.
    Granted,
    /// It is to ask again then.
    Wait(Time),
    /// It is refused; its number, if it is known.
    Refused(Option<u64>, Refusal),
    /// A request leaves.
    Sent(Leave),
    /// The caller left before its turn.
    Cancelled {
        /// Its number.
        seq: u64,
        /// How long it had waited.
        waited: Duration,
        /// It had been granted.
        held: bool,
    },
    /// There was no such caller.
    Unknown,
    /// What an answer changed.
    Corrected {
        /// It was no news.
        stale: bool,
        /// A pause began or became longer.
        paused: Option<Pause>,
        /// What changed the rate.
        because: Option<RateCause>,
    },
    /// A pause that began or became longer, if so.
    Paused(Option<Pause>),
    /// Whether it was accepted.
    Accepted(bool),
}

/// How an engine looks after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
pub struct After {
    /// The level of the first quota, in its smallest parts.
    #[cfg_attr(feature = "journal", serde(with = "text"))]
    pub level: i128,
    /// Its rate, in those each nanosecond.
    pub rate: u64,
    /// Callers in line.
    pub queue: usize,
    /// Requests sent so far.
    pub sent: u64,
    /// Cost under way.
    pub in_flight: u64,
    /// The end of the pause under way.
    pub paused_until: Option<Time>,
}

/// A request that leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
pub struct Leave {
    /// The caller's number.
    pub seq: u64,
    /// The request's.
    pub flight: Flight,
    /// What it took.
    pub costs: Costs,
    /// How long it waited, and for what.
    pub waited: Duration,
    /// See [`waited`](Self::waited).
    pub reason: WaitReason,
    /// How long it would have waited, in a trial run.
    pub would_wait: Duration,
}

/// A request that has left, as far as its cost is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
pub struct Departed {
    /// The request.
    pub flight: Flight,
    /// What it took.
    pub costs: Costs,
    /// How long it would have waited, in a trial run.
    pub would_wait: Duration,
}

/// An [`Answer`] that can be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
pub struct Told {
    /// See [`Answer::refused`].
    pub refused: bool,
    /// See [`Answer::wait`].
    pub wait: Option<Duration>,
    /// See [`Answer::least_backoff`].
    pub least_backoff: Duration,
    /// See [`Answer::shared`].
    pub shared: bool,
    /// See [`Answer::readings`].
    pub readings: Vec<ToldReading>,
}

/// A [`Reading`] that can be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "journal", derive(serde::Serialize, serde::Deserialize))]
#[expect(missing_docs, reason = "as in `Reading`")]
pub struct ToldReading {
    pub name: Option<Box<str>>,
    pub partition: Option<Box<[u8]>>,
    pub limit: Option<u64>,
    pub remaining: Option<u64>,
    pub reset: Option<Duration>,
    pub window: Option<Duration>,
    pub paces: bool,
}

impl Step {
    /// Tells it to an engine, and returns what that decided.
    pub fn run(&self, now: Time, engine: &mut Engine) -> Decision {
        match self {
            Self::Advance => {
                engine.advance(now);
                Decision::Done
            }
            Self::Join(ask) => {
                let joined = engine.join_as(now, ask);
                Decision::joined(&joined, engine)
            }
            Self::TrySend(ask) => Decision::tried(&engine.try_send_as(now, ask)),
            Self::Poll(id) => Decision::polled(&engine.poll(now, *id)),
            Self::Send(id, tracked) => Decision::departed(&engine.send(now, *id, *tracked)),
            Self::Cancel(id) => Decision::cancelled(engine.cancel(now, *id).as_ref()),
            Self::Hurry(id, deadline) => {
                Decision::hurried(engine.hurry(now, *id, *deadline).as_ref())
            }
            Self::Answer(flight, told) => {
                told.with(|answer| Decision::corrected(&engine.answer(now, *flight, answer)))
            }
            Self::AnswerSilent(flight) => {
                Decision::Accepted(engine.answer_silent(*flight).is_some())
            }
            Self::Unanswered(flight) => {
                engine.unanswered(now, *flight);
                Decision::Done
            }
            Self::Reconcile(told) => {
                told.with(|answer| Decision::corrected(&engine.reconcile(now, answer)))
            }
            Self::Penalize(wait) => Decision::Paused(engine.penalize(now, *wait)),
            Self::Reprice(departed, real) => {
                engine.reprice(now, &mut departed.grant(), real);
                Decision::Done
            }
            Self::Settle(departed, real) => {
                engine.settle_of(now, &mut departed.grant(), real);
                Decision::Done
            }
            Self::SetQuota(index, quota) => {
                Decision::Accepted(engine.set_quota(now, *index, *quota).is_ok())
            }
            Self::SetPatience(wait, queue, pause) => {
                engine.set_patience(now, *wait, *queue, *pause);
                Decision::Done
            }
            Self::Halt => {
                engine.halt(now);
                Decision::Done
            }
            Self::Resume => {
                engine.resume(now);
                Decision::Done
            }
            Self::SetObserve(observe) => {
                engine.set_observe(now, *observe);
                Decision::Done
            }
            Self::Close => {
                engine.close(now);
                Decision::Done
            }
        }
    }
}

impl Record {
    /// Tells the step to another engine, which must decide the same.
    ///
    /// # Errors
    ///
    /// What that one decided, and how it looks, if that is something else.
    pub fn replay(&self, now: Time, engine: &mut Engine) -> Result<(), Box<(Decision, After)>> {
        let decision = self.step.run(now, engine);
        let after = engine.after();
        // Nobody is told here whom to wake.
        while engine.take_woken().is_some() {}
        if decision == self.decision && after == self.after {
            Ok(())
        } else {
            Err(Box::new((decision, after)))
        }
    }
}

impl Engine {
    /// How it looks, as of the last step.
    #[must_use]
    pub fn after(&self) -> After {
        After {
            level: self.bucket.level(),
            rate: self.rate_now(),
            queue: self.line.len(),
            sent: self.sent,
            in_flight: self.in_flight,
            paused_until: self.pause().map(|pause| pause.until),
        }
    }

    /// A copy to go on from later, without whom to wake.
    #[cfg(feature = "journal")]
    pub(crate) fn checkpoint(&self) -> Self {
        Self {
            woken: std::collections::VecDeque::new(),
            ..self.clone()
        }
    }

    /// The last time it was told.
    #[must_use]
    pub const fn now(&self) -> Time {
        self.now
    }
}

impl Decision {
    pub(crate) fn joined(joined: &Result<TicketId, (u64, Refusal)>, engine: &Engine) -> Self {
        match joined {
            Ok(id) => Self::Placed(*id, engine.is_granted(*id)),
            Err((seq, refusal)) => Self::Refused(Some(*seq), *refusal),
        }
    }

    pub(crate) fn tried(sent: &Result<Grant, (u64, Refusal)>) -> Self {
        match sent {
            Ok(grant) => Self::Sent(Leave::of(grant)),
            Err((seq, refusal)) => Self::Refused(Some(*seq), *refusal),
        }
    }

    pub(crate) fn polled(poll: &Poll) -> Self {
        match poll {
            Poll::Granted => Self::Granted,
            Poll::Wait(until) => Self::Wait(*until),
            Poll::Refused(refusal) => Self::Refused(None, *refusal),
        }
    }

    pub(crate) fn departed(departure: &Departure) -> Self {
        match departure {
            Departure::Sent(grant) => Self::Sent(Leave::of(grant)),
            Departure::Wait(until) => Self::Wait(*until),
            Departure::Refused(refusal) => Self::Refused(None, *refusal),
        }
    }

    pub(crate) fn cancelled(cancelled: Option<&Cancelled>) -> Self {
        cancelled.map_or(Self::Unknown, |cancelled| Self::Cancelled {
            seq: cancelled.seq,
            waited: cancelled.waited,
            held: cancelled.held,
        })
    }

    pub(crate) fn hurried(refused: Option<&(u64, Refusal)>) -> Self {
        refused.map_or(Self::Done, |(seq, refusal)| {
            Self::Refused(Some(*seq), *refusal)
        })
    }

    pub(crate) const fn corrected(correction: &Correction) -> Self {
        Self::Corrected {
            stale: correction.stale,
            paused: correction.paused,
            because: correction.because,
        }
    }
}

impl Leave {
    const fn of(grant: &Grant) -> Self {
        Self {
            seq: grant.seq,
            flight: grant.flight,
            costs: grant.costs,
            waited: grant.waited,
            reason: grant.reason,
            would_wait: grant.would_wait,
        }
    }
}

impl Departed {
    pub(crate) const fn of(grant: &Grant) -> Self {
        Self {
            flight: grant.flight,
            costs: grant.costs,
            would_wait: grant.would_wait,
        }
    }

    /// What is not about its cost is made up.
    const fn grant(&self) -> Grant {
        Grant {
            seq: 0,
            flight: self.flight,
            cost: self.costs.first(),
            costs: self.costs,
            waited: Duration::ZERO,
            would_wait: self.would_wait,
            reason: WaitReason::None,
            level: 0,
            token: 1,
            rate: 0,
        }
    }
}

impl Told {
    fn with<R>(&self, run: impl FnOnce(&Answer<'_>) -> R) -> R {
        let readings: Vec<Reading<'_>> = (self.readings.iter())
            .map(|reading| Reading {
                name: reading.name.as_deref(),
                partition: reading.partition.as_deref(),
                limit: reading.limit,
                remaining: reading.remaining,
                reset: reading.reset,
                window: reading.window,
                paces: reading.paces,
            })
            .collect();
        run(&Answer {
            refused: self.refused,
            wait: self.wait,
            least_backoff: self.least_backoff,
            shared: self.shared,
            readings: &readings,
        })
    }
}

impl From<&Answer<'_>> for Told {
    fn from(answer: &Answer<'_>) -> Self {
        let keep = |reading: &Reading<'_>| ToldReading {
            name: reading.name.map(Box::from),
            partition: reading.partition.map(Box::from),
            limit: reading.limit,
            remaining: reading.remaining,
            reset: reading.reset,
            window: reading.window,
            paces: reading.paces,
        };
        Self {
            refused: answer.refused,
            wait: answer.wait,
            least_backoff: answer.least_backoff,
            shared: answer.shared,
            readings: answer.readings.iter().map(keep).collect(),
        }
    }
}

/// Numbers that do not fit into 64 bits, as text.
#[cfg(feature = "journal")]
pub(super) mod text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(in crate::engine) fn serialize<S: Serializer>(
        value: &i128,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(in crate::engine) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<i128, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(D::Error::custom)
    }
}
