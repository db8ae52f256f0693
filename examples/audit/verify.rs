//! `verify`: is each line as it was written, and each decision the one the engine makes.

use std::{io::Write, path::PathBuf};

use tower_throttle::audit::journal::{self, Lines, Summary};

use crate::{
    Error,
    source::{Progress, files},
    text::plain,
};

pub(crate) fn run(
    paths: &[PathBuf],
    expect: Option<&str>,
    out: &mut impl Write,
) -> Result<(), Error> {
    let files = files(paths)?;
    let progress = Progress::new(&files, None, "lines");
    let summary = journal::verify(&files, |bytes| progress.at(bytes))?;
    drop(progress);
    if summary.lines == 0 {
        let file = files
            .first()
            .map_or_else(String::new, |file| file.display().to_string());
        return Err(format!("{file}: there is no whole line in it").into());
    }
    writeln!(
        out,
        "{} lines in {} files, from number {}: their hashes follow each other, so none was changed, left out, doubled or moved by itself",
        summary.lines, summary.files, summary.first
    )?;
    if summary.first > 0 {
        writeln!(
            out,
            "it continues the hash {}, which belongs to a file before",
            summary.from
        )?;
    }
    let end = last_number(&summary);
    match expect {
        None => writeln!(out, "the last hash is {}", summary.hash)?,
        Some(hash) if hash == summary.hash => writeln!(
            out,
            "the last hash, of line number {end}, is the one expected: no line is missing at the end"
        )?,
        Some(hash) => return Err(unexpected(&files, hash, &summary).into()),
    }
    if summary.tears > 0 {
        let tears = summary.tears;
        writeln!(
            out,
            "{tears} unfinished lines, each closed by the next start as it says"
        )?;
    }
    let progress = Progress::new(&files, Some(summary.lines), "decisions");
    let (mut first, mut last, mut read) = (None, None, 0);
    let replayed = journal::replay(&files, |line| {
        read += 1;
        if read % 1_024 == 0 {
            progress.at(read);
        }
        if first.is_none() {
            first = Some(line.wall.clone());
        }
        last = Some(line.wall.clone());
    });
    drop(progress);
    if let (Some(first), Some(last)) = (first, last) {
        writeln!(
            out,
            "from {} to {} by the day's clock",
            plain(&first),
            plain(&last)
        )?;
    }
    let replayed = replayed?;
    writeln!(
        out,
        "{} steps told to fresh engines, which decided the same each time",
        replayed.steps
    )?;
    if let Some(bytes) = summary.torn {
        let file = files
            .last()
            .map_or_else(String::new, |file| file.display().to_string());
        return Err(format!(
            "{file}: the last {bytes} bytes, after line number {}, are a line that was not finished",
            end
        )
        .into());
    }
    if summary.closed {
        writeln!(out, "closed in good order")?;
    } else {
        writeln!(
            out,
            "not closed: it is still written, or its process was killed{}",
            match expect {
                Some(_) => "",
                None =>
                    "; no file can show that lines are missing at its very end, but --expect with a hash kept elsewhere can",
            }
        )?;
    }
    Ok(())
}

fn last_number(summary: &Summary) -> u64 {
    (summary.first.saturating_add(summary.lines)).saturating_sub(1)
}

/// Whether lines came after the expected last one, or it is not there.
fn unexpected(files: &[PathBuf], hash: &str, summary: &Summary) -> String {
    let file = files
        .last()
        .map_or_else(String::new, |file| file.display().to_string());
    let end = last_number(summary);
    let found = format!(
        "{file}: the last hash, of line number {end}, is {}, where {hash} is expected, ",
        summary.hash
    );
    let mut lines = Lines::open(files);
    while let Some(Ok(line)) = lines.next() {
        if lines.summary().hash == hash {
            return found
                + &format!(
                    "which is that of line number {}: the journal went on after it",
                    line.n
                );
        }
    }
    found + "which no line has: lines are missing at the end, or all was written anew"
}
