//! From lines to callers: who came, what it was decided to do, what became of it.

use std::{
    collections::{HashMap, VecDeque},
    path::PathBuf,
};

use serde_json::Value;
use tower_throttle::{
    audit::journal::{Line, Lines, Opened, Request},
    engine::{After, Ask, Costs, Decision, Departed, Leave, Record, Refusal, Step, TicketId},
};

use crate::{Error, source::Progress, text};

/// What comes later to a request that has left is not looked for: a permit may be settled at any time, or never.
pub(crate) const PATIENCE: u64 = 60_000_000_000;

/// Bytes between two reports of progress.
const STRIDE: u64 = 1 << 20;

/// One caller, as far as it got.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) seq: u64,
    pub(crate) arrived: u64,
    pub(crate) wall: String,
    pub(crate) ask: Ask,
    /// It would not stand in line.
    pub(crate) tries: bool,
    /// How many stood in line when it came.
    pub(crate) ahead: usize,
    pub(crate) left: Option<(u64, Leave)>,
    /// What it cost as far as is known.
    pub(crate) costs: Costs,
    pub(crate) request: Option<Request>,
    /// When it ended, and how.
    pub(crate) end: Option<(u64, End)>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    /// An answer; whether it refused the request for its rate.
    Answered(bool),
    /// The request ended without one.
    Unanswered,
    Refused(Refusal),
    Cancelled,
}

/// A step, with what was known before it.
#[derive(Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) limiter: &'a str,
    pub(crate) at: u64,
    pub(crate) record: &'a Record,
    pub(crate) before: Option<&'a After>,
    /// The caller it is about, if one.
    pub(crate) seq: Option<u64>,
    /// The number of the request it is about, in order of departure.
    pub(crate) flight: Option<u64>,
}

/// What a command makes of it. All limiters of a name that follow each other are told under that name.
pub(crate) trait Watch {
    fn opened(&mut self, _limiter: &str, _opened: &Opened, _line: &Line) -> Result<(), Error> {
        Ok(())
    }

    fn step(&mut self, _seen: &Seen<'_>) -> Result<(), Error> {
        Ok(())
    }

    /// The caller is forgotten; a minute after its end, so that corrections of its cost are in.
    fn over(&mut self, limiter: &str, caller: Caller) -> Result<(), Error>;
}

/// One limiter since it was opened.
#[derive(Debug, Default)]
struct Life {
    seq: u64,
    sent: u64,
    before: Option<After>,
    line: HashMap<TicketId, Caller>,
    /// By the number of the request.
    away: HashMap<u64, Caller>,
    numbers: HashMap<u64, u64>,
    /// Those of them that nothing is waited for, and since when.
    done: VecDeque<(u64, u64)>,
}

/// What was left out.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    /// Steps of limiters that were opened before the first file.
    pub(crate) unopened: u64,
    /// Lines that another version wrote.
    pub(crate) unknown: u64,
    pub(crate) lost: u64,
    pub(crate) torn: bool,
}

impl Gaps {
    /// One line for each, for people.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.unopened > 0 {
            let unopened = self.unopened;
            lines.push(format!(
                "{unopened} steps are left out: their limiters were opened before the first file"
            ));
        }
        if self.unknown > 0 {
            lines.push(format!(
                "{} steps are left out: another version wrote them",
                self.unknown
            ));
        }
        if self.lost > 0 {
            lines.push(format!(
                "{} entries are missing, as the journal itself says",
                self.lost
            ));
        }
        if self.torn {
            lines.push("the last line was not finished".to_owned());
        }
        lines
    }
}

/// Reads all files, which are checked on the way.
pub(crate) fn follow(files: &[PathBuf], watch: &mut impl Watch) -> Result<Gaps, Error> {
    let progress = Progress::new(files, None, "reading");
    let mut lines = Lines::open(files);
    let mut lives: HashMap<String, Life> = HashMap::new();
    let (mut gaps, mut told) = (Gaps::default(), 0);
    while let Some(line) = lines.next() {
        let line = line?;
        if lines.bytes() - told >= STRIDE {
            told = lines.bytes();
            progress.at(told);
        }
        match (&*line.kind, &line.limiter) {
            ("start", _) => end_all(&mut lives, watch)?,
            ("loss", _) => {
                let lost = line.value.get("entries").and_then(Value::as_u64);
                gaps.lost = gaps.lost.saturating_add(lost.unwrap_or(0));
            }
            ("opened", Some(limiter)) => {
                if let Ok(opened) = serde_json::from_value::<Opened>(line.value.clone()) {
                    if let Some(life) = lives.remove(limiter) {
                        life.end(limiter, watch)?;
                    }
                    watch.opened(limiter, &opened, &line)?;
                    lives.insert(limiter.clone(), Life::default());
                } else {
                    gaps.unknown += 1;
                }
            }
            ("step", Some(limiter)) => {
                let flight = flight(&line.value);
                let Some(life) = lives.get_mut(limiter) else {
                    gaps.unopened += 1;
                    continue;
                };
                let (Ok(record), Some(at)) =
                    (serde_json::from_value::<Record>(line.value), line.at)
                else {
                    gaps.unknown += 1;
                    continue;
                };
                life.step(limiter, at, &line.wall, &record, flight, watch)?;
            }
            ("request", Some(limiter)) => {
                let request = serde_json::from_value::<Request>(line.value).ok();
                if let (Some(life), Some(request)) = (lives.get_mut(limiter), request) {
                    let number = life.numbers.get(&request.seq);
                    if let Some(caller) = number.and_then(|number| life.away.get_mut(number)) {
                        caller.request = Some(request);
                    }
                }
            }
            _ => {}
        }
    }
    end_all(&mut lives, watch)?;
    gaps.torn = lines.summary().torn.is_some();
    Ok(gaps)
}

fn end_all(lives: &mut HashMap<String, Life>, watch: &mut impl Watch) -> Result<(), Error> {
    let mut all: Vec<(String, Life)> = lives.drain().collect();
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    for (limiter, life) in all {
        life.end(&limiter, watch)?;
    }
    Ok(())
}

/// The number is not told by the type, but it is in the file.
fn flight(value: &Value) -> Option<u64> {
    let step = value.get("step")?.as_object()?;
    let (kind, told) = step.iter().next()?;
    let first = match &**kind {
        "answer" => told.get(0)?,
        "reprice" | "settle" => told.get(0)?.get("flight")?,
        "answer_silent" | "unanswered" => told,
        _ => {
            return value
                .get("decision")?
                .get("sent")?
                .get("flight")?
                .get("number")?
                .as_u64();
        }
    };
    first.get("number")?.as_u64()
}

impl Life {
    fn step(
        &mut self,
        limiter: &str,
        at: u64,
        wall: &str,
        record: &Record,
        flight: Option<u64>,
        watch: &mut impl Watch,
    ) -> Result<(), Error> {
        let seq = match &record.step {
            Step::Join(_) | Step::TrySend(_) => {
                self.seq = self.seq.wrapping_add(1);
                // The file knows better, should one be missing.
                match &record.decision {
                    Decision::Refused(Some(seq), _) => self.seq = *seq,
                    Decision::Sent(leave) => self.seq = leave.seq,
                    _ => {}
                }
                Some(self.seq)
            }
            Step::Poll(id) | Step::Send(id, _) | Step::Cancel(id) | Step::Hurry(id, _) => {
                self.line.get(id).map(|caller| caller.seq)
            }
            _ => {
                let caller = flight.and_then(|flight| self.away.get(&flight));
                caller.map(|caller| caller.seq)
            }
        };
        watch.step(&Seen {
            limiter,
            at,
            record,
            before: self.before.as_ref(),
            seq,
            flight,
        })?;
        let caller = |ask: &Ask, tries| Caller {
            seq: seq.unwrap_or(0),
            arrived: at,
            wall: wall.to_owned(),
            ask: *ask,
            tries,
            ahead: self.before.map_or(0, |before| before.queue),
            left: None,
            costs: ask.costs,
            request: None,
            end: None,
        };
        let number = flight.unwrap_or(self.sent.wrapping_add(1));
        match (&record.step, &record.decision) {
            (Step::Join(ask), Decision::Placed(id, _)) => {
                let caller = caller(ask, false);
                self.line.insert(*id, caller);
            }
            (Step::Join(ask) | Step::TrySend(ask), Decision::Refused(_, why)) => {
                let mut caller = caller(ask, matches!(record.step, Step::TrySend(_)));
                caller.end = Some((at, End::Refused(*why)));
                watch.over(limiter, caller)?;
            }
            (Step::TrySend(ask), Decision::Sent(leave)) => {
                let caller = caller(ask, true);
                self.leave(at, caller, leave, number, false);
            }
            (Step::Send(id, tracked), Decision::Sent(leave)) => {
                if let Some(caller) = self.line.remove(id) {
                    self.leave(at, caller, leave, number, *tracked);
                }
            }
            (
                Step::Poll(id) | Step::Send(id, _) | Step::Hurry(id, _),
                Decision::Refused(_, why),
            ) => {
                if let Some(mut caller) = self.line.remove(id) {
                    caller.end = Some((at, End::Refused(*why)));
                    watch.over(limiter, caller)?;
                }
            }
            (Step::Cancel(id), Decision::Cancelled { .. }) => {
                if let Some(mut caller) = self.line.remove(id) {
                    caller.end = Some((at, End::Cancelled));
                    watch.over(limiter, caller)?;
                }
            }
            (Step::Answer(_, told), _) => self.close(at, number, End::Answered(told.refused)),
            (Step::AnswerSilent(_), Decision::Accepted(true)) => {
                self.close(at, number, End::Answered(false));
            }
            (Step::Unanswered(_), _) => self.close(at, number, End::Unanswered),
            (Step::Reprice(departed, real) | Step::Settle(departed, real), _) => {
                if let Some(caller) = self.away.get_mut(&number) {
                    caller.costs = corrected(departed, real);
                }
            }
            _ => {}
        }
        self.sent = record.after.sent;
        self.before = Some(record.after);
        while let Some(&(since, number)) = self.done.front() {
            if at.saturating_sub(since) < PATIENCE {
                break;
            }
            self.done.pop_front();
            if let Some(caller) = self.away.remove(&number) {
                self.numbers.remove(&caller.seq);
                watch.over(limiter, caller)?;
            }
        }
        Ok(())
    }

    fn leave(&mut self, at: u64, mut caller: Caller, leave: &Leave, number: u64, tracked: bool) {
        caller.left = Some((at, *leave));
        caller.costs = leave.costs;
        self.numbers.insert(caller.seq, number);
        self.away.insert(number, caller);
        if !tracked {
            self.done.push_back((at, number));
        }
    }

    fn close(&mut self, at: u64, number: u64, end: End) {
        let caller = self.away.get_mut(&number);
        if caller.is_some_and(|caller| caller.end.replace((at, end)).is_none()) {
            self.done.push_back((at, number));
        }
    }

    /// Nothing more will be heard of it.
    fn end(self, limiter: &str, watch: &mut impl Watch) -> Result<(), Error> {
        let mut all: Vec<Caller> = self
            .line
            .into_values()
            .chain(self.away.into_values())
            .collect();
        all.sort_by_key(|caller| caller.seq);
        all.into_iter()
            .try_for_each(|caller| watch.over(limiter, caller))
    }
}

/// As the engine counts it: what left in a trial run took nothing, and costs nothing later.
pub(crate) fn corrected(departed: &Departed, real: &Costs) -> Costs {
    if departed.would_wait.is_zero() {
        *real
    } else {
        departed.costs
    }
}

impl Caller {
    pub(crate) fn outcome(&self) -> String {
        match (self.end, self.left) {
            (Some((_, End::Answered(true))), _) => "answered: refused by the server".to_owned(),
            (Some((_, End::Answered(false))), _) => "answered".to_owned(),
            (Some((_, End::Unanswered)), _) => "sent, no answer".to_owned(),
            (Some((_, End::Refused(why))), _) => format!("not sent: {}", text::refusal(why)),
            (Some((_, End::Cancelled)), _) => "not sent: the caller left".to_owned(),
            (None, Some(_)) => "sent".to_owned(),
            (None, None) => "still in line at the end".to_owned(),
        }
    }
}
