//! The files, and how far they are read.

use std::{
    fs,
    io::{self, IsTerminal as _},
    path::PathBuf,
};

use indicatif::{ProgressBar, ProgressStyle};
use tower_throttle::audit::journal;

use crate::Error;

/// Less is read before anybody gets impatient.
const LONG: u64 = 50_000_000;

/// One path stands for all files of its journal.
pub(crate) fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let [path] = paths else {
        return Ok(paths.to_vec());
    };
    let found = journal::files(path).map_err(|error| format!("{}: {error}", path.display()))?;
    if found.is_empty() {
        return Err(format!("{}: there is no such journal", path.display()).into());
    }
    Ok(found)
}

pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Over bytes, or over `lines` where the bytes are not told.
    pub(crate) fn new(files: &[PathBuf], lines: Option<u64>, what: &'static str) -> Self {
        let bytes = files
            .iter()
            .map(|file| fs::metadata(file).map_or(0, |file| file.len()));
        let bytes: u64 = bytes.sum();
        if bytes < LONG || !io::stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        let bar = ProgressBar::new(lines.unwrap_or(bytes));
        let template = match lines {
            Some(_) => "{msg} {bar:24} {percent}% of {len} lines, {eta} left",
            None => "{msg} {bar:24} {bytes} of {total_bytes}, {eta} left",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what);
        Self(bar)
    }

    pub(crate) fn at(&self, position: u64) {
        self.0.set_position(position);
    }
}

/// Leaves the terminal in order, also after a fault.
impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
