//! Reading a journal, which proves on the way that it is whole.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use super::{
    fault::{Fault, Summary, What},
    line::{FORMAT, Hash, Header, LONGEST, OPENING, Tear, TearReader, split},
    packed::unpacker,
    parse::Parsed,
};

/// How many bytes are read between two reports of progress.
const STRIDE: u64 = 1 << 20;
const BUFFER: usize = 1 << 16;

/// Reads the files in the order given, the oldest first (as [`files`](super::files) lists them), and checks every line. `progress` is
/// called about once for each MiB, and at the end, with the number of bytes read so far.
///
/// The first file may be one from the middle of a journal; the [`Summary`] says what it continues. Memory is bounded by the longest line.
///
/// # Errors
///
/// The first place where a file is not as it was written. A line that was not finished is no fault if the next one says so, or if it is
/// at the end of the last file: then it is in the summary.
pub fn verify<P: AsRef<Path>>(
    files: impl IntoIterator<Item = P>,
    mut progress: impl FnMut(u64),
) -> Result<Summary, Fault> {
    let mut lines = Lines::open(files);
    let mut told = 0;
    while lines.advance::<IgnoredAny>()?.is_some() {
        if lines.bytes - told >= STRIDE {
            told = lines.bytes;
            progress(told);
        }
    }
    progress(lines.bytes);
    Ok(lines.summary)
}

/// A line of a journal.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Line {
    /// Its number, which counts on from file to file.
    pub n: u64,
    /// When it was, in nanoseconds of the limiter's clock since it was first used; none for what the journal says by itself.
    pub at: Option<u64>,
    /// When it was by the day's clock, which may have been set meanwhile, in RFC 3339.
    pub wall: String,
    /// The limiter's name.
    pub limiter: Option<String>,
    /// What kind of line it is. The journal's own are `file`, `start`, `torn`, `loss` and `end`.
    pub kind: String,
    /// What it says.
    pub value: Value,
}

/// The lines of a journal, each checked before it is given out.
///
/// After a [`Fault`] there are no more. Whether the last line is torn or the journal was closed is in the [`summary`](Self::summary)
/// afterwards.
#[derive(Debug)]
pub struct Lines {
    files: VecDeque<PathBuf>,
    source: Option<Source>,
    line: Vec<u8>,
    /// None before the first line.
    chain: Option<Hash>,
    next: u64,
    /// Where lines began that have not the form of one, which only the next line can explain.
    torn: Option<(Place, TearReader)>,
    tail: Tail,
    summary: Summary,
    bytes: u64,
    over: bool,
}

/// How the last file ends.
#[derive(Debug, Clone, Default)]
pub(super) struct Tail {
    /// Where the last whole line ends.
    pub(super) good: u64,
    pub(super) len: u64,
    /// The last byte is a newline, or there is none.
    pub(super) newline: bool,
    /// The wall time of its first line, if there is one.
    pub(super) began: Option<String>,
    /// The number of its first line.
    pub(super) first: u64,
}

#[derive(Debug)]
struct Source {
    file: PathBuf,
    reader: BufReader<File>,
    /// Where the next line begins.
    place: Place,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    line: u64,
    byte: u64,
}

enum Verdict<V> {
    Good(Hash, Parsed<V>, Own),
    Malformed,
    Wrong(What),
}

/// What the reader must know about the journal's own lines.
enum Own {
    File { torn: Option<Tear> },
    Torn(Tear),
    Loss { entries: u64 },
    End,
    Other,
}

impl Lines {
    /// Reads the files in the order given, the oldest first.
    pub fn open<P: AsRef<Path>>(files: impl IntoIterator<Item = P>) -> Self {
        let files = files.into_iter().map(|file| file.as_ref().to_owned());
        Self {
            files: files.collect(),
            source: None,
            line: Vec::new(),
            chain: None,
            next: 0,
            torn: None,
            tail: Tail::default(),
            summary: Summary {
                from: Hash::ZERO.text(),
                hash: Hash::ZERO.text(),
                ..Summary::default()
            },
            bytes: 0,
            over: false,
        }
    }

    /// What was read so far.
    #[must_use]
    pub const fn summary(&self) -> &Summary {
        &self.summary
    }

    /// How many bytes were read so far.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads to the end, to go on from there.
    pub(super) fn finish(mut self) -> Result<(Tail, Summary, Option<Hash>), Fault> {
        while self.advance::<IgnoredAny>()?.is_some() {}
        Ok((self.tail, self.summary, self.chain))
    }

    fn advance<V: DeserializeOwned>(&mut self) -> Result<Option<Parsed<V>>, Fault> {
        let next = if self.over { Ok(None) } else { self.search() };
        self.over = !matches!(next, Ok(Some(_)));
        next
    }

    fn search<V: DeserializeOwned>(&mut self) -> Result<Option<Parsed<V>>, Fault> {
        loop {
            if self.source.is_none() && !self.open_next()? {
                return Ok(None);
            }
            let Some((place, newline)) = self.read()? else {
                self.end_file()?;
                continue;
            };
            match self.judge::<V>() {
                Verdict::Good(hash, parsed, own) => {
                    self.explain(place, &own)?;
                    if !newline && !self.files.is_empty() {
                        return Err(self.fault(place, What::Torn));
                    }
                    self.take(hash, &parsed, &own);
                    return Ok(Some(parsed));
                }
                Verdict::Malformed => {
                    if self.tail.began.is_none() && !begins_alike(&self.line) {
                        let place = self.torn.as_ref().map_or(place, |(torn, _)| *torn);
                        let what = match unpacker(&self.line) {
                            Some(with) if place.byte == 0 => What::Compressed { with },
                            _ => What::Format,
                        };
                        return Err(self.fault(place, what));
                    }
                    match &mut self.torn {
                        None => {
                            let (_, tear) = self.torn.insert((place, TearReader::default()));
                            tear.read(&self.line);
                        }
                        Some((_, tear)) => {
                            tear.read(b"\n");
                            tear.read(&self.line);
                        }
                    }
                }
                Verdict::Wrong(what) => {
                    return Err(match self.torn {
                        Some((torn, _)) => self.fault(torn, What::Format),
                        None => self.fault(place, what),
                    });
                }
            }
        }
    }

    fn open_next(&mut self) -> Result<bool, Fault> {
        let Some(file) = self.files.pop_front() else {
            return Ok(false);
        };
        let place = Place { line: 1, byte: 0 };
        match File::open(&file) {
            Ok(open) => {
                self.source = Some(Source {
                    file,
                    reader: BufReader::with_capacity(BUFFER, open),
                    place,
                });
                self.tail = Tail {
                    newline: true,
                    ..Tail::default()
                };
                self.summary.files += 1;
                Ok(true)
            }
            Err(error) => Err(Fault {
                file,
                line: place.line,
                byte: place.byte,
                what: What::Io(error),
            }),
        }
    }

    /// The next line, where it began, and whether it has a newline at its end.
    fn read(&mut self) -> Result<Option<(Place, bool)>, Fault> {
        let Some(source) = &mut self.source else {
            return Ok(None);
        };
        let place = source.place;
        self.line.clear();
        let mut limited = (&mut source.reader).take(LONGEST as u64);
        let read = limited.read_until(b'\n', &mut self.line);
        let length = match read {
            Ok(length) => length as u64,
            Err(error) => return Err(self.fault(place, What::Io(error))),
        };
        if length == 0 {
            return Ok(None);
        }
        let newline = self.line.last() == Some(&b'\n');
        if newline {
            self.line.pop();
        } else if length == LONGEST as u64 {
            return Err(self.fault(place, What::TooLong));
        }
        source.place = Place {
            line: place.line + 1,
            byte: place.byte + length,
        };
        self.tail.len = source.place.byte;
        self.tail.newline = newline;
        self.bytes += length;
        Ok(Some((place, newline)))
    }

    fn end_file(&mut self) -> Result<(), Fault> {
        if self.files.is_empty() {
            let torn = self.torn.take();
            self.summary.torn = torn.map(|(torn, _)| self.tail.len - torn.byte);
        } else if let Some((torn, _)) = self.torn {
            return Err(self.fault(torn, What::Torn));
        } else if self.tail.began.is_none() {
            return Err(self.fault(Place { line: 1, byte: 0 }, What::Format));
        }
        self.source = None;
        Ok(())
    }

    /// Whether the line that was read is one, and the one that should come.
    fn judge<V: DeserializeOwned>(&self) -> Verdict<V> {
        let Some((hash, body)) = split(&self.line) else {
            return Verdict::Malformed;
        };
        let Ok(parsed) = serde_json::from_slice::<Parsed<V>>(body) else {
            return Verdict::Malformed;
        };
        let n = parsed.n;
        let first = self.tail.began.is_none();
        if first != (parsed.kind == "file") {
            return Verdict::Wrong(What::Format);
        }
        let mut chain = self.chain.unwrap_or_default();
        if first {
            let Ok(header) = serde_json::from_slice::<Parsed<Header>>(body) else {
                return Verdict::Wrong(What::Format);
            };
            let header = header.value;
            let Some(continues) = Hash::from_hex(header.chain.as_bytes()) else {
                return Verdict::Wrong(What::Format);
            };
            if header.format != FORMAT {
                return Verdict::Wrong(What::Format);
            }
            if self.chain.is_none() {
                chain = continues;
            } else if n > self.next {
                let previous = header.previous;
                return Verdict::Wrong(What::Missing { previous });
            } else if continues != chain {
                return Verdict::Wrong(What::Chain);
            }
            if (n == 0) != (chain == Hash::ZERO) {
                return Verdict::Wrong(What::Chain);
            }
            if chain.after(body) == hash {
                let torn = header.torn;
                return Verdict::Good(hash, parsed, Own::File { torn });
            }
        }
        let found = n;
        let expected = if self.chain.is_some() { self.next } else { n };
        if found != expected {
            return Verdict::Wrong(What::Number { found, expected });
        }
        if chain.after(body) != hash {
            return Verdict::Wrong(What::Hash);
        }
        let own = match parsed.kind.as_str() {
            "torn" => serde_json::from_slice::<Parsed<Tear>>(body)
                .ok()
                .map(|parsed| Own::Torn(parsed.value)),
            "loss" => number(body, "entries").map(|entries| Own::Loss { entries }),
            "end" => Some(Own::End),
            _ => Some(Own::Other),
        };
        own.map_or(Verdict::Wrong(What::Format), |own| {
            Verdict::Good(hash, parsed, own)
        })
    }

    /// A line that was not finished is explained by the next good one, which says what it is; nothing else is.
    fn explain(&mut self, place: Place, own: &Own) -> Result<(), Fault> {
        let said = match own {
            Own::Torn(tear) => Some(tear),
            Own::File { torn } => torn.as_ref(),
            _ => None,
        };
        match self.torn.take() {
            Some((torn, _)) if said.is_none() => Err(self.fault(torn, What::Format)),
            Some((_, tear)) if said == Some(&tear.clone().tear()) => {
                self.summary.tears += 1;
                Ok(())
            }
            Some((torn, _)) => Err(self.fault(torn, What::Torn)),
            None if said.is_some() => Err(self.fault(place, What::Torn)),
            None => Ok(()),
        }
    }

    fn take<V>(&mut self, hash: Hash, parsed: &Parsed<V>, own: &Own) {
        if self.chain.is_none() {
            self.summary.first = parsed.n;
            if let Some(header) = self.header() {
                self.summary.from = header.chain;
            }
        }
        if self.tail.began.is_none() {
            self.tail.began = Some(parsed.wall.clone());
            self.tail.first = parsed.n;
        }
        if let Own::Loss { entries } = own {
            self.summary.lost = self.summary.lost.saturating_add(*entries);
        }
        self.tail.good = self.tail.len;
        self.chain = Some(hash);
        self.next = parsed.n.saturating_add(1);
        self.summary.lines += 1;
        self.summary.hash = hash.text();
        self.summary.closed = matches!(own, Own::End);
    }

    fn header(&self) -> Option<Header> {
        let (_, body) = split(&self.line)?;
        let parsed = serde_json::from_slice::<Parsed<Header>>(body).ok()?;
        Some(parsed.value)
    }

    fn fault(&self, place: Place, what: What) -> Fault {
        let file = self.source.as_ref().map(|source| source.file.clone());
        Fault {
            file: file.unwrap_or_default(),
            line: place.line,
            byte: place.byte,
            what,
        }
    }
}

impl Iterator for Lines {
    type Item = Result<Line, Fault>;

    fn next(&mut self) -> Option<Result<Line, Fault>> {
        let line = self.advance::<Value>().transpose()?;
        Some(line.map(|line| Line {
            n: line.n,
            at: line.at,
            wall: line.wall,
            limiter: line.limiter,
            kind: line.kind,
            value: line.value,
        }))
    }
}

/// Whether this could be the beginning of a line: what stands before the first line of a file is nothing else, or it is not our file.
fn begins_alike(line: &[u8]) -> bool {
    let length = line.len().min(OPENING.len());
    length > 0 && line[..length] == OPENING[..length]
}

fn number(body: &[u8], name: &str) -> Option<u64> {
    let parsed = serde_json::from_slice::<Parsed<Value>>(body).ok()?;
    parsed.value.get(name)?.as_u64()
}

/// A fault as an error of the system's kind.
pub(super) fn refused(fault: Fault) -> io::Error {
    match fault.what {
        What::Io(error) => error,
        _ => io::Error::new(io::ErrorKind::InvalidData, fault),
    }
}
