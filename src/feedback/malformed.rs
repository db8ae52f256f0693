//! Rate fields that could not be read.

/// A rate field that was passed over because its value could not be read. It carries no information: in particular it
/// is not a wait of zero. (Of [`Fault::AboveLimit`] a part is read.)
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Malformed {
    /// The field's name in lower case, cut at 64 bytes. The value is not kept.
    pub field: Box<str>,
    /// What is wrong with it.
    pub why: Fault,
}

/// What is wrong with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// Nothing but blanks.
    Empty,
    /// A number below zero where none can be.
    Negative,
    /// Neither a number nor another form of count.
    NotACount,
    /// Neither a number of seconds, nor a duration, nor an instant that can be placed on the time line.
    NotATime,
    /// A reset further away, or a window longer, than [`MAX_WINDOW`](super::MAX_WINDOW), so probably no such time at all.
    Implausible,
    /// More is left than the limit of the same budget, which bounds what is read. Of a limit of zero nothing can be left: then it
    /// is the limit that is not read.
    AboveLimit,
    /// A structured field (RFC 9651) with a syntax fault, which voids the whole field.
    Syntax,
    /// A structured field's member without a name or number it must have.
    Incomplete,
    /// Longer than the reader looks at.
    TooLong,
    /// More rate fields than the reader looks at; this one was not read.
    TooMany,
}

pub(super) const MAX_NAME: usize = 64;

impl Malformed {
    pub(super) fn new(field: &str, why: Fault) -> Self {
        Self {
            field: clip(field).into(),
            why,
        }
    }
}

/// At most the first [`MAX_NAME`] bytes of `text`, cut at a character.
pub(super) fn clip(text: &str) -> &str {
    let mut end = text.len().min(MAX_NAME);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}
