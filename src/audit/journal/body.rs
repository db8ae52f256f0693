//! What the limiter tells the journal.

use serde::Serialize;

/// One entry's content: the key of the line that names its kind, and what is under it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Body {
    /// Anything.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the limiter's entries come next")
    )]
    Note(serde_json::Value),
}
