//! The engine's laws while a reader tells it what servers say.

use std::{
    iter,
    time::{Duration, SystemTime},
};

use tower_throttle::{
    Adapt, Learned, Quota, Spend,
    engine::{
        Answer, Backoff, Cause, Config, Costs, Departure, Engine, Flight, Grant, Poll, Reading,
        Refusal, TicketId, Time, View,
    },
    feedback::{Feedback, Unit},
};

use super::{
    block::{Block, NOW, clock, dialect, status},
    bytes::Bytes,
};

/// Timers may be this late, so this much more may leave.
const SLACK: u64 = 10_000_000;

/// The engine's clock saturates; what is as far away as this is never reached.
const FAR: u64 = 1 << 62;

const MAX_OPS: usize = 250;

/// What the engine is built from; values out of range are put right.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) quota: Quota,
    pub(crate) spend: Spend,
    pub(crate) adapt: Adapt,
    pub(crate) max_wait: Option<u64>,
    pub(crate) max_queue: Option<usize>,
    pub(crate) max_pause: u64,
    pub(crate) backoff: Option<(u64, u64)>,
    /// Callers that are told to ask again do so at once; otherwise their tasks are parked.
    pub(crate) prompt: bool,
}

/// Tickets and flights are named by any number; times are nanoseconds.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    Join {
        cost: u32,
        patience: Option<u64>,
    },
    Poll(usize),
    Send {
        ticket: usize,
        tracked: bool,
    },
    Cancel(usize),
    Advance(u64),
    /// The clock is read late, or stepped back: an older time is handed in.
    Back(u64),
    Try(u32),
    Answer {
        flight: usize,
        head: Head,
    },
    /// What a server said without a request of ours.
    Reconcile(Head),
    Lost(usize),
    Pause(u64),
    Refund,
    /// So many callers come, and each leaves when it may and is answered without a word about limits.
    Work(u8),
    Close,
}

/// A response head and by what clock it is read.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    pub(crate) block: Box<Block>,
    /// The wall clock goes with the engine's, whatever the block says.
    pub(crate) in_step: bool,
}

pub(crate) fn parse(mut bytes: Bytes<'_>) -> (Setup, Vec<Op>) {
    let setup = setup(&mut bytes);
    let mut ops = Vec::new();
    while !bytes.is_empty() && ops.len() < MAX_OPS {
        ops.push(op(&mut bytes));
    }
    (setup, ops)
}

fn setup(bytes: &mut Bytes<'_>) -> Setup {
    let flags = bytes.byte();
    let quota = if flags & 1 == 0 {
        let (amount, burst) = (bytes.byte() % 50, bytes.byte() % 8);
        let period = Duration::from_millis(bytes.number(2) % 5_000 + 1);
        Quota::new(u32::from(amount) + 1, period).burst(u32::from(burst) + 1)
    } else {
        let (amount, burst) = (bytes.wild() as u32, bytes.wild() as u32);
        let period = Duration::from_nanos((bytes.wild() >> 2).max(1));
        Quota::new(amount.max(1), period).burst(burst.max(1))
    };
    let millis = |bytes: &mut Bytes<'_>| bytes.number(2) * 1_000_000;
    Setup {
        quota,
        spend: [Spend::Evenly, Spend::Freely][usize::from(flags >> 1 & 1)],
        adapt: [Adapt::On, Adapt::Off][usize::from(flags >> 2 & 1)],
        max_wait: (flags & 8 != 0).then(|| millis(bytes)),
        max_queue: (flags & 16 != 0).then(|| usize::from(bytes.byte() % 16)),
        max_pause: if flags & 32 == 0 {
            3_600_000_000_000
        } else {
            bytes.wild()
        },
        backoff: (flags & 64 != 0).then(|| (millis(bytes), millis(bytes))),
        prompt: flags & 128 != 0,
    }
}

fn op(bytes: &mut Bytes<'_>) -> Op {
    let index = |bytes: &mut Bytes<'_>| usize::from(bytes.byte());
    match bytes.byte() {
        0..40 => Op::Join {
            cost: u32::from(bytes.byte() % 10),
            patience: bytes.maybe(|bytes| bytes.number(2) * 1_000_000),
        },
        40..60 => Op::Poll(index(bytes)),
        60..100 => Op::Send {
            ticket: index(bytes),
            tracked: bytes.byte() % 4 != 3,
        },
        100..110 => Op::Cancel(index(bytes)),
        110..130 => Op::Advance(bytes.number(2) * 100_000),
        130..140 => Op::Advance(bytes.wild()),
        140..145 => Op::Back(bytes.wild()),
        145..155 => Op::Try(u32::from(bytes.byte() % 10)),
        155..215 => Op::Answer {
            flight: index(bytes),
            head: head(bytes),
        },
        215..222 => Op::Reconcile(head(bytes)),
        222..235 => Op::Lost(index(bytes)),
        235..240 => Op::Pause(bytes.wild()),
        240..245 => Op::Refund,
        245..250 => Op::Work(bytes.byte() % 80),
        250..252 => Op::Close,
        252.. => Op::Join {
            cost: bytes.wild() as u32,
            patience: bytes.maybe(Bytes::wild),
        },
    }
}

/// Status, dialect and clock, then lines up to a zero.
fn head(bytes: &mut Bytes<'_>) -> Head {
    let (status, dialect, in_step) = (status(bytes.byte()), dialect(bytes.byte()), bytes.byte());
    let mut block = Block {
        status,
        dialect,
        now: clock(bytes),
        headers: http::HeaderMap::new(),
    };
    block.lines(bytes.until(0));
    Head {
        block: Box::new(block),
        in_step: in_step & 1 == 0,
    }
}

/// A caller between its arrival and its end.
#[derive(Debug, Clone, Copy)]
struct Caller {
    ticket: TicketId,
    cost: u32,
    /// When its patience ends.
    deadline: u64,
    /// When it asks again, as it was told.
    armed: u64,
    /// Its number in order of arrival.
    number: u64,
    /// It stands in line and has been granted nothing so far.
    waits: bool,
    /// It has been granted something, and has not been told otherwise.
    holds: bool,
}

/// A request that left.
#[derive(Debug, Clone, Copy)]
struct Left {
    at: u64,
    cost: u32,
    /// The most that left above the rate in any time that ends here, in units of one over the period.
    excess: i128,
}

#[derive(Clone)]
struct Trace {
    engine: Engine,
    now: u64,
    callers: Vec<Caller>,
    arrived: u64,
    /// Requests on their way, with their costs.
    flights: Vec<(Flight, u32)>,
    left: Vec<Left>,
    sent: u64,
    /// Nothing may leave before this.
    paused_until: u64,
    /// No answer has spoken of a budget with a reset so far.
    no_windows: bool,
    closed: bool,
}

/// Panics where the engine breaks a law.
pub(crate) fn check(setup: &Setup, ops: &[Op]) {
    let mut config = Config::new(setup.quota);
    config.spend = setup.spend;
    config.adapt = setup.adapt;
    config.max_wait = setup.max_wait.map(Duration::from_nanos);
    config.max_queue = setup.max_queue;
    config.max_pause = Duration::from_nanos(setup.max_pause);
    if let Some((base, cap)) = setup.backoff {
        let nanos = |nanos: u64| Duration::from_nanos(nanos.max(1));
        config.backoff = Backoff {
            base: Some(nanos(base)),
            cap: nanos(base.max(cap)),
        };
    }
    let mut trace = Trace {
        engine: Engine::new(config, Time::ZERO).expect("the values were put right"),
        now: 0,
        callers: Vec::new(),
        arrived: 0,
        flights: Vec::new(),
        left: Vec::new(),
        sent: 0,
        paused_until: 0,
        no_windows: true,
        closed: false,
    };
    for op in ops {
        trace.step(op);
        trace.wake(setup.prompt);
        trace.check_state();
    }
    trace.clone().all_give_up();
    trace.all_ask();
}

impl Trace {
    fn time(&self) -> Time {
        Time::from_nanos(self.now)
    }

    /// What the engine would show now, without touching it.
    fn look(&self) -> View {
        self.engine.clone().view(self.time())
    }

    fn pick(&self, index: usize) -> Option<usize> {
        index.checked_rem(self.callers.len())
    }

    fn step(&mut self, op: &Op) {
        let now = self.time();
        match *op {
            Op::Join { cost, patience } => self.join(cost, patience),
            Op::Poll(index) => {
                if let Some(index) = self.pick(index) {
                    self.poll(index);
                }
            }
            Op::Send { ticket, tracked } => {
                if let Some(index) = self.pick(ticket) {
                    self.send(index, tracked);
                }
            }
            Op::Cancel(index) => {
                if let Some(index) = self.pick(index) {
                    let ticket = self.callers.swap_remove(index).ticket;
                    self.engine.cancel(now, ticket);
                    assert_eq!(self.engine.cancel(now, ticket), None, "cancelled twice");
                }
            }
            Op::Advance(by) => self.now = self.now.saturating_add(by).min(FAR),
            Op::Back(by) => {
                let before = self.engine.view(now);
                let earlier = Time::from_nanos(self.now.saturating_sub(by));
                let after = self.engine.view(earlier);
                assert_eq!(before, after, "going back changed something");
            }
            Op::Try(cost) => {
                let line = self.look().queue_len;
                if let Ok(grant) = self.engine.try_send(now, cost) {
                    assert_eq!(line, 0, "passed the line");
                    self.departed(&grant, cost);
                }
            }
            Op::Answer { flight, ref head } => {
                if let Some(index) = flight.checked_rem(self.flights.len()) {
                    let (flight, _) = self.flights.swap_remove(index);
                    self.answer(Some(flight), head);
                }
            }
            Op::Reconcile(ref head) => self.answer(None, head),
            Op::Lost(index) => {
                if let Some(index) = index.checked_rem(self.flights.len()) {
                    let (flight, _) = self.flights.swap_remove(index);
                    self.engine.unanswered(now, flight);
                    self.see_pause();
                }
            }
            Op::Pause(wait) => {
                self.engine.penalize(now, Duration::from_nanos(wait));
                self.pause_for(Duration::from_nanos(wait));
            }
            // The server did not count the last one: nor do we.
            Op::Refund => {
                if let Some(left) = self.left.pop() {
                    self.engine.refund(now, &Costs::each(left.cost));
                }
            }
            Op::Work(callers) => self.work(callers),
            Op::Close => {
                self.engine.close(now);
                self.closed = true;
            }
        }
    }

    /// Those whom the engine names ask again, now or later.
    fn wake(&mut self, prompt: bool) {
        self.see_pause();
        while let Some(ticket) = self.engine.take_woken() {
            let mut callers = self.callers.iter();
            let Some(index) = callers.position(|caller| caller.ticket == ticket) else {
                continue;
            };
            self.callers[index].armed = self.now;
            if prompt {
                self.poll(index);
            }
        }
    }

    fn pause_for(&mut self, wait: Duration) {
        let until = self.time().after(wait).as_nanos();
        if until > self.now {
            self.paused_until = self.paused_until.max(until);
        }
    }

    /// The pause under way is longer than is tolerated.
    fn is_paused_for_long(&self) -> bool {
        let left = Duration::from_nanos(self.paused_until.saturating_sub(self.now));
        left > self.engine.config().max_pause
    }

    fn join(&mut self, cost: u32, patience: Option<u64>) {
        let now = self.time();
        let before = self.look();
        let joined = self
            .engine
            .join(now, cost, patience.map(Duration::from_nanos));
        let config = self.engine.config();
        let ticket = match joined {
            Ok(ticket) => ticket,
            Err((_, refusal)) => {
                match refusal {
                    Refusal::Closed => assert!(self.closed),
                    Refusal::TooExpensive { cost, burst } => assert!(cost > burst),
                    Refusal::Paused(left) => {
                        assert!(left > config.max_pause && self.is_paused_for_long());
                    }
                    Refusal::QueueFull(_) => {
                        assert!(
                            config
                                .max_queue
                                .is_some_and(|most| before.queue_len >= most)
                        );
                    }
                    Refusal::WouldWait(_) => {
                        assert!(patience.is_some() || config.max_wait.is_some());
                    }
                    other => panic!("refused on arrival: {other:?}"),
                }
                return;
            }
        };
        assert!(!self.closed, "joined what is closed");
        assert!(cost <= config.quota.burst_size());
        assert!(
            !self.is_paused_for_long(),
            "joined in a pause that is too long"
        );
        if self.engine.is_granted(ticket) {
            // What went back may be as little short as timers may be late.
            let mut engine = self.engine.clone();
            engine.cancel(now, ticket);
            let lost = before.level - engine.view(now).level;
            let least = before.rate * 0.0101 + before.level * 1e-9;
            assert!(lost <= least, "{lost} went with a caller");
        } else {
            assert!(config.max_queue.is_none_or(|most| before.queue_len < most));
        }
        let patience = patience.map(Duration::from_nanos);
        let patience = patience.into_iter().chain(config.max_wait).min();
        let deadline = patience.map_or(Time::MAX, |patience| now.after(patience));
        self.arrived += 1;
        self.callers.push(Caller {
            ticket,
            cost,
            deadline: deadline.as_nanos(),
            armed: self.now,
            number: self.arrived,
            waits: true,
            holds: false,
        });
    }

    fn work(&mut self, callers: u8) {
        let first = self.arrived;
        for _ in 0..callers {
            self.join(1, None);
        }
        for _ in 0..4 * usize::from(callers) {
            let callers = self.callers.iter().enumerate();
            let mine = callers.filter(|(_, caller)| caller.number > first);
            let next = mine.min_by_key(|(_, caller)| (caller.armed, caller.number));
            let Some((index, caller)) = next else {
                break;
            };
            self.now = caller.armed.clamp(self.now, FAR);
            let flights = self.flights.len();
            self.send(index, true);
            if self.flights.len() > flights
                && let Some((flight, _)) = self.flights.pop()
                && !self.answered_silently(flight)
            {
                self.engine.answer(self.time(), flight, &Answer::default());
            }
            self.wake(true);
            self.check_state();
        }
    }

    fn poll(&mut self, index: usize) {
        let Caller { ticket, .. } = self.callers[index];
        match self.engine.poll(self.time(), ticket) {
            Poll::Wait(at) => self.told(index, at),
            Poll::Granted => self.may_leave(),
            Poll::Refused(refusal) => self.refused(index, refusal),
        }
    }

    fn send(&mut self, index: usize, tracked: bool) {
        // What others hold may be taken back by this.
        for caller in &mut self.callers {
            caller.holds |= self.engine.is_granted(caller.ticket);
        }
        let Caller { ticket, cost, .. } = self.callers[index];
        match self.engine.send(self.time(), ticket, tracked) {
            Departure::Sent(grant) => {
                self.callers.swap_remove(index);
                self.departed(&grant, cost);
                if tracked {
                    self.flights.push((grant.flight, cost));
                }
            }
            Departure::Wait(at) => self.told(index, at),
            Departure::Refused(refusal) => self.refused(index, refusal),
        }
    }

    /// A caller was told to ask again.
    fn told(&mut self, index: usize, at: Time) {
        let at = at.as_nanos();
        assert!(at > self.now, "told to ask again at once");
        assert!(!self.closed, "waits for what is closed");
        assert!(
            !self.is_paused_for_long(),
            "waits out a pause that is too long"
        );
        let caller = &mut self.callers[index];
        assert!(at <= caller.deadline, "told to wait beyond its patience");
        caller.armed = at;
        caller.holds = false;
    }

    fn refused(&mut self, index: usize, refusal: Refusal) {
        self.see_pause();
        let caller = self.callers.swap_remove(index);
        match refusal {
            Refusal::Closed => assert!(self.closed),
            Refusal::TimedOut(_) => assert!(caller.deadline <= self.now, "refused too early"),
            // The pause may have ended since, if nobody asked.
            Refusal::Paused(left) => {
                assert!(left.as_nanos() <= u128::from(self.paused_until.saturating_sub(self.now)));
            }
            // One that its patience does not outlast.
            Refusal::WouldWait(left) => {
                assert!(caller.deadline < self.paused_until, "refused too early");
                assert!(left.as_nanos() <= u128::from(self.paused_until.saturating_sub(self.now)));
            }
            other => panic!("refused while waiting: {other:?}"),
        }
        assert_eq!(self.engine.standing(caller.ticket), None);
    }

    fn may_leave(&self) {
        assert!(
            self.now >= self.paused_until,
            "may leave at {}, paused until {}",
            self.now,
            self.paused_until
        );
    }

    /// Nothing may leave in a pause that the engine reports, whatever made it: an answer, or a budget used up unseen.
    fn see_pause(&mut self) {
        // A trial may end early.
        if let Some(pause) = self
            .engine
            .pause()
            .filter(|pause| pause.cause != Cause::Trial)
        {
            self.paused_until = self.paused_until.max(pause.until.as_nanos());
        }
    }

    fn departed(&mut self, grant: &Grant, cost: u32) {
        self.may_leave();
        self.see_pause();
        let quota = self.engine.config().quota;
        assert_eq!((grant.cost, grant.flight.sent()), (cost, self.time()));
        assert!(grant.rate() <= quota.rate() * (1.0 + 1e-9));
        self.sent += 1;
        // In every window that ends now; the worst one counts.
        let amount = i128::from(quota.amount());
        let earlier = self.left.last().map_or(0, |last| {
            last.excess - amount * i128::from(self.now - last.at)
        });
        let period = quota.period().as_nanos() as i128;
        let excess = earlier.max(0) + i128::from(cost) * period;
        let allowed = i128::from(quota.burst_size()) * period + amount * i128::from(SLACK);
        assert!(excess <= allowed, "the ceiling is broken at {}", self.now);
        self.left.push(Left {
            at: self.now,
            cost,
            excess,
        });
    }

    /// As the limiter applies what was read.
    fn answer(&mut self, flight: Option<Flight>, head: &Head) {
        let block = &head.block;
        let wall = if head.in_step {
            SystemTime::UNIX_EPOCH + NOW + Duration::from_nanos(self.now)
        } else {
            block.now
        };
        let feedback = block.reader().read(block.status, &block.headers, wall);
        if says_nothing(&feedback) && flight.is_some_and(|flight| self.answered_silently(flight)) {
            return;
        }
        let readings: Vec<_> = readings(&feedback).collect();
        let answer = answer(&feedback, &readings);
        let correction = match flight {
            Some(flight) => self.engine.answer(self.time(), flight, &answer),
            None => self.engine.reconcile(self.time(), &answer),
        };
        let most = self.engine.config().quota.rate() * (1.0 + 1e-9);
        assert!(correction.rate_after > 0.0 && correction.rate_after <= most);
        if let Some(wait) = answer.wait.filter(|_| answer.refused) {
            self.pause_for(wait);
        }
        self.pause_for_what_is_spent(&answer);
        if let Some(pause) = correction.paused {
            assert_eq!(self.engine.pause(), Some(pause));
            assert!(pause.until > self.time(), "a pause that is over");
        }
        let windows = |reading: &Reading<'_>| reading.remaining.and(reading.reset).is_some();
        self.no_windows &= !readings.iter().any(windows);
    }

    /// On any status nothing leaves while nothing is left.
    fn pause_for_what_is_spent(&mut self, answer: &Answer<'_>) {
        if answer.refused {
            return;
        }
        let sure = self.no_windows && answer.readings.len() == 1;
        for reading in answer.readings {
            if let (Some(0), Some(reset)) = (reading.remaining, reading.reset)
                && (sure || !reading.paces)
            {
                self.pause_for(reset);
            }
        }
    }

    /// The short way for answers that say nothing changes nothing that the long way would not.
    fn answered_silently(&mut self, flight: Flight) -> bool {
        let mut loud = self.engine.clone();
        let silent = self.engine.answer_silent(flight).is_some();
        if silent {
            loud.answer(self.time(), flight, &Answer::default());
            let mut silent = self.engine.clone();
            assert_eq!(loud.view(self.time()), silent.view(self.time()));
            let refusal = Answer {
                refused: true,
                ..Answer::default()
            };
            assert_eq!(
                loud.reconcile(self.time(), &refusal),
                silent.reconcile(self.time(), &refusal)
            );
        }
        silent
    }

    /// What must be true between any two calls.
    fn check_state(&mut self) {
        self.see_pause();
        let mut engine = self.engine.clone();
        let view = engine.view(self.time());
        let quota = engine.config().quota;
        let until = view.pause.map_or(0, |pause| pause.until.as_nanos());
        if self.paused_until > self.now {
            assert_eq!(
                until, self.paused_until,
                "a pause became shorter, or is lost"
            );
            assert!(view.level <= 0.0);
        }
        assert!(view.rate > 0.0 && view.rate <= quota.rate() * (1.0 + 1e-9));
        let most = f64::from(quota.burst_size()) + quota.rate() * 0.0101;
        // While callers are parked what is due to them is set aside, so the level says nothing then.
        if view.queue_len == 0 {
            assert!(view.level <= most * (1.0 + 1e-9), "{view:?}");
        }
        let granted = (self.callers.iter()).filter(|caller| engine.is_granted(caller.ticket));
        let held: u64 = granted.map(|caller| u64::from(caller.cost)).sum();
        let in_flight: u64 = self.flights.iter().map(|&(_, cost)| u64::from(cost)).sum();
        assert_eq!(
            (view.held, view.in_flight, view.sent),
            (held, in_flight, self.sent)
        );
        assert!(view.queue_len <= self.callers.len() && view.windows.len() <= 8);
        if self.closed || self.is_paused_for_long() {
            assert_eq!(view.queue_len, 0, "somebody waits in vain");
            self.callers
                .iter_mut()
                .for_each(|caller| caller.waits = false);
        }
        // Who was told to leave stands in line no more.
        let (mut probe, now) = (engine.clone(), self.time());
        for caller in &mut self.callers {
            caller.waits &= !matches!(probe.poll(now, caller.ticket), Poll::Refused(_));
        }
        // Those who wait are granted in the order in which they came.
        let mut last = 0;
        for caller in &mut self.callers {
            caller.holds |= engine.is_granted(caller.ticket);
            if caller.waits && caller.holds {
                caller.waits = false;
                last = last.max(caller.number);
            }
        }
        let mut waiting = self.callers.iter().filter(|caller| caller.waits);
        assert!(waiting.all(|caller| caller.number >= last), "out of order");
        // Of all who stand in line somebody asks no later than the first turn, or is woken now.
        let woken: Vec<_> = iter::from_fn(|| engine.take_woken()).collect();
        let waiting = || self.callers.iter().filter(|caller| !caller.holds);
        let asks = waiting().map(|caller| {
            if woken.contains(&caller.ticket) {
                self.now
            } else {
                caller.armed
            }
        });
        let asks = asks.min();
        let turn = waiting().map(|caller| match engine.poll(self.time(), caller.ticket) {
            Poll::Wait(at) => at.as_nanos(),
            Poll::Granted | Poll::Refused(_) => self.now,
        });
        let turn = turn.min();
        assert!(asks <= turn, "asks at {asks:?}, turn at {turn:?}");
    }

    /// When nothing forbids it any more, and so much at the lowest rate there is.
    fn when_due(&self, cost: u64) -> u64 {
        let view = self.look();
        let windows = view.windows.iter().map(|window| window.reset.as_nanos());
        // While no answer speaks of a budget, each window to come lets its limit leave, until it is forgotten.
        let sized = view.windows.iter().any(|window| window.limit.is_some());
        let forgotten = (self.now).saturating_add(Learned::MAX_AGE.as_nanos() as u64);
        let forgotten = if sized { forgotten } else { 0 };
        let start = (windows.chain([self.now, self.paused_until, forgotten])).max();
        let quota = self.engine.config().quota;
        let nanos = u128::from(cost) * 1_024 * quota.period().as_nanos();
        let nanos = nanos.div_ceil(u128::from(quota.amount())) + 2 * u128::from(SLACK);
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
        start.unwrap_or(self.now).saturating_add(nanos)
    }

    /// When all give up nothing is left behind, and nothing is lost.
    fn all_give_up(&mut self) {
        let now = self.time();
        for caller in std::mem::take(&mut self.callers) {
            self.engine.cancel(now, caller.ticket);
        }
        for (flight, _) in std::mem::take(&mut self.flights) {
            self.engine.unanswered(now, flight);
            self.see_pause();
        }
        self.check_state();
        let burst = self.engine.config().quota.burst_size();
        let full = self.when_due(burst.into());
        if full < FAR && !self.closed {
            self.now = full;
            match self.engine.try_send(self.time(), burst) {
                Ok(grant) => self.departed(&grant, burst),
                refused => panic!("{refused:?}"),
            }
        }
    }

    /// When all ask as they were told, all leave in time.
    fn all_ask(&mut self) {
        let now = self.time();
        for (flight, _) in std::mem::take(&mut self.flights) {
            self.engine.unanswered(now, flight);
            self.see_pause();
        }
        let cost: u64 = self
            .callers
            .iter()
            .map(|caller| u64::from(caller.cost))
            .sum();
        let burst = self.engine.config().quota.burst_size();
        let due = self.when_due(cost + u64::from(burst)).min(FAR);
        let most = 100 + 20 * self.callers.len().pow(2);
        // They were told before, and nobody listened.
        for caller in &mut self.callers {
            caller.armed = self.now;
        }
        for round in 0.. {
            let callers = self.callers.iter().enumerate();
            let Some((index, caller)) = callers.min_by_key(|(_, caller)| caller.armed) else {
                break;
            };
            if due == FAR && caller.armed >= FAR {
                break;
            }
            assert!(round < most, "asking leads nowhere");
            self.now = self.now.max(caller.armed);
            assert!(self.now <= due, "{caller:?} is stuck");
            self.send(index, false);
            while let Some(ticket) = self.engine.take_woken() {
                let mut callers = self.callers.iter();
                if let Some(index) = callers.position(|caller| caller.ticket == ticket) {
                    self.send(index, false);
                }
            }
            self.check_state();
        }
    }
}

fn says_nothing(feedback: &Feedback) -> bool {
    !feedback.refused
        && feedback.hold.is_none()
        && feedback.budgets.is_empty()
        && feedback.malformed_count == 0
}

fn readings(feedback: &Feedback) -> impl Iterator<Item = Reading<'_>> {
    feedback.budgets.iter().map(|budget| Reading {
        name: budget.name.as_deref(),
        partition: budget.partition.as_deref(),
        window: budget.window,
        limit: budget.limit,
        remaining: budget.remaining,
        reset: budget.reset,
        paces: budget.unit == Unit::Requests,
    })
}

fn answer<'a>(feedback: &Feedback, readings: &'a [Reading<'a>]) -> Answer<'a> {
    let asked = feedback.hold.map(|hold| hold.wait);
    let passed = |reading: &Reading<'_>| reading.reset == Some(Duration::ZERO);
    Answer {
        shared: feedback.scope == tower_throttle::feedback::Scope::Shared,
        refused: feedback.refused,
        wait: (asked.filter(|wait| !wait.is_zero())).or_else(|| feedback.reset_on_refusal()),
        least_backoff: if readings.iter().any(passed) {
            Duration::from_secs(1)
        } else {
            Duration::ZERO
        },
        readings,
    }
}
