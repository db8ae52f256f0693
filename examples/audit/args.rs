//! The command line.

use std::{ffi::OsString, path::PathBuf};

use crate::Error;

pub(crate) const HELP: &str = "\
Checks and explains the journals of limiters.

usage: audit COMMAND FILE.. [OPTIONS]

  verify FILE..       is each line as it was written, and each decision the one the engine makes;
                      --expect HASH if the last hash was kept elsewhere: are there no lines missing at the end
  report FILE..       requests, waits, refusals, pauses, and the highest use of each quota in any window
  explain SEQ FILE..  what became of the caller of this number, and why; --limiter NAME if several have one;
                      the number can also come last
  csv FILE..          one row a request, for a spreadsheet
  chart FILE..        a picture; --out FILE names it (default audit.svg)

One FILE stands for all files of its journal; several are read as they are given, the oldest first. Compressed files are
not read: gunzip them first.
";

#[derive(Debug)]
pub(crate) enum Command {
    Help,
    Verify {
        paths: Vec<PathBuf>,
        /// The hash that the last line should have.
        expect: Option<String>,
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
    let (mut words, mut limiter, mut to, mut expect) = (Vec::new(), None, None, None);
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
            "--expect" => expect = Some(hash(&value()?.to_string_lossy())?),
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
    if expect.is_some() && command != "verify" {
        return Err(format!("--expect is not for {command}").into());
    }
    if to.is_some() && command != "chart" {
        return Err(format!("--out is not for {command}").into());
    }
    let seq = match &*command {
        "explain" => take_number(&mut paths)?,
        "verify" | "report" | "csv" | "chart" => 0,
        "help" => return Ok(Command::Help),
        _ => return Err(format!("there is no command {command}").into()),
    };
    if paths.is_empty() {
        return Err(format!("{command} needs a file").into());
    }
    Ok(match &*command {
        "verify" => Command::Verify { paths, expect },
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

/// The caller's number, which is the last word or the first. A file whose name is a number can be told from it by its folder: `./5`.
fn take_number(paths: &mut Vec<PathBuf>) -> Result<u64, Error> {
    for index in [paths.len().saturating_sub(1), 0] {
        let number = paths
            .get(index)
            .and_then(|path| path.to_str()?.parse().ok());
        if let Some(number) = number {
            paths.remove(index);
            return Ok(number);
        }
    }
    Err("explain needs a file, and a caller's number before or after it".into())
}

/// As the journal writes it, in whatever case it was kept.
fn hash(text: &str) -> Result<String, Error> {
    let text = text.trim().to_ascii_lowercase();
    if text.len() == 64 && text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        Ok(text)
    } else {
        Err("--expect needs a hash of 64 hex digits".into())
    }
}
