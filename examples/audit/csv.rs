//! `csv`: one row a request, for a spreadsheet.

use std::{
    collections::HashMap,
    io::{self, Write},
    path::PathBuf,
};

use tower_throttle::{
    audit::journal::{Line, Lines, Opened},
    engine::QUOTAS,
};

use crate::{
    Error,
    follow::{Caller, Watch, follow},
    source::files,
    text::{nanos, reason, seconds},
};

pub(crate) fn run(paths: &[PathBuf], out: &mut impl Write) -> Result<(), Error> {
    let files = files(paths)?;
    // All limiters share the columns, whatever their quotas are called; a row says the name with each cost.
    let most = most_quotas(&files);
    write!(out, "limiter,seq,wall,arrived_s,left_s,waited_s,reason")?;
    for index in 1..=most {
        write!(out, ",quota_{index},cost_{index}")?;
    }
    writeln!(out, ",method,host,path,outcome")?;
    let mut rows = Rows {
        out,
        most,
        quotas: HashMap::new(),
    };
    let gaps = follow(&files, &mut rows)?;
    for line in gaps.lines() {
        // The rows are for a program; this is for whoever runs it, and no reason to stop.
        let _ = writeln!(io::stderr(), "audit: {line}");
    }
    Ok(())
}

/// Limiters are mostly opened at the beginning; those with more quotas later have only their first ones in the rows.
fn most_quotas(files: &[PathBuf]) -> usize {
    const LOOK: usize = 10_000;
    let opened = Lines::open(files)
        .take(LOOK)
        .filter_map(Result::ok)
        .filter(|line| line.kind == "opened");
    let counts = opened.filter_map(|line| line.value.get("quotas")?.as_array().map(Vec::len));
    counts.max().unwrap_or(1).min(QUOTAS)
}

struct Rows<'a, W> {
    out: &'a mut W,
    most: usize,
    quotas: HashMap<String, Vec<String>>,
}

impl<W: Write> Watch for Rows<'_, W> {
    fn opened(&mut self, limiter: &str, opened: &Opened, _line: &Line) -> Result<(), Error> {
        self.quotas
            .insert(limiter.to_owned(), opened.quotas.clone());
        Ok(())
    }

    fn over(&mut self, limiter: &str, caller: Caller) -> Result<(), Error> {
        let out = &mut *self.out;
        let left = caller.left;
        // As the limiter counted it; one that never left was there until it was refused or went.
        let waited = (left.map(|(_, leave)| nanos(leave.waited)))
            .or(caller.end.map(|(at, _)| at.saturating_sub(caller.arrived)));
        write!(
            out,
            "{},{},{},{},{},{},{}",
            field(limiter),
            caller.seq,
            field(&caller.wall),
            seconds(caller.arrived),
            left.map_or_else(String::new, |(at, _)| seconds(at)),
            waited.map_or_else(String::new, seconds),
            left.map_or("", |(_, leave)| reason(leave.reason)),
        )?;
        let names = self.quotas.get(limiter).map_or(&[][..], |names| names);
        for index in 0..self.most {
            match names.get(index) {
                Some(name) if left.is_some() => {
                    write!(out, ",{},{}", field(name), caller.costs.of(index))?;
                }
                Some(name) => write!(out, ",{},0", field(name))?,
                None => write!(out, ",,")?,
            }
        }
        let request = caller.request.as_ref();
        writeln!(
            out,
            ",{},{},{},{}",
            request.map_or_else(String::new, |request| field(&request.method)),
            request.map_or_else(String::new, |request| field(&request.host)),
            request.map_or_else(String::new, |request| field(&request.path)),
            field(&caller.outcome()),
        )?;
        Ok(())
    }
}

/// Always quoted. A text that a spreadsheet would take for a formula gets an apostrophe before it; so does one behind blanks, which some
/// programs skip.
fn field(text: &str) -> String {
    let formula = text
        .trim_start()
        .starts_with(['=', '+', '-', '@', '|', '%'])
        || text.starts_with(['\t', '\r', '\n']);
    let guard = if formula { "'" } else { "" };
    format!(
        "\"{guard}{}\"",
        text.replace('"', "\"\"").replace('\0', "?")
    )
}
