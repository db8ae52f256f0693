//! The audit trail: every decision of the throttle in a journal, which is verified and replayed at the end.
//!
//! Each line of the journal is chained to the one before by a hash, and holds what the throttle was told, what it decided and why; so
//! the file shows by itself that nothing was changed or left out, and that the throttle can have decided nothing else. A run is added to
//! those before it.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use tower_throttle::{
    audit::journal::{self, Journal},
    engine::{Decision, Record},
};

use crate::Error;

/// How long the end of the run waits for the disk.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct Trail {
    journal: Journal,
    path: PathBuf,
}

/// What the journal holds of this run, as read back from it.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) path: PathBuf,
    /// Requests that were recorded as sent.
    pub(crate) sent: u64,
    /// How long each request stood in line, the shortest first.
    pub(crate) waits: Vec<Duration>,
    /// Entries that are missing in the file, which it says itself.
    pub(crate) lost: u64,
    /// Decisions of all runs that were made again, and came out the same.
    pub(crate) replayed: u64,
}

impl Trail {
    pub(crate) fn start(path: &Path) -> Result<Self, Error> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let journal = Journal::open(path)
            .rotate_at_bytes(100 << 20)
            .build()
            .map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self {
            journal,
            path: path.to_owned(),
        })
    }

    pub(crate) const fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Writes what is left, and verifies and replays everything. All requests must have ended.
    pub(crate) fn finish(self) -> Result<Contents, Error> {
        self.journal.close(PATIENCE)?;
        let (mut sent, mut waits) = (0, Vec::new());
        let files = journal::files(&self.path)?;
        let replayed = journal::replay(files, |line| match &*line.kind {
            // What was before is another run's.
            "start" => {
                sent = 0;
                waits.clear();
            }
            "request" => sent += 1,
            "step" => {
                let record = serde_json::from_value::<Record>(line.value.clone());
                if let Ok(Decision::Sent(leave)) = record.map(|record| record.decision) {
                    waits.push(leave.waited);
                }
            }
            _ => {}
        })?;
        waits.sort_unstable();
        Ok(Contents {
            path: self.path,
            sent,
            waits,
            lost: self.journal.status().lost,
            replayed: replayed.steps,
        })
    }
}
