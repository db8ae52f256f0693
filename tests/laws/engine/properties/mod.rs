//! What holds for whatever a server sends and whatever callers do, as plain functions that panic where it does not.
//!
//! Each takes bytes, as fuzzers make them, or the plain values that these bytes stand for. The fuzz targets in `tests/fuzz` and
//! the tests beside this module run the same code.

pub(crate) mod block;
pub(crate) mod bytes;
pub(crate) mod reader;
pub(crate) mod restore;
pub(crate) mod trace;

use block::Block;
use bytes::Bytes;

/// Reads a header block and checks what was read.
pub(crate) fn reader(data: &[u8]) {
    reader::check(&Block::parse(Bytes::new(data)));
}

/// Drives an engine with the answers that a reader reads.
pub(crate) fn answers(data: &[u8]) {
    let (setup, ops) = trace::parse(Bytes::new(data));
    trace::check(&setup, &ops);
}

/// Writes an engine's state, changes something in it, and goes on from that.
pub(crate) fn restore(data: &[u8]) {
    restore::check(Bytes::new(data));
}
