//! The command line.

use std::{ffi::OsString, path::PathBuf};

use crate::Error;

pub(crate) const HELP: &str = "\
Checks and explains the journals of limiters.

usage: audit COMMAND FILE.. [OPTIONS]

  verify FILE..       is each line as it was written, and each decision the one the engine makes
  report FILE..       requests, waits, refusals, pauses, and the highest use of each quota in any window
  explain FILE.. SEQ  what became of the caller of this number, and why; --limiter NAME if several have one
  csv FILE..          one row a request, for a spreadsheet
  chart FILE..        a picture; --out FILE names it (default audit.svg)

One FILE stands for all files of its journal; several are read as they are given, the oldest first.
";

#[derive(Debug)]
pub(crate) enum Command {
    Help,
    Verify {
        paths: Vec<PathBuf>,
    },
    Report {
        paths: Vec<PathBuf>,
    },
    Explain {
        paths: Vec<PathBuf>,
        seq: u64,
        limiter: Option<String>,
    },
    Csv {
        paths: Vec<PathBuf>,
    },
    Chart {
        paths: Vec<PathBuf>,
        to: PathBuf,
    },
}

pub(crate) fn parse(mut args: impl Iterator<Item = OsString>) -> Result<Command, Error> {
    let (mut words, mut limiter, mut to) = (Vec::new(), None, None);
    let mut options = true;
    while let Some(arg) = args.next() {
        let text = arg.to_string_lossy().into_owned();
        if !options || !text.starts_with('-') || text == "-" {
            words.push(arg);
            continue;
        }
        let (option, inline) = match text.split_once('=') {
            Some((option, value)) => (option, Some(OsString::from(value))),
            None => (&*text, None),
        };
        let mut value = || {
            let value = inline.clone().or_else(|| args.next());
            value.ok_or_else(|| format!("{option} needs a value"))
        };
        match option {
            "--help" | "-h" => return Ok(Command::Help),
            "--" => options = false,
            "--limiter" => limiter = Some(value()?.to_string_lossy().into_owned()),
            "--out" => to = Some(PathBuf::from(value()?)),
            _ => return Err(format!("there is no option {option}").into()),
        }
    }
    let mut words = words.into_iter();
    let command = words.next().ok_or("no command")?;
    let command = command.to_string_lossy().into_owned();
    let mut paths: Vec<PathBuf> = words.map(PathBuf::from).collect();
    if limiter.is_some() && command != "explain" {
        return Err(format!("--limiter is not for {command}").into());
    }
    if to.is_some() && command != "chart" {
        return Err(format!("--out is not for {command}").into());
    }
    let seq = match &*command {
        "explain" => {
            let last = paths.pop().ok_or("explain needs a file and a number")?;
            let text = last.to_string_lossy().into_owned();
            let bad = |_| format!("explain needs a caller's number at last, not {text:?}");
            text.parse().map_err(bad)?
        }
        "verify" | "report" | "csv" | "chart" => 0,
        "help" => return Ok(Command::Help),
        _ => return Err(format!("there is no command {command}").into()),
    };
    if paths.is_empty() {
        return Err(format!("{command} needs a file").into());
    }
    Ok(match &*command {
        "verify" => Command::Verify { paths },
        "report" => Command::Report { paths },
        "csv" => Command::Csv { paths },
        "explain" => Command::Explain {
            paths,
            seq,
            limiter,
        },
        _ => Command::Chart {
            paths,
            to: to.unwrap_or_else(|| PathBuf::from("audit.svg")),
        },
    })
}
