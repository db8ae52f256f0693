use std::{fs, path::PathBuf, time::Duration};

use super::{
    super::{Fault, Journal, Lines, Summary, What, files, verify},
    Dice, Fake, Folder, LONG, notes,
};

struct Victim {
    folder: Folder,
    files: Vec<PathBuf>,
    texts: Vec<Vec<Vec<u8>>>,
}

/// Lines of a file, each with its newline.
fn split(text: &[u8]) -> Vec<Vec<u8>> {
    text.split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect()
}

impl Victim {
    /// A few files with unfinished lines in them that were closed.
    fn new() -> Self {
        let folder = Folder::new();
        for round in 1..4 {
            let fake = Fake::new();
            let journal = Journal::open(folder.file())
                .world(fake.clone())
                .rotate_at_bytes(3000)
                .build()
                .unwrap();
            fake.has_room(900 * round);
            notes(&journal, 15);
            assert!(journal.flush(Duration::from_millis(20)).is_err());
            fake.has_room(1 << 40);
            journal.close(LONG).unwrap();
        }
        let files = files(folder.file()).unwrap();
        let texts: Vec<_> = files
            .iter()
            .map(|file| split(&fs::read(file).unwrap()))
            .collect();
        assert!(files.len() > 3);
        Self {
            folder,
            files,
            texts,
        }
    }

    fn check(&self) -> Result<Summary, Fault> {
        verify(&self.files, |_| ())
    }

    fn write(&self, file: usize, lines: &[Vec<u8>]) {
        fs::write(&self.files[file], lines.concat()).unwrap();
    }

    fn restore(&self, file: usize) {
        self.write(file, &self.texts[file]);
    }

    fn is_last(&self, file: usize) -> bool {
        file == self.files.len() - 1
    }
}

#[test]
fn every_change_is_caught_in_its_place() {
    let victim = Victim::new();
    let right = victim.check().unwrap();
    // How many there are depends on what the writer found to write at once.
    assert!(right.closed && right.tears >= 1);
    let mut dice = Dice(5);
    for round in 0..6000 {
        let file = dice.below(victim.files.len());
        let mut lines = victim.texts[file].clone();
        let at = dice.below(lines.len());
        // The first line at which something can be seen.
        let mut place = at;
        match round % 5 {
            0 => {
                let byte = dice.below(lines[at].len());
                lines[at][byte] ^= 1 << dice.roll(8);
            }
            1 => {
                lines.remove(at);
            }
            2 => {
                let other = dice.below(lines.len());
                if lines[at] == lines[other] {
                    continue;
                }
                lines.swap(at, other);
                place = at.min(other);
            }
            3 => {
                let line = lines[at].clone();
                lines.insert(at, line);
                place = at + 1;
            }
            _ => {
                let length = dice.below(lines[at].len());
                lines[at].truncate(length);
            }
        }
        victim.write(file, &lines);
        match victim.check() {
            Ok(summary) => {
                // Only what looks like a crash, at the very end, and then it is said.
                let told = summary.torn.is_some() || !summary.closed || summary.hash != right.hash;
                let newline = summary == right && place == lines.len() - 1 && round % 5 != 1;
                assert!(victim.is_last(file) && (told || newline), "round {round}");
                // Two lines that became one are one that was not finished.
                let here = &lines[at.min(lines.len() - 1)];
                let joined = usize::from(!here.ends_with(b"\n"));
                assert!(
                    place + 1 + joined >= victim.texts[file].len(),
                    "round {round}"
                );
            }
            Err(fault) => {
                let found = victim.files.iter().position(|name| *name == fault.file);
                let found = (found.unwrap(), usize::try_from(fault.line).unwrap() - 1);
                // A line missing at a file's end is seen in the next one; a fragment's place is where it begins, and a change in it
                // is seen where it is said how long it is.
                let end = (file + 1, 0);
                let fits = found == (file, place) || (place + 1 >= lines.len() && found == end);
                let near = fragment(&victim.texts[file], place.min(victim.texts[file].len() - 1));
                assert!(fits || near, "round {round}: {fault}, not {file}, {place}");
                let before: usize = lines[..found.1.min(lines.len())].iter().map(Vec::len).sum();
                if found.0 == file {
                    assert_eq!(fault.byte, before as u64);
                }
            }
        }
        victim.restore(file);
    }
    assert_eq!(victim.check().unwrap(), right);
    drop(victim.folder);
}

/// Whether the line is unfinished, or next to one.
fn fragment(lines: &[Vec<u8>], at: usize) -> bool {
    let bad = |line: &Vec<u8>| !line.ends_with(b"}}\n");
    lines[at.saturating_sub(1)..(at + 2).min(lines.len())]
        .iter()
        .any(bad)
}

#[test]
fn files_missing_or_out_of_place() {
    let victim = Victim::new();
    let files = &victim.files;
    let count = files.len();
    for gone in 1..count - 1 {
        let mut left = files.clone();
        left.remove(gone);
        let fault = verify(&left, |_| ()).unwrap_err();
        assert!(
            matches!(fault.what, What::Missing { previous: Some(_) }),
            "{fault}"
        );
        assert_eq!((&fault.file, fault.line), (&files[gone + 1], 1));
    }
    for from in 0..count {
        let summary = verify(&files[from..], |_| ()).unwrap();
        assert_eq!(summary.from == "0".repeat(64), from == 0);
        let summary = verify(&files[..=from], |_| ()).unwrap();
        assert_eq!(summary.closed, from == count - 1);
    }
    let twice = verify([&files[0], &files[0]], |_| ()).unwrap_err();
    assert!(matches!(twice.what, What::Chain), "{twice}");
    let back = verify([&files[1], &files[0]], |_| ()).unwrap_err();
    assert!(matches!(back.what, What::Chain), "{back}");
    let none = verify([victim.folder.0.join("none")], |_| ()).unwrap_err();
    assert!(matches!(none.what, What::Io(_)));
    assert_eq!(verify::<PathBuf>([], |_| ()).unwrap().lines, 0);
}

/// What cannot be read is not written to, and not taken for a crash.
#[test]
fn a_broken_journal_is_not_gone_on_with() {
    let victim = Victim::new();
    let last = victim.files.len() - 1;
    let lines = &victim.texts[last];
    for at in 0..lines.len() - 1 {
        let mut broken = lines.clone();
        let middle = broken[at].len() / 2;
        broken[at][middle] ^= 1;
        victim.write(last, &broken);
        if victim.check().is_ok() {
            continue;
        }
        let error = Journal::open(victim.folder.file()).build().unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
        let fault = error.get_ref().unwrap().downcast_ref::<Fault>();
        assert!(fault.is_some());
        assert_eq!(fs::read(&victim.files[last]).unwrap(), broken.concat());
    }
}

#[test]
fn lines_end_after_a_fault() {
    let victim = Victim::new();
    let mut lines = victim.texts[1].clone();
    lines.remove(3);
    victim.write(1, &lines);
    let mut read = Lines::open(&victim.files);
    let before = victim.texts[0].len();
    let good = read.by_ref().take_while(Result::is_ok).count();
    assert!(good <= before + 3);
    assert!(read.next().is_none());
    assert!(read.summary().lines as usize == good && read.bytes() > 0);
}
