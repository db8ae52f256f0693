//! What the limiter tells the journal.

use serde::{Deserialize, Serialize};

use crate::engine::{Config, Engine, Record};

/// One entry's content: the key of the line that names its kind, and what is under it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Body {
    /// A limiter begins to be recorded.
    Opened(Box<Opened>),
    /// How its engine is: what comes later can be replayed from here.
    Checkpoint(Box<Engine>),
    /// A call of its engine.
    Step(Box<Record>),
    /// What the caller of this number sent.
    Request(Box<Request>),
    /// Anything.
    #[cfg(test)]
    Note(serde_json::Value),
}

/// What a limiter was made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Opened {
    /// The names of its quotas, in the order of the configuration.
    pub quotas: Vec<String>,
    /// Everything its decisions depend on.
    pub config: Config,
}

/// A request, named as in the audit events: no query, no header's value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Request {
    /// The caller's number.
    pub seq: u64,
    /// The method.
    pub method: String,
    /// The scheme.
    pub scheme: String,
    /// The host.
    pub host: String,
    /// The port, if the request names one.
    pub port: Option<u16>,
    /// The path, without the query.
    pub path: String,
}
