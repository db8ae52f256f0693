//! Whether an engine that was read from somewhere is in a state that engines come into.
//!
//! What is checked is what the engine's arithmetic and its walks along lists rely on: with a state that passes no call panics, spins or
//! allocates by a number in it. Each type checks what only it can see.

use std::{error::Error, fmt};

use super::{
    costs::Sums,
    gates::{Further, Gate},
    machine::Engine,
    priority::Priority,
    quota::Quota,
    tickets::State,
};

/// No count gets so far in the life of any machine, so that the sum of two fits into 64 bits.
const FAR: u64 = 1 << 62;

/// A state that no engine comes into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsound {
    invariant: &'static str,
}

impl Unsound {
    pub(crate) const fn new(invariant: &'static str) -> Self {
        Self { invariant }
    }

    /// What holds for every engine, and not for this one.
    #[must_use]
    pub const fn invariant(&self) -> &'static str {
        self.invariant
    }
}

impl fmt::Display for Unsound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "no engine comes into this state: it is not so that {}",
            self.invariant
        )
    }
}

impl Error for Unsound {}

pub(super) const fn holds(so: bool, invariant: &'static str) -> Result<(), Unsound> {
    if so {
        Ok(())
    } else {
        Err(Unsound::new(invariant))
    }
}

/// Whether a count is one that can be reached, and can go on.
pub(super) const fn is_near(count: u64) -> bool {
    count <= FAR
}

impl Engine {
    /// Checks that this is a state that engines come into. One that was deserialized must be checked before it is told anything: else it
    /// may panic or never return.
    ///
    /// That it passes does not mean that it is the state a certain engine was in.
    ///
    /// # Errors
    ///
    /// If it is none; the error names what does not hold.
    pub fn validate(&self) -> Result<(), Unsound> {
        holds(
            self.config.validate().is_ok(),
            "its configuration is a valid one",
        )?;
        self.bucket.check(&self.config.quota, self.now)?;
        self.check_further()?;
        self.rate.check(&self.config, self.bucket.full_rate())?;
        self.windows.check()?;
        self.check_callers()?;
        let counts = [self.seq, self.sent, self.in_flight, self.would_wait];
        holds(
            counts.into_iter().all(is_near),
            "its counts can have been reached",
        )
    }

    /// The same gates, in the same order, as a new one has.
    fn check_further(&self) -> Result<(), Unsound> {
        const SAME: &str = "it has one gate for each quota";
        let all = [&self.config.quota].into_iter().chain(&self.config.further);
        let mut expected =
            (all.enumerate()).filter(|(index, quota)| *index > 0 || quota.is_strict());
        for Further { index, gate } in &self.further {
            let quota: &Quota = match expected.next() {
                Some((place, quota)) if place == *index => quota,
                _ => return Err(Unsound::new(SAME)),
            };
            match gate {
                Gate::Bucket(bucket) if !quota.is_strict() => bucket.check(quota, self.now)?,
                Gate::Log(log) if quota.is_strict() => log.check(quota)?,
                _ => return Err(Unsound::new(SAME)),
            }
        }
        holds(expected.next().is_none(), SAME)
    }

    fn check_callers(&self) -> Result<(), Unsound> {
        self.tickets.check_free()?;
        let mut listed = 0;
        for priority in [Priority::Low, Priority::Normal, Priority::High] {
            let class = self.line.class(priority);
            let tickets = self.tickets.members(&class.list)?;
            listed += tickets.len();
            let belong = (tickets.iter())
                .all(|ticket| ticket.state == State::Waiting && ticket.priority == priority);
            holds(belong, "who is in a class's line waits in it")?;
            holds(
                tickets.is_sorted_by(|one, next| one.seq < next.seq),
                "callers wait in the order in which they came",
            )?;
            let cost = (tickets.iter()).fold(Sums::NONE, |sums, ticket| sums.plus(&ticket.costs));
            holds(cost == class.cost, "a class costs what all in it cost")?;
        }
        let mut waiting = (self.tickets.all()).filter(|ticket| ticket.state == State::Waiting);
        holds(
            waiting.all(|ticket| ticket.deadline >= self.soonest),
            "nobody in line has less patience than is remembered",
        )?;
        let held = self.tickets.members(&self.held)?;
        listed += held.len();
        holds(
            held.iter().all(|ticket| ticket.state == State::Held),
            "who is in the list of holders holds something",
        )?;
        let cost: u64 = held
            .iter()
            .map(|ticket| u64::from(ticket.costs.first()))
            .sum();
        holds(cost == self.held_cost, "what is held is what holders cost")?;
        let all = || self.tickets.all();
        let in_lists = all().filter(|ticket| matches!(ticket.state, State::Waiting | State::Held));
        holds(
            in_lists.count() == listed,
            "who waits or holds something is in a list",
        )?;
        holds(
            all().all(|ticket| ticket.seq <= self.seq),
            "callers have numbers that were given out",
        )
    }
}
