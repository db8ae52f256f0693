use std::{error, fmt, io, path::PathBuf};

/// What a journal that was read to its end is.
///
/// The chain proves that nothing between its two ends was changed. That the ends themselves are the right ones, nobody can see from the
/// file alone: [keep the last hash elsewhere](super#keep-the-last-hash-elsewhere).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// The files read.
    pub files: u64,
    /// The number of the first line; 0 if the journal was read from its beginning.
    pub first: u64,
    /// The lines read.
    pub lines: u64,
    /// The hash that the first line continues: zeros if the journal was read from its beginning.
    pub from: String,
    /// The hash of the last line, which depends on all before.
    pub hash: String,
    /// The last line says that the journal was closed in good order.
    pub closed: bool,
    /// So many bytes at the end of the last file are a line that was not finished.
    pub torn: Option<u64>,
    /// Unfinished lines before, which were closed by the next start or attempt.
    pub tears: u64,
    /// Entries of which the journal says that they are missing.
    pub lost: u64,
}

/// The first place where a journal is not as it was written.
#[derive(Debug)]
#[non_exhaustive]
pub struct Fault {
    /// The file.
    pub file: PathBuf,
    /// The line in the file, from 1.
    pub line: u64,
    /// Where the line begins in the file.
    pub byte: u64,
    /// What is wrong there.
    pub what: What,
}

/// What is wrong with a line.
#[derive(Debug)]
#[non_exhaustive]
pub enum What {
    /// Its hash is not that of the line before and its own body.
    Hash,
    /// Lines are missing, out of place or there twice.
    Number {
        /// The number it has.
        found: u64,
        /// The number that should have come.
        expected: u64,
    },
    /// It has not the form of a line.
    Format,
    /// A line was not finished, and what follows does not say so.
    Torn,
    /// A file before this one is missing.
    Missing {
        /// The file before, as its first line names it.
        previous: Option<String>,
    },
    /// The file does not continue the one before, or says it is the first when it is not.
    Chain,
    /// The file is compressed. Only plain files are read: unpack it first.
    Compressed {
        /// The program that unpacks it, as `gunzip`.
        with: &'static str,
    },
    /// It is longer than any that is written.
    TooLong,
    /// It could not be read.
    Io(io::Error),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            file, line, byte, ..
        } = self;
        write!(f, "{}, line {line} at byte {byte}: ", file.display())?;
        match &self.what {
            What::Hash => f.write_str("the hash does not fit the line before and this one"),
            What::Number { found, expected } => {
                write!(f, "it is number {found} where {expected} should come")
            }
            What::Format => f.write_str("not the form of a line"),
            What::Torn => f.write_str("an unfinished line that was not closed"),
            What::Missing {
                previous: Some(name),
            } => write!(f, "a file is missing before this one; the last is {name:?}"),
            What::Missing { previous: None } => f.write_str("a file is missing before this one"),
            What::Chain => f.write_str("the file does not continue the one before"),
            What::Compressed { with } => {
                write!(
                    f,
                    "the file is compressed, which is not read: {with} it first"
                )
            }
            What::TooLong => f.write_str("too long for a line"),
            What::Io(error) => write!(f, "cannot be read: {error}"),
        }
    }
}

impl error::Error for Fault {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match &self.what {
            What::Io(error) => Some(error),
            _ => None,
        }
    }
}
