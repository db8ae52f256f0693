use std::fs;

use tower_throttle::audit::journal::{Lines, What};

use crate::Folder;

#[test]
fn a_line_without_end_is_not_kept_in_memory() {
    let folder = Folder::new();
    let file = fs::File::create(folder.file()).unwrap();
    // Sparse: a GiB of zeros.
    file.set_len(1 << 30).unwrap();
    let mut lines = Lines::open([folder.file()]);
    let fault = lines.next().unwrap().unwrap_err();
    assert!(matches!(fault.what, What::TooLong), "{fault}");
    assert!(lines.next().is_none());
    assert!(lines.bytes() <= 64 << 20);
}
