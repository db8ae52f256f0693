use std::{fs, io::ErrorKind, time::Duration};

use tower_throttle::{
    Limiter, Quota,
    audit::journal::{Fault, Journal, Lines, OnFailure, Sync, What, files, verify},
};

use crate::{Folder, LONG};

#[test]
fn opened_and_closed_again_and_again() {
    let folder = Folder::with_files(40);
    let all = files(folder.file()).unwrap();
    assert!(all.len() > 5);
    let mut told = Vec::new();
    let summary = verify(&all, |bytes| told.push(bytes)).unwrap();
    assert_eq!(summary.files, all.len() as u64);
    assert_eq!(summary.lines, 80 + summary.files);
    assert!(summary.closed && summary.lost == 0 && summary.tears == 0);
    let size: u64 = all
        .iter()
        .map(|file| fs::metadata(file).unwrap().len())
        .sum();
    assert_eq!(told.last(), Some(&size));
    let kinds: Vec<_> = Lines::open(&all).map(|line| line.unwrap().kind).collect();
    assert_eq!(kinds[..3], ["file", "start", "end"]);
    // The names sort as the files follow each other.
    assert!(all.is_sorted());
}

#[test]
fn each_file_names_the_one_before() {
    let folder = Folder::with_files(20);
    let all = files(folder.file()).unwrap();
    let mut before = None;
    for file in all {
        let header = Lines::open([&file]).next().unwrap().unwrap();
        assert_eq!((header.at, header.limiter), (None, None));
        assert_eq!(header.value["previous"].as_str(), before.as_deref());
        assert_eq!(header.value["version"], env!("CARGO_PKG_VERSION"));
        before = Some(file.file_name().unwrap().to_str().unwrap().to_owned());
    }
}

#[test]
fn status_and_options() {
    let folder = Folder::new();
    let journal = Journal::open(folder.file())
        .rotate_daily(true)
        .sync(Sync::Every(Duration::from_millis(10)))
        .capacity(1)
        .on_failure(OnFailure::Block)
        .build()
        .unwrap();
    journal.flush(LONG).unwrap();
    let status = journal.clone().status();
    assert_eq!((status.written, status.queued, status.lost), (0, 0, 0));
    assert_eq!(
        (status.failures, status.last_error, status.files),
        (0, None, 1)
    );
    assert_eq!(status.path, folder.file());
    assert!(format!("{journal:?}").contains("Journal"));
    journal.close(LONG).unwrap();
    journal.close(LONG).unwrap();
    journal.flush(LONG).unwrap();
    // Closed, it lets the file go, even though it is still there.
    drop(Journal::open(folder.file()).build().unwrap());
    drop(journal);
    assert!(verify([folder.file()], |_| ()).unwrap().closed);
}

/// Not those of the first file alone: of all that are begun later, too.
#[cfg(unix)]
#[test]
fn what_is_made_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;

    let folder = Folder::with_files(10);
    let mut seen = 0;
    for entry in fs::read_dir(&folder.0).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", entry.path().display());
        seen += 1;
    }
    assert_eq!(seen, files(folder.file()).unwrap().len() + 1);
    assert!(seen > 3, "{seen}");
}

/// A file that is not a journal is not written to.
#[test]
fn other_files_are_left_alone() {
    let folder = Folder::new();
    for text in [
        "hello",
        "hello\n",
        "{}\n",
        "\n",
        "{\"hash\":\"00\"",
        "\0\0\0",
    ] {
        fs::write(folder.file(), text).unwrap();
        let opened = Journal::open(folder.file()).build();
        if text.starts_with("{\"hash\"") {
            // What could be the beginning of one is taken for that.
            drop(opened.unwrap());
            let summary = verify([folder.file()], |_| ()).unwrap();
            assert_eq!((summary.tears, summary.closed), (1, true));
            continue;
        }
        let error = opened.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        let fault = error.get_ref().unwrap().downcast_ref::<Fault>().unwrap();
        assert!(matches!(fault.what, What::Format));
        assert!(fault.to_string().contains("line 1 at byte 0"), "{fault}");
        assert_eq!(fs::read(folder.file()).unwrap(), text.as_bytes());
    }
}

/// It is that of the last line in the file, whatever has happened to the journal, and any line less is another.
#[test]
fn the_last_hash_is_that_of_the_last_line() {
    let folder = Folder::new();
    let hash = || verify(files(folder.file()).unwrap(), |_| ()).unwrap().hash;
    for _ in 0..3 {
        let journal = Journal::open(folder.file())
            .rotate_at_bytes(2_000)
            .build()
            .unwrap();
        assert_eq!(journal.last_hash(), hash());
        let limiter = Limiter::builder()
            .quota("q", Quota::per_second(1_000).burst(100))
            .audit(journal.clone())
            .build()
            .unwrap();
        for _ in 0..20 {
            limiter.try_acquire(1).unwrap();
            journal.flush(LONG).unwrap();
            assert_eq!(journal.last_hash(), hash());
        }
        journal.close(LONG).unwrap();
        assert_eq!(journal.last_hash(), hash());
    }
    // The cut journal is a whole one all the same.
    let kept = hash();
    let text = fs::read_to_string(folder.file()).unwrap();
    let lines: Vec<_> = text.split_inclusive('\n').collect();
    fs::write(folder.file(), lines[..lines.len() - 1].concat()).unwrap();
    assert_ne!(hash(), kept);
}

/// How programs that compress begin their files.
const PACKED: [(&str, &[u8], &str); 4] = [
    ("gz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03", "gunzip"),
    ("bz2", b"BZh91AY&SY", "bunzip2"),
    ("xz", b"\xfd7zXZ\0\0\x04\n", "unxz"),
    ("zst", b"\x28\xb5\x2f\xfd\x04\0\n", "unzstd"),
];

/// Each file of a journal in turn, compressed as log tools do.
#[test]
fn a_compressed_file_is_named_and_not_left_out() {
    for (end, bytes, tool) in PACKED {
        let folder = Folder::with_files(8);
        let all = files(folder.file()).unwrap();
        let summary = verify(&all, |_| ()).unwrap();
        for (index, file) in all.iter().enumerate() {
            let plain = fs::read(file).unwrap();
            let mut name = file.clone().into_os_string();
            if index + 1 < all.len() {
                name.push(format!(".{end}"));
            }
            fs::remove_file(file).unwrap();
            fs::write(&name, bytes).unwrap();
            let found = files(folder.file()).unwrap();
            assert_eq!(found.len(), all.len());
            let fault = verify(&found, |_| ()).unwrap_err();
            assert_eq!((&*fault.file, fault.line), (name.as_ref(), 1));
            assert!(matches!(fault.what, What::Compressed { with } if with == tool));
            assert!(fault.to_string().contains(&format!("{tool} it first")));
            // Unpacked beside it, the plain file is read.
            fs::write(file, plain).unwrap();
            assert_eq!(files(folder.file()).unwrap(), all);
            assert_eq!(verify(&all, |_| ()).unwrap(), summary);
            if index + 1 < all.len() {
                fs::remove_file(&name).unwrap();
            }
        }
    }
}

/// After a crash between two files a journal goes on with the last one, unless that was compressed meanwhile.
#[test]
fn a_compressed_file_is_not_gone_on_with() {
    let folder = Folder::with_files(8);
    let last = files(folder.file())
        .unwrap()
        .into_iter()
        .nth_back(1)
        .unwrap();
    let packed = last.with_extension("jsonl.gz");
    fs::remove_file(folder.file()).unwrap();
    fs::rename(&last, &packed).unwrap();
    fs::write(&packed, PACKED[0].1).unwrap();
    let error = Journal::open(folder.file()).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    assert!(error.to_string().contains("gunzip it first"), "{error}");
    assert!(packed.exists() && !folder.file().exists());
}
