//! `explain`: the life of one caller, in plain sentences.

use std::{collections::HashMap, io::Write, path::PathBuf};

use tower_throttle::{
    WaitReason,
    audit::journal::{Line, Opened},
    engine::{Costs, Decision, Engine, Refusal, Step, Time},
};

use crate::{
    Error,
    follow::{Caller, End, Seen, Watch, corrected, follow},
    pauses::{Span, Tracker},
    source::files,
    text::{self, nanos, plain, seconds, time},
};

/// More pauses than anybody reads.
const PAUSES: usize = 12;

pub(crate) fn run(
    paths: &[PathBuf],
    seq: u64,
    limiter: Option<&str>,
    out: &mut impl Write,
) -> Result<(), Error> {
    let mut stories = Stories {
        out,
        seq,
        limiter,
        lives: HashMap::new(),
        told: 0,
    };
    let gaps = follow(&files(paths)?, &mut stories)?;
    let told = stories.told;
    for line in gaps.lines() {
        writeln!(out, "Note: {line}.")?;
    }
    if told == 0 {
        let of = limiter.map_or_else(String::new, |limiter| format!(" of limiter {limiter:?}"));
        return Err(format!("there is no caller {seq}{of} in these files").into());
    }
    Ok(())
}

struct Stories<'a, W> {
    out: &'a mut W,
    seq: u64,
    limiter: Option<&'a str>,
    lives: HashMap<String, Life>,
    told: u64,
}

/// A limiter, with an engine that is told all the same: it knows the levels of all quotas.
struct Life {
    quotas: Vec<String>,
    engine: Option<Engine>,
    pauses: Tracker,
    /// The caller is between its arrival and its end.
    here: bool,
    notes: Notes,
}

#[derive(Default)]
struct Notes {
    pauses: Vec<Span>,
    more: u64,
    halted: bool,
    sent_meanwhile: u64,
    levels: Vec<(&'static str, Vec<f64>)>,
    rate: f64,
    corrections: Vec<(u64, Costs)>,
}

impl<W: Write> Watch for Stories<'_, W> {
    fn opened(&mut self, limiter: &str, opened: &Opened, _line: &Line) -> Result<(), Error> {
        if self.limiter.is_none_or(|wanted| wanted == limiter) {
            let life = Life {
                quotas: opened.quotas.clone(),
                engine: Engine::new(opened.config.clone(), Time::ZERO).ok(),
                pauses: Tracker::default(),
                here: false,
                notes: Notes::default(),
            };
            self.lives.insert(limiter.to_owned(), life);
        }
        Ok(())
    }

    fn step(&mut self, seen: &Seen<'_>) -> Result<(), Error> {
        if let Some(life) = self.lives.get_mut(seen.limiter) {
            life.step(seen, self.seq);
        }
        Ok(())
    }

    fn over(&mut self, limiter: &str, caller: Caller) -> Result<(), Error> {
        if caller.seq != self.seq {
            return Ok(());
        }
        if let Some(life) = self.lives.get_mut(limiter) {
            self.told += 1;
            life.tell(limiter, &caller, self.out)?;
            life.notes = Notes::default();
        }
        Ok(())
    }
}

impl Life {
    fn step(&mut self, seen: &Seen<'_>, wanted: u64) {
        let ours = seen.seq == Some(wanted);
        let record = seen.record;
        let now = Time::from_nanos(seen.at);
        let arrives = ours && matches!(record.step, Step::Join(_) | Step::TrySend(_));
        let leaves = ours && matches!(record.decision, Decision::Sent(_));
        if arrives {
            self.here = true;
            self.notes.pauses.extend(self.pauses.now);
        }
        if arrives || leaves {
            self.look(
                now,
                if leaves {
                    "before it left"
                } else {
                    "when it came"
                },
            );
        }
        if let Some(engine) = &mut self.engine {
            // Whether it decides the same is for `verify`.
            let _ = record.replay(now, engine);
        }
        if leaves {
            self.look(now, "after it left");
        }
        let before = self.pauses.now.map(|span| span.from);
        self.pauses.step(seen);
        if !self.here {
            return;
        }
        let fresh = self
            .pauses
            .now
            .filter(|span| Some(span.from) != before && !arrives && !leaves);
        match fresh {
            Some(span) if self.notes.pauses.len() < PAUSES => self.notes.pauses.push(span),
            Some(_) => self.notes.more += 1,
            None => {}
        }
        self.notes.halted |= matches!(record.step, Step::Halt);
        match (&record.step, &record.decision) {
            (Step::Reprice(departed, real) | Step::Settle(departed, real), _)
                if ours && departed.costs != *real =>
            {
                self.notes
                    .corrections
                    .push((seen.at, corrected(departed, real)));
            }
            (_, Decision::Sent(_)) if !ours => self.notes.sent_meanwhile += 1,
            _ => {}
        }
        let ends = matches!(
            record.decision,
            Decision::Sent(_) | Decision::Refused(..) | Decision::Cancelled { .. }
        );
        self.here &= !(ours && ends);
    }

    fn look(&mut self, now: Time, when: &'static str) {
        // A copy, as a look lets time pass, which was not recorded.
        if let Some(view) = self.engine.clone().map(|mut engine| engine.view(now)) {
            self.notes.rate = view.rate;
            let levels = view.quotas.iter().map(|quota| quota.level).collect();
            self.notes.levels.push((when, levels));
        }
    }

    fn tell(&self, limiter: &str, caller: &Caller, out: &mut impl Write) -> Result<(), Error> {
        let notes = &self.notes;
        writeln!(out, "Caller {} of limiter {}", caller.seq, plain(limiter))?;
        if let Some(request) = &caller.request {
            let port = request
                .port
                .map_or_else(String::new, |port| format!(":{port}"));
            let text = format!(
                "{} {}://{}{port}{}",
                request.method, request.scheme, request.host, request.path
            );
            writeln!(out, "  It sent {}.", plain(&text))?;
        }
        writeln!(
            out,
            "  It came at {} s of the limiter's time ({}) and asked for {}{}.",
            seconds(caller.arrived),
            plain(&caller.wall),
            text::costs(&caller.ask.costs, &self.quotas),
            if caller.tries {
                ", at once or not at all"
            } else {
                ""
            }
        )?;
        writeln!(
            out,
            "  {} callers stood in line then; it was of the class {:?}.",
            caller.ahead, caller.ask.priority
        )?;
        if let Some(patience) = caller.ask.patience.filter(|_| !caller.tries) {
            writeln!(
                out,
                "  It would wait for {} at most.",
                time(nanos(patience))
            )?;
        }
        self.tell_wait(caller, out)?;
        if let Some((at, costs)) = notes.corrections.last() {
            let costs = text::costs(costs, &self.quotas);
            writeln!(
                out,
                "  Its cost was corrected to {costs} at {} s.",
                seconds(*at)
            )?;
        }
        for (when, levels) in &notes.levels {
            let names = self.quotas.iter().zip(levels);
            let each =
                names.map(|(name, level)| format!("{} {}", text::short(*level), plain(name)));
            let each = each.collect::<Vec<_>>().join(", ");
            writeln!(out, "  There {when}: {each}.")?;
        }
        if !notes.levels.is_empty() {
            writeln!(
                out,
                "  The rate in use was then {} a second.",
                text::short(notes.rate)
            )?;
        }
        let end = caller
            .end
            .map_or_else(String::new, |(at, _)| format!(", at {} s", seconds(at)));
        writeln!(out, "  What came of it: {}{end}.", caller.outcome())?;
        Ok(())
    }

    fn tell_refusal(&self, caller: &Caller, out: &mut impl Write) -> Result<(), Error> {
        match caller.end {
            Some((_, End::Refused(Refusal::WouldWait(wait) | Refusal::QueueFull(wait)))) => {
                let wait = time(nanos(wait));
                writeln!(out, "  Its turn would have come in {wait} at the earliest.")?;
            }
            Some((_, End::Refused(Refusal::Paused(left)))) => {
                let left = time(nanos(left));
                writeln!(out, "  The server's pause had {left} to go.")?;
            }
            Some((_, End::Refused(Refusal::TooExpensive { cost, burst }))) => {
                writeln!(
                    out,
                    "  It asked for {cost}, where {burst} can ever be had at once."
                )?;
            }
            _ => {}
        }
        Ok(())
    }

    fn tell_wait(&self, caller: &Caller, out: &mut impl Write) -> Result<(), Error> {
        let notes = &self.notes;
        if let Some((at, leave)) = caller.left {
            let waited = nanos(leave.waited);
            let why = match leave.reason {
                _ if !leave.would_wait.is_zero() => "nothing was enforced".to_owned(),
                _ if waited == 0 => "it did not have to wait".to_owned(),
                WaitReason::None => format!(
                    "it was granted as it came, and its caller sent {} later",
                    time(waited)
                ),
                WaitReason::Rate => format!(
                    "it waited {} for the rate and those before it, while {} others left",
                    time(waited),
                    notes.sent_meanwhile
                ),
                WaitReason::Pause(cause) => format!(
                    "it waited {}, at last for a pause: {}; {} others left meanwhile",
                    time(waited),
                    text::cause(cause),
                    notes.sent_meanwhile
                ),
                _ => format!("it waited {}", time(waited)),
            };
            let costs = text::costs(&leave.costs, &self.quotas);
            writeln!(
                out,
                "  It left at {} s and took {costs}: {why}.",
                seconds(at)
            )?;
            if !leave.would_wait.is_zero() {
                let wait = time(nanos(leave.would_wait));
                writeln!(
                    out,
                    "  This was a trial run: enforced, it would have waited {wait} at least."
                )?;
            }
        } else if let Some((at, End::Refused(_) | End::Cancelled)) = caller.end {
            let waited = time(at.saturating_sub(caller.arrived));
            writeln!(out, "  It never left; it had been there for {waited}.")?;
            self.tell_refusal(caller, out)?;
        }
        for span in &notes.pauses {
            let by = span.by.map_or_else(String::new, |by| {
                format!(", after the request of caller {by}")
            });
            writeln!(
                out,
                "  Pause from {} s, set until {} s: {}{by}.",
                seconds(span.from),
                seconds(span.until),
                text::cause(span.cause)
            )?;
        }
        if notes.more > 0 {
            writeln!(out, "  And {} more pauses.", notes.more)?;
        }
        if notes.halted {
            writeln!(out, "  Meanwhile the application held everything back.")?;
        }
        Ok(())
    }
}
