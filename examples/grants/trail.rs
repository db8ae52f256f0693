//! The audit trail: every decision of the throttle, as JSON lines in a file.
//!
//! The library emits `tracing` events and knows nothing of files. What is done with them is up to the application, and here it must
//! not make a task wait for a disk: an event is formatted where it happens, and a thread writes it.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufRead as _, BufReader, BufWriter, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use serde::Deserialize;
use tower_throttle::audit;
use tracing::Level;
use tracing_subscriber::{
    Layer as _, filter::Targets, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

use crate::{Error, records::create};

/// Events that may wait for the disk: a minute of them at a hundred requests a second.
const BACKLOG: usize = 16_384;

#[derive(Debug)]
pub(crate) struct Trail {
    queue: Queue,
    writer: JoinHandle<io::Result<()>>,
    path: PathBuf,
}

/// What the file holds, as read back from it.
#[derive(Debug)]
pub(crate) struct Contents {
    pub(crate) path: PathBuf,
    /// How many there are of each event.
    pub(crate) events: BTreeMap<String, u64>,
    /// How long each request stood in line, the shortest first.
    pub(crate) waits: Vec<Duration>,
    /// Events that came while the backlog was full. They are missing in the file, and that is said.
    pub(crate) lost: u64,
}

/// The way to the writing thread. `None` is the end.
#[derive(Debug, Clone)]
struct Queue {
    sender: SyncSender<Option<Vec<u8>>>,
    lost: Arc<AtomicU64>,
}

impl Trail {
    /// From now on all audit events of this process go to the file.
    pub(crate) fn start(path: &Path) -> Result<Self, Error> {
        let file = create(path)?;
        let (sender, lines) = sync_channel(BACKLOG);
        let queue = Queue {
            sender,
            lost: Arc::default(),
        };
        let writer = thread::Builder::new()
            .name("audit".into())
            .spawn(move || write(&lines, file))?;
        let source = queue.clone();
        let layer = fmt::layer()
            .json()
            .flatten_event(true)
            .with_writer(move || source.clone())
            .with_filter(Targets::new().with_target(audit::TARGET, Level::INFO));
        tracing_subscriber::registry().with(layer).try_init()?;
        let path = path.to_owned();
        Ok(Self {
            queue,
            writer,
            path,
        })
    }

    /// Writes what is left and reads everything back. All requests must have ended.
    pub(crate) fn finish(self) -> Result<Contents, Error> {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", self.path.display());
        // If this cannot be sent the writer has failed, and says why.
        let _ = self.queue.sender.send(None);
        match self.writer.join() {
            Ok(written) => written.map_err(|error| failed(&error))?,
            Err(_) => return Err(failed(&"the writer panicked").into()),
        }
        let (events, waits) = read(&self.path).map_err(|error| failed(&error))?;
        Ok(Contents {
            path: self.path,
            events,
            waits,
            lost: self.queue.lost.load(Ordering::Relaxed),
        })
    }
}

impl Contents {
    pub(crate) fn count(&self, event: &str) -> u64 {
        self.events.get(event).copied().unwrap_or(0)
    }
}

/// The subscriber writes each event in one piece.
impl Write for Queue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match self.sender.try_send(Some(line.to_vec())) {
            Ok(()) => {}
            // The task that decided something must not wait, so the event is given up; but it is counted.
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write(lines: &Receiver<Option<Vec<u8>>>, file: File) -> io::Result<()> {
    let mut file = BufWriter::new(file);
    while let Ok(Some(line)) = lines.recv() {
        file.write_all(&line)?;
    }
    file.flush()
}

fn read(path: &Path) -> Result<(BTreeMap<String, u64>, Vec<Duration>), Error> {
    #[derive(Deserialize)]
    struct Line {
        event: String,
        waited_us: Option<u64>,
    }
    let mut events = BTreeMap::new();
    let mut waits = Vec::new();
    for line in BufReader::new(File::open(path)?).lines() {
        let line: Line = serde_json::from_str(&line?)?;
        if let ("sent", Some(waited)) = (&*line.event, line.waited_us) {
            waits.push(Duration::from_micros(waited));
        }
        *events.entry(line.event).or_default() += 1;
    }
    waits.sort_unstable();
    Ok((events, waits))
}
