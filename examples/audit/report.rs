//! `report`: what an auditor wants to know of each limiter.

use std::{collections::BTreeMap, io::Write, path::PathBuf};

use tower_throttle::{
    Quota,
    audit::journal::{Line, Opened},
    engine::{Decision, QUOTAS, Step},
};

use crate::{
    Error,
    follow::{Caller, End, Seen, Watch, corrected, follow},
    histogram::Histogram,
    pauses::Pauses,
    source::files,
    text::{self, plain, time},
    windows::{Track, Use},
};

pub(crate) fn run(paths: &[PathBuf], out: &mut impl Write) -> Result<(), Error> {
    let files = files(paths)?;
    let mut all = All::default();
    let gaps = follow(&files, &mut all)?;
    let mut broken = Vec::new();
    for (name, mut limiter) in all.0 {
        limiter.end();
        limiter.print(&name, out)?;
        if limiter.is_broken() {
            broken.push(format!("{name:?}"));
        }
    }
    for line in gaps.lines() {
        writeln!(out, "Note: {line}.")?;
    }
    if !broken.is_empty() {
        return Err(format!(
            "limits were not kept by {}; see the report",
            broken.join(", ")
        )
        .into());
    }
    Ok(())
}

#[derive(Default)]
struct All(BTreeMap<String, Limiter>);

#[derive(Default)]
struct Limiter {
    opened: u64,
    first: String,
    quotas: Vec<(String, Quota)>,
    changes: u64,
    observe: bool,
    trials: u64,
    sent: u64,
    waited: Histogram,
    waits: u64,
    cancelled: u64,
    refusals: BTreeMap<&'static str, u64>,
    open: u64,
    answered: u64,
    refused: u64,
    corrections: u64,
    pauses: Pauses,
    windows: Use,
    /// By the day's clock, over restarts.
    across: Use,
    wall: u64,
    number: u64,
    at: u64,
}

impl Watch for All {
    fn opened(&mut self, name: &str, opened: &Opened, line: &Line) -> Result<(), Error> {
        let limiter = self.0.entry(name.to_owned()).or_default();
        limiter.end();
        limiter.opened += 1;
        if limiter.first.is_empty() {
            limiter.first.clone_from(&line.wall);
        }
        // Never back, should the day's clock have been set meanwhile.
        let last = limiter.wall.saturating_add(limiter.at);
        limiter.wall = text::wall(&line.wall).unwrap_or(last).max(last);
        limiter.at = 0;
        limiter.observe = opened.config.observe;
        let quotas = [opened.config.quota]
            .into_iter()
            .chain(opened.config.further.iter().copied());
        limiter.quotas = opened
            .quotas
            .iter()
            .cloned()
            .zip(quotas)
            .take(QUOTAS)
            .collect();
        for (index, (_, quota)) in limiter.quotas.iter().enumerate() {
            limiter.windows.set_quota(0, index, *quota);
            limiter.across.set_quota(limiter.wall, index, *quota);
        }
        Ok(())
    }

    fn step(&mut self, seen: &Seen<'_>) -> Result<(), Error> {
        if let Some(limiter) = self.0.get_mut(seen.limiter) {
            limiter.step(seen);
        }
        Ok(())
    }

    fn over(&mut self, name: &str, caller: Caller) -> Result<(), Error> {
        if let Some(limiter) = self.0.get_mut(name) {
            match caller.end {
                Some((_, End::Refused(why))) => {
                    *limiter.refusals.entry(text::refusal(why)).or_default() += 1;
                }
                Some((_, End::Cancelled)) => limiter.cancelled += 1,
                None if caller.left.is_none() => limiter.open += 1,
                _ => {}
            }
        }
        Ok(())
    }
}

impl Limiter {
    fn step(&mut self, seen: &Seen<'_>) {
        self.at = seen.at;
        self.pauses.step(seen, self.observe);
        match (&seen.record.step, &seen.record.decision) {
            (_, Decision::Sent(leave)) => {
                self.sent += 1;
                self.number += 1;
                if !leave.would_wait.is_zero() {
                    self.trials += 1;
                }
                let waited = text::nanos(leave.waited);
                self.waits += u64::from(waited > 0);
                self.waited.add(waited);
                let number = seen.flight.unwrap_or(self.sent);
                self.windows.sent(seen.at, number, leave.costs);
                self.across
                    .sent(self.wall.saturating_add(seen.at), self.number, leave.costs);
            }
            (Step::SetQuota(index, quota), Decision::Accepted(true)) if *index < QUOTAS => {
                self.changes += 1;
                self.windows.set_quota(seen.at, *index, *quota);
                self.across
                    .set_quota(self.wall.saturating_add(seen.at), *index, *quota);
                if let Some(changed) = self.quotas.get_mut(*index) {
                    changed.1 = *quota;
                }
            }
            (Step::SetObserve(observe), _) => self.observe = *observe,
            (Step::Reprice(departed, real) | Step::Settle(departed, real), _)
                if departed.costs != *real =>
            {
                self.corrections += 1;
                let real = corrected(departed, real);
                if let Some(flight) = seen.flight {
                    self.windows.correct(flight, &real);
                }
            }
            (Step::Answer(_, told), _) => {
                self.answered += 1;
                self.refused += u64::from(told.refused);
            }
            (Step::AnswerSilent(_), Decision::Accepted(true)) => self.answered += 1,
            _ => {}
        }
    }

    fn is_broken(&self) -> bool {
        self.pauses.broken > 0
            || self
                .windows
                .tracks
                .iter()
                .any(|track| track.above.is_some())
    }

    fn end(&mut self) {
        self.windows.end();
        self.pauses.end(self.at);
    }

    fn print(&mut self, name: &str, out: &mut impl Write) -> Result<(), Error> {
        writeln!(out, "Limiter {}", plain(name))?;
        let starts = match self.opened {
            1 => String::new(),
            opened => format!(", opened {opened} times"),
        };
        writeln!(out, "  recorded since {}{starts}", plain(&self.first))?;
        for (name, quota) in &self.quotas {
            writeln!(out, "  quota {}: {}", plain(name), quota)?;
        }
        if self.changes > 0 {
            writeln!(
                out,
                "  quotas were changed {} times while it ran; above is the last state, \
                 and each window is held against what was allowed in it",
                self.changes
            )?;
        }
        writeln!(out, "  requests sent: {}", self.sent)?;
        if self.trials > 0 {
            writeln!(
                out,
                "    of these {} left in a trial run without the wait a limit would have asked for; they took nothing from the quotas",
                self.trials
            )?;
        }
        let share = 100.0 * self.waits as f64 / self.sent.max(1) as f64;
        let [half, most, nearly] = [0.5, 0.9, 0.99].map(|share| time(self.waited.quantile(share)));
        writeln!(
            out,
            "  waits: {share:.1} % waited; half at most {half}, 90 % {most}, 99 % {nearly} (each up to 0.8 % too high); longest {}",
            time(self.waited.most)
        )?;
        let refusals: u64 = self.refusals.values().sum();
        writeln!(out, "  refused by the limiter: {refusals}")?;
        for (why, count) in &self.refusals {
            writeln!(out, "    {count}: {why}")?;
        }
        writeln!(
            out,
            "  callers that left before their turn: {}",
            self.cancelled
        )?;
        if self.open > 0 {
            writeln!(out, "  callers still in line at an end: {}", self.open)?;
        }
        writeln!(
            out,
            "  answers: {}, of which the server refused {} for the rate",
            self.answered, self.refused
        )?;
        self.print_pauses(out)?;
        if self.corrections > 0 {
            writeln!(
                out,
                "  costs corrected after leaving: {}; each counts as corrected, when its request left{}",
                self.corrections,
                match self.windows.late {
                    0 => String::new(),
                    late => format!(", but for {late} that came more than a minute later"),
                }
            )?;
        }
        self.print_windows(out)
    }

    fn print_pauses(&self, out: &mut impl Write) -> Result<(), Error> {
        let pauses = &self.pauses;
        writeln!(
            out,
            "  pauses: {}, of which {} by the server's word",
            pauses.total(),
            pauses.servers
        )?;
        for (cause, (count, longest, total)) in &pauses.kinds {
            writeln!(
                out,
                "    {count}: {cause}; longest {}, {} in all",
                time(*longest),
                time(*total)
            )?;
        }
        match pauses.first_broken {
            None if pauses.total() > 0 => {
                writeln!(
                    out,
                    "    Nothing was sent inside a pause while limits were enforced."
                )?;
            }
            None => {}
            Some((seq, at)) => writeln!(
                out,
                "    BROKEN: {} requests were sent inside a pause, the first by caller {seq} at {} s.",
                pauses.broken,
                text::seconds(at)
            )?,
        }
        if pauses.unenforced > 0 {
            writeln!(
                out,
                "    In trial runs, which enforce nothing, {} were.",
                pauses.unenforced
            )?;
        }
        Ok(())
    }

    fn print_windows(&mut self, out: &mut impl Write) -> Result<(), Error> {
        for track in &self.windows.tracks {
            let (most, window) = (track.most, time(track.window));
            let Some(name) = track.quota.and_then(|index| self.quotas.get(index)) else {
                writeln!(
                    out,
                    "  At no time were more than {} requests sent in any {window}.",
                    most.used
                )?;
                continue;
            };
            writeln!(
                out,
                "  At no time were more than {} {} sent in any {window}, where {} are allowed.",
                most.used,
                plain(&name.0),
                most.allowed
            )?;
            if let Some(above) = track.above {
                writeln!(
                    out,
                    "    EXCEEDED: {} in the {window} up to {} s, where {} are allowed.",
                    above.used,
                    text::seconds(above.at),
                    above.allowed
                )?;
            }
            if track.debts > 0 {
                writeln!(
                    out,
                    "    What was known as the requests left was never above; \
                     {} windows are by costs told later, which those behind wait for.",
                    track.debts
                )?;
            }
        }
        if self.opened > 1 {
            writeln!(
                out,
                "  The windows above lie within one start of the process each; a new one does not know what was sent before."
            )?;
            self.across.end();
            for track in self
                .across
                .tracks
                .iter()
                .filter(|track| Track::counts_requests(track))
            {
                let (most, window) = (track.most.used, time(track.window));
                writeln!(
                    out,
                    "  Over all starts, by the day's clock: at most {most} requests in any {window}."
                )?;
            }
        }
        Ok(())
    }
}

impl Track {
    const fn counts_requests(&self) -> bool {
        self.quota.is_none()
    }
}
