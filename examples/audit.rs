//! What an auditor runs over the journals of limiters.
//!
//! ```text
//! cargo run --release --features journal --example audit -- verify audit.jsonl
//! cargo run --release --features journal --example audit -- report audit.jsonl
//! ```
//!
//! `--help` lists the commands. Results go to stdout, progress and what is wrong to stderr. The exit code is 0 if all is right, 1 if the
//! files are not, and 2 if the command line is not.

#[path = "audit/args.rs"]
mod args;
#[path = "audit/chart.rs"]
mod chart;
#[path = "audit/csv.rs"]
mod csv;
#[path = "audit/explain.rs"]
mod explain;
#[path = "audit/follow.rs"]
mod follow;
#[path = "audit/histogram.rs"]
mod histogram;
#[path = "audit/pauses.rs"]
mod pauses;
#[path = "audit/report.rs"]
mod report;
#[path = "audit/source.rs"]
mod source;
#[cfg(test)]
#[path = "audit/tests.rs"]
mod tests;
#[path = "audit/text.rs"]
mod text;
#[path = "audit/verify.rs"]
mod verify;
#[path = "audit/windows.rs"]
mod windows;

use std::{
    io::{self, BufWriter, Write},
    process::ExitCode,
};

use args::Command;

type Error = Box<dyn std::error::Error + Send + Sync>;

fn run(command: &Command, out: &mut impl Write) -> Result<(), Error> {
    match command {
        Command::Help => out.write_all(args::HELP.as_bytes())?,
        Command::Verify { paths, expect } => verify::run(paths, expect.as_deref(), out)?,
        Command::Report { paths } => report::run(paths, out)?,
        Command::Explain {
            paths,
            seq,
            limiter,
        } => explain::run(paths, *seq, limiter.as_deref(), out)?,
        Command::Csv { paths } => csv::run(paths, out)?,
        Command::Chart { paths, to } => chart::run(paths, to, out)?,
    }
    Ok(())
}

fn main() -> ExitCode {
    let (message, code) = match args::parse(std::env::args_os().skip(1)) {
        Ok(command) => {
            let mut out = BufWriter::new(io::stdout().lock());
            let done = run(&command, &mut out);
            // What was found before a fault is told before it.
            let flushed = out.flush();
            match done.and(flushed.map_err(Error::from)) {
                Ok(()) => return ExitCode::SUCCESS,
                // The reader has gone away: `head` has seen enough.
                Err(error) if gone(&error) => return ExitCode::FAILURE,
                Err(error) => (error.to_string(), 1),
            }
        }
        Err(error) => (format!("{error}; see --help"), 2),
    };
    // Nothing is left to be done if even this cannot be written.
    let _ = writeln!(io::stderr(), "audit: {}", text::plain(&message));
    ExitCode::from(code)
}

fn gone(error: &Error) -> bool {
    (error.downcast_ref::<io::Error>())
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
