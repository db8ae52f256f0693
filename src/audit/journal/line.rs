//! One line: `{"hash":"<64 hex digits>","body":<object>}`, where the hash is over the hash before and the bytes of the body.

use std::{io, str};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::wall::Wall;

/// The version of the format, in the first line of each file.
pub(super) const FORMAT: u32 = 1;
/// Longer lines are neither written nor read.
pub(super) const LONGEST: usize = 64 << 20;

pub(super) const OPENING: &[u8] = br#"{"hash":""#;
const MIDDLE: &[u8] = br#"","body":"#;
const DIGITS: usize = 64;
const BODY: usize = OPENING.len() + DIGITS + MIDDLE.len();

/// What a line is chained to the next by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Hash([u8; 32]);

impl Hash {
    /// What the first line of the first file is chained to.
    pub(super) const ZERO: Self = Self([0; 32]);

    pub(super) fn after(self, body: &[u8]) -> Self {
        let mut digest = Sha256::new();
        digest.update(self.0);
        digest.update(body);
        Self(digest.finalize().into())
    }

    /// Only small letters: a line has one spelling.
    pub(super) fn from_hex(text: &[u8]) -> Option<Self> {
        let mut hash = [0; 32];
        if text.len() != DIGITS {
            return None;
        }
        for (byte, pair) in hash.iter_mut().zip(text.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Self(hash))
    }

    fn hex(self) -> [u8; DIGITS] {
        let mut text = [0; DIGITS];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            pair[0] = b"0123456789abcdef"[usize::from(byte >> 4)];
            pair[1] = b"0123456789abcdef"[usize::from(byte & 15)];
        }
        text
    }

    pub(super) fn text(self) -> String {
        String::from_utf8_lossy(&self.hex()).into_owned()
    }
}

fn digit(letter: u8) -> Option<u8> {
    match letter {
        b'0'..=b'9' => Some(letter - b'0'),
        b'a'..=b'f' => Some(letter - b'a' + 10),
        _ => None,
    }
}

/// The kinds of line that the journal writes by itself.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Own {
    /// The first line of a file.
    File(Header),
    /// The journal was opened again.
    Start { version: &'static str },
    /// What is before this line is a line that was not finished.
    Torn(Tear),
    /// So many entries are missing here.
    Loss { entries: u64 },
    /// The journal was closed in good order.
    End {},
}

/// What the first line of a file says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) format: u32,
    pub(super) version: String,
    /// The file before this one, if there is one.
    pub(super) previous: Option<String>,
    /// The hash of the last line before this one.
    pub(super) chain: String,
    /// What is before this line is an earlier attempt at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) torn: Option<Tear>,
}

/// The bytes from the end of the last whole line to the newline before the line that says this: no line, but not to be changed either.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tear {
    pub(super) bytes: u64,
    /// Of these bytes alone.
    pub(super) hash: String,
}

/// Reads the bytes of one, in pieces.
#[derive(Debug, Clone, Default)]
pub(super) struct TearReader {
    bytes: u64,
    digest: Sha256,
}

impl TearReader {
    pub(super) fn read(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        self.digest.update(piece);
    }

    pub(super) fn tear(self) -> Tear {
        Tear {
            bytes: self.bytes,
            hash: Hash(self.digest.finalize().into()).text(),
        }
    }
}

/// The body of a line.
#[derive(Serialize)]
pub(super) struct Record<'a, K> {
    pub(super) n: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) at: Option<u64>,
    pub(super) wall: Wall,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limiter: Option<&'a str>,
    #[serde(flatten)]
    pub(super) kind: K,
}

/// Adds a line and gives its hash; adds nothing if there is an error.
pub(super) fn write<K: Serialize>(
    to: &mut Vec<u8>,
    chain: Hash,
    record: &Record<'_, K>,
) -> io::Result<Hash> {
    let start = to.len();
    to.extend_from_slice(OPENING);
    to.extend_from_slice(&[b'0'; DIGITS]);
    to.extend_from_slice(MIDDLE);
    if let Err(error) = serde_json::to_writer(&mut *to, record) {
        to.truncate(start);
        return Err(error.into());
    }
    if to.len() - start >= LONGEST - 2 {
        to.truncate(start);
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a line would be too long",
        ));
    }
    let hash = chain.after(&to[start + BODY..]);
    to[start + OPENING.len()..][..DIGITS].copy_from_slice(&hash.hex());
    to.extend_from_slice(b"}\n");
    Ok(hash)
}

/// Hash and body of a line without its newline, if it has the form of one.
pub(super) fn split(line: &[u8]) -> Option<(Hash, &[u8])> {
    let rest = line.strip_prefix(OPENING)?;
    let (hash, rest) = rest.split_at_checked(DIGITS)?;
    let body = rest.strip_prefix(MIDDLE)?.strip_suffix(b"}")?;
    str::from_utf8(body).ok()?;
    Some((Hash::from_hex(hash)?, body))
}
