use std::{collections::HashMap, error, fmt, path::Path};

use super::{
    body::Opened,
    fault::{Fault, Summary},
    reader::{Line, Lines},
};
use crate::engine::{After, Decision, Engine, Record, Time, Unsound};

/// Tells fresh engines all that was recorded, and compares each decision, and how each engine looks after it, with what was recorded.
///
/// The files are those of a journal in order; see [`files`](super::files). Where the oldest are missing, what comes before the first
/// checkpoint of a limiter (there is one every 10,000 steps) is only verified. A checkpoint must be as the engine is then.
///
/// The chain has no key, so whoever can write the files can make a chain that holds. Steps made by hand are found, as no engine decides
/// so. A checkpoint from which a limiter is replayed is found if it is a state no engine comes into; one made with more care is a
/// different beginning, and found as soon as the steps after it do not follow from it. Nothing that is in the files makes this panic.
///
/// # Errors
///
/// The first place at which the files are not as they were written, an engine decides otherwise, or entries are missing.
pub fn replay<P: AsRef<Path>>(
    files: impl IntoIterator<Item = P>,
    mut progress: impl FnMut(&Line),
) -> Result<Replayed, ReplayError> {
    let mut lines = Lines::open(files);
    let mut engines: HashMap<String, Engine> = HashMap::new();
    let (mut steps, mut skipped) = (0, 0);
    // Without its beginning a journal can be replayed from the first checkpoint of each limiter.
    let mut whole = false;
    for line in lines.by_ref() {
        let line = line.map_err(ReplayError::Fault)?;
        progress(&line);
        let at = line.n;
        let malformed = |_| ReplayError::Malformed(at);
        match (&*line.kind, &line.limiter) {
            // Another process, with limiters of its own.
            ("start", _) => {
                engines.clear();
                whole = true;
            }
            ("loss", _) => return Err(ReplayError::Loss(at)),
            ("opened", Some(limiter)) => {
                let opened: Opened = serde_json::from_value(line.value).map_err(malformed)?;
                let engine = Engine::new(opened.config, Time::ZERO)
                    .map_err(|_| ReplayError::Malformed(at))?;
                engines.insert(limiter.clone(), engine);
            }
            ("checkpoint", Some(limiter)) => match engines.get(limiter) {
                Some(engine) => {
                    let replayed = serde_json::to_value(engine).map_err(malformed)?;
                    if replayed != line.value {
                        return Err(ReplayError::Checkpoint(at, limiter.clone()));
                    }
                }
                None => {
                    let engine: Engine = serde_json::from_value(line.value).map_err(malformed)?;
                    restorable(&engine, line.at)
                        .map_err(|why| ReplayError::Unsound(at, limiter.clone(), why))?;
                    engines.insert(limiter.clone(), engine);
                }
            },
            ("step", Some(limiter)) => {
                let record: Record = serde_json::from_value(line.value).map_err(malformed)?;
                let Some(engine) = engines.get_mut(limiter) else {
                    if whole {
                        return Err(ReplayError::Unopened(at, limiter.clone()));
                    }
                    skipped += 1;
                    continue;
                };
                let now = Time::from_nanos(line.at.ok_or(ReplayError::Malformed(at))?);
                steps += 1;
                if let Err(other) = record.replay(now, engine) {
                    let (decision, after) = *other;
                    return Err(ReplayError::Diverged(Box::new(Divergence {
                        n: at,
                        limiter: limiter.clone(),
                        recorded: record,
                        decision,
                        after,
                    })));
                }
            }
            _ => {}
        }
    }
    Ok(Replayed {
        steps,
        skipped,
        summary: lines.summary().clone(),
    })
}

/// Whether a limiter can be replayed from this engine, of a line of that time.
fn restorable(engine: &Engine, at: Option<u64>) -> Result<(), Unsound> {
    engine.validate()?;
    if at == Some(engine.now().as_nanos()) {
        Ok(())
    } else {
        Err(Unsound::new("it was told the time of its line last"))
    }
}

/// What was replayed, without any difference.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Replayed {
    /// Steps of all limiters.
    pub steps: u64,
    /// Steps before the first checkpoint of their limiter, where the files do not go back to its beginning. They are verified only.
    pub skipped: u64,
    /// What was found about the files.
    pub summary: Summary,
}

/// Why a journal could not be replayed. The number is that of the line.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReplayError {
    /// The files are not as they were written.
    Fault(Fault),
    /// An engine decided otherwise.
    Diverged(Box<Divergence>),
    /// Entries are missing from here, as the journal itself says.
    Loss(u64),
    /// At a checkpoint an engine is not as it is recorded, though it decided the same so far.
    Checkpoint(u64, String),
    /// A checkpoint is a state that no engine comes into.
    Unsound(u64, String, Unsound),
    /// A step of a limiter of this name that was never opened.
    Unopened(u64, String),
    /// Not what this version writes.
    Malformed(u64),
}

/// The first decision that is another one.
#[derive(Debug)]
#[non_exhaustive]
pub struct Divergence {
    /// The number of the line.
    pub n: u64,
    /// The limiter.
    pub limiter: String,
    /// What was recorded.
    pub recorded: Record,
    /// What was decided now.
    pub decision: Decision,
    /// How the engine looked then.
    pub after: After,
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(fault) => fault.fmt(f),
            Self::Diverged(divergence) => write!(
                f,
                "line {}: limiter {:?} decided {:?} on {:?}, but {:?} is recorded",
                divergence.n,
                divergence.limiter,
                divergence.decision,
                divergence.recorded.step,
                divergence.recorded.decision
            ),
            Self::Loss(n) => write!(f, "line {n}: entries are missing here"),
            Self::Unopened(n, limiter) => {
                write!(f, "line {n}: limiter {limiter:?} was never opened")
            }
            Self::Checkpoint(n, limiter) => {
                write!(f, "line {n}: limiter {limiter:?} is not as it was recorded")
            }
            Self::Unsound(n, limiter, why) => {
                write!(f, "line {n}: checkpoint of limiter {limiter:?}: {why}")
            }
            Self::Malformed(n) => write!(f, "line {n}: not what this version writes"),
        }
    }
}

impl error::Error for ReplayError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::Fault(fault) => Some(fault),
            Self::Unsound(_, _, why) => Some(why),
            _ => None,
        }
    }
}
