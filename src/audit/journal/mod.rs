//! A record in a file that shows whether it was changed. Needs the feature `journal`.
//!
//! [`Journal::open`] names the file, [`verify`] checks it, and [`Lines`] reads it.
//!
//! # The file
//!
//! JSON Lines, only ever added to:
//!
//! ```text
//! {"hash":"<64 hex digits>","body":{"n":17,"at":1500000000,"wall":"2026-11-30T15:20:23.000000000Z","limiter":"a",<kind>:{..}}}
//! ```
//!
//! `hash` is SHA-256 over the 32 bytes of the hash of the line before and the bytes of `body` as they stand there; the first line of all
//! follows 32 zero bytes. So no line can be changed, left out, doubled or moved without all hashes after it being wrong. What the chain
//! cannot show by itself is [how it ended](#keep-the-last-hash-elsewhere).
//!
//! `n` counts the lines, from 0, over all files. `at` is the limiter's own time in nanoseconds; order and lengths of time are to be
//! taken from `n` and `at`. `wall` is the day's clock, which people and machines set back and forth. Lines of the journal itself have
//! no `at` and no `limiter`; they are:
//!
//! | kind | says |
//! |---|---|
//! | `file` | first line of each file: `format` (1), `version` of this crate, `previous` file, `chain`: the hash it continues, `torn` |
//! | `start` | the journal was opened, by this `version`; `at` begins anew |
//! | `torn` | the `bytes` before this line, up to its newline, are a line that was not finished; `hash` is SHA-256 over them |
//! | `loss` | so many `entries` are missing here |
//! | `end` | the journal was closed in good order |
//!
//! Those of a limiter are:
//!
//! | kind | says |
//! |---|---|
//! | `opened` | [`Opened`]: the limiter's configuration; its time begins at zero |
//! | `checkpoint` | all of its engine's state, every 10,000 steps: a journal without its oldest files can be replayed from here |
//! | `step` | [`Record`](crate::engine::Record): what its engine was told, what it decided, and how it looked then |
//! | `request` | [`Request`]: what the caller of this number sent |
//!
//! [`replay`] tells all steps to fresh engines, which must decide the same.
//!
//! When a file is full, the number of its first line is put into its name (`audit.jsonl` becomes `audit.00000000000000000017.jsonl`),
//! and a new one is begun that continues the chain. No file is ever written over. [`files`] lists them in order. Files that were compressed
//! since are not read: unpack them first ([`What::Compressed`]).
//!
//! # Keep the last hash elsewhere
//!
//! A chain has no key and no end of its own. Whoever can write the files can cut off the last lines, and what is left is a whole journal:
//! it looks like one that is still written, or whose process was killed. Or they can write all of it anew, with hashes that fit. Nobody can
//! see either from the files alone, but both are seen by whoever knows what the last hash was.
//!
//! So send [`Journal::last_hash`] to where whoever can write the journal cannot write: a log server, a ticket, a database of somebody else,
//! storage that keeps what it has. Do so when the journal is closed, and now and then before, after a [`flush`](Journal::flush): what came
//! after the last hash that was kept is not covered. Later compare it to [`Summary::hash`], or let the example `audit` do so:
//!
//! ```text
//! audit verify audit.jsonl --expect <64 hex digits>
//! ```
//!
//! That fails if the last line has another hash, and says whether the journal only went on after the hash was kept (then the line is there,
//! with what followed) or the line is not there.
//!
//! # What is not lost
//!
//! Entries wait in a queue of bounded length; one thread writes them, a millisecond later at most if the disk keeps up. A process that
//! is killed loses what is in the queue, and leaves at most one unfinished line, which the next start closes. When a write fails it is
//! counted ([`Journal::status`]), what was not written is kept, and it is tried again, after 10 ms first and 1 s at last; what becomes
//! of new requests meanwhile is for [`OnFailure`] to say. Where entries had to be dropped, a line says how many.
//! After a sync that failed, some systems forget what they could not write: then what was written since the last one that did not fail
//! may be missing after a loss of power, as the verification would show.
//!
//! # One writer
//!
//! A journal locks a file next to its own, `audit.jsonl.lock` for `audit.jsonl`, from [`build`](JournalBuilder::build) until it is closed
//! or its process ends, over all its files: a second journal on the same path, in this process or another, is refused as it opens it.
//! The lock's file is empty and stays there. Readers need no lock. Other programs do not heed it: before each write the file's length is
//! looked at, and if somebody else wrote to it, or moved it away, that is a failure to write. Do not let other programs rotate it.
//!
//! # Who can read it
//!
//! On Unix what the journal makes, its files and the lock's, is made readable and writable by its owner alone (mode 0600). The mode of a
//! file that is there is left as it is. To let a group read a journal, change the mode of those that are full.

mod body;
mod builder;
mod disk;
mod fault;
mod handle;
mod line;
mod names;
mod out;
mod packed;
mod parse;
mod queue;
mod reader;
mod replay;
#[cfg(test)]
mod tests;
mod wall;
mod writer;

pub(crate) use body::Body;
pub use body::{Opened, Request};
pub use builder::{JournalBuilder, OnFailure, Sync};
pub use fault::{Fault, Summary, What};
pub use handle::{Journal, JournalError, Status};
pub use names::files;
pub use reader::{Line, Lines, verify};
pub use replay::{Divergence, ReplayError, Replayed, replay};
