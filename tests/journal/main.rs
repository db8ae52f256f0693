//! The journal as its users see it: files, what opening does with them, and the reader on anything at all.
#![allow(missing_docs, clippy::unwrap_used)]

mod files;
mod folder;
mod lock;
mod reader;
mod replay;

pub(crate) use folder::{Folder, LONG};
