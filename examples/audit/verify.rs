//! `verify`: is each line as it was written, and each decision the one the engine makes.

use std::{io::Write, path::PathBuf};

use tower_throttle::audit::journal;

use crate::{
    Error,
    source::{Progress, files},
    text::plain,
};

pub(crate) fn run(paths: &[PathBuf], out: &mut impl Write) -> Result<(), Error> {
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
    writeln!(out, "the last hash is {}", summary.hash)?;
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
            summary.first.saturating_add(summary.lines).saturating_sub(1)
        )
        .into());
    }
    if summary.closed {
        writeln!(out, "closed in good order")?;
    } else {
        writeln!(
            out,
            "not closed: it is still written, or its process was killed; no file can show that lines are missing at its very end"
        )?;
    }
    Ok(())
}
