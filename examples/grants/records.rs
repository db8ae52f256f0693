//! Writes the records, and checks that none came twice.

use std::{
    collections::HashSet,
    fs::File,
    io::{BufWriter, Write as _},
    path::{Path, PathBuf},
};

use serde_json::Value;
use tokio::{
    sync::mpsc,
    task::{JoinHandle, spawn_blocking},
};

use crate::Error;

/// Pages that may wait for the disk. When it is slower than the server, the tasks wait for it.
const BACKLOG: usize = 256;

#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) path: PathBuf,
    /// Different ones.
    pub(crate) records: usize,
    pub(crate) repeated: usize,
}

/// Where records are sent, and the task that writes them; it ends when all senders are gone.
type Writer = (mpsc::Sender<Vec<Value>>, JoinHandle<Result<Written, Error>>);

pub(crate) fn write_to(path: PathBuf) -> Result<Writer, Error> {
    let file = create(&path)?;
    let (sender, pages) = mpsc::channel(BACKLOG);
    // Writing to a disk blocks, and the runtime's threads are there for the tasks.
    let writer = spawn_blocking(move || {
        write(pages, file, &path).map_err(|error| format!("{}: {error}", path.display()).into())
    });
    Ok((sender, writer))
}

/// Creates a file and the directories above it.
pub(crate) fn create(path: &Path) -> Result<File, Error> {
    path.parent()
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| File::create(path))
        .map_err(|error| format!("cannot create {}: {error}", path.display()).into())
}

fn write(mut pages: mpsc::Receiver<Vec<Value>>, file: File, path: &Path) -> Result<Written, Error> {
    let mut file = BufWriter::new(file);
    let mut seen = HashSet::new();
    let mut repeated = 0;
    while let Some(page) = pages.blocking_recv() {
        for record in page {
            writeln!(file, "{record}")?;
            let id = match record.get("id") {
                Some(Value::String(id)) => id.clone(),
                Some(Value::Number(id)) => id.to_string(),
                _ => return Err("a record has no id".into()),
            };
            repeated += usize::from(!seen.insert(id));
        }
    }
    file.flush()?;
    Ok(Written {
        path: path.to_owned(),
        records: seen.len(),
        repeated,
    })
}
