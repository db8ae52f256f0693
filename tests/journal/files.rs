use std::{fs, io::ErrorKind, time::Duration};

use tower_throttle::audit::journal::{Fault, Journal, Lines, OnFailure, Sync, What, files, verify};

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
