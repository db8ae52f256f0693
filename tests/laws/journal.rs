//! The reader of journals on anything at all.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "../journal/folder.rs"]
mod folder;

use std::fs;

use proptest::prelude::*;
use tower_throttle::audit::journal::{files, verify};

use folder::Folder;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
        let folder = Folder::new();
        fs::write(folder.file(), &bytes).unwrap();
        let read = verify([folder.file()], |_| ());
        // Nothing but the beginning of a line passes, and not as a line.
        if let Ok(summary) = read {
            prop_assert_eq!(summary.lines, 0);
            let start = bytes.len().min(3);
            prop_assert_eq!(&bytes[..start], &b"{\"h"[..start]);
        }
    }

    #[test]
    fn any_bytes_put_into_a_journal_are_found(
        bytes in proptest::collection::vec(prop_oneof![any::<u8>(), Just(b'\n'), Just(b'"'), Just(b'}')], 1..40),
        at in any::<proptest::sample::Index>(),
    ) {
        let folder = Folder::with_files(2);
        let all = files(folder.file()).unwrap();
        verify(&all, |_| ()).unwrap();
        let mut text = fs::read(folder.file()).unwrap();
        let at = at.index(text.len());
        let end = at + bytes.len();
        text.splice(at..at, bytes);
        fs::write(folder.file(), text).unwrap();
        match verify(&all, |_| ()) {
            Ok(summary) => prop_assert!(summary.torn.is_some()),
            // A newline put before a newline is an empty line after it.
            Err(fault) => prop_assert!(fault.byte <= end as u64),
        }
    }
}
