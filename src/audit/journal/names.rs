//! The names of a journal's files: the one being written has the name the user gave; when it is full the number of its first line is put
//! before the extension, so that the names sort as the files follow each other, the unfinished one last.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::packed;

const DIGITS: usize = 20;

/// All files of the journal at `path` that are there, the oldest first: what [`verify`](super::verify) and
/// [`Lines::open`](super::Lines::open) take.
///
/// Those that were compressed since (`.gz`, `.bz2`, `.xz`, `.zst`) are listed unless the plain file is there, too. They are not read, but
/// the error says so ([`What::Compressed`](super::What::Compressed)): left out, they would look as if they had been removed.
///
/// # Errors
///
/// If the folder cannot be read.
pub fn files(path: impl AsRef<Path>) -> io::Result<Vec<PathBuf>> {
    let path = path.as_ref();
    let mut found = rotated_files(path)?;
    if path.try_exists()? {
        found.push(path.to_owned());
    }
    Ok(found)
}

/// Those that are full.
pub(super) fn rotated_files(path: &Path) -> io::Result<Vec<PathBuf>> {
    let folder = folder(path);
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        if let Some(n) = name.to_str().and_then(|name| number(path, name)) {
            found.push((n, path.with_file_name(name)));
        }
    }
    // A plain name comes before those that begin with it.
    found.sort_unstable();
    found.dedup_by_key(|(n, _)| *n);
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// What the file is called when it is full, if the number of its first line is `first`.
pub(super) fn rotated(path: &Path, first: u64) -> PathBuf {
    let (stem, end) = parts(path);
    path.with_file_name(format!("{stem}.{first:0DIGITS$}{end}"))
}

/// The file that is locked as long as a journal has this path open, next to the file that the path means.
pub(super) fn lock(path: &Path) -> io::Result<PathBuf> {
    let no_file = || io::Error::new(io::ErrorKind::InvalidInput, "not a file's path");
    let path = match fs::canonicalize(path) {
        Ok(path) if path.is_dir() => return Err(no_file()),
        Ok(path) => path,
        // There is none yet.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let name = path.file_name().ok_or_else(no_file)?;
            fs::canonicalize(folder(path))?.join(name)
        }
        Err(error) => return Err(error),
    };
    let mut name = path.file_name().ok_or_else(no_file)?.to_owned();
    name.push(".lock");
    Ok(path.with_file_name(name))
}

pub(super) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

fn number(path: &Path, name: &str) -> Option<u64> {
    let (stem, end) = parts(path);
    let name = packed::plain_name(name)
        .filter(|plain| plain.ends_with(&*end))
        .unwrap_or(name);
    let digits = name
        .strip_prefix(&*stem)?
        .strip_prefix('.')?
        .strip_suffix(&*end)?;
    let right = digits.len() == DIGITS && digits.bytes().all(|digit| digit.is_ascii_digit());
    digits.parse().ok().filter(|_| right)
}

/// Stem, and the extension with its point.
fn parts(path: &Path) -> (String, String) {
    let text = |part: Option<&std::ffi::OsStr>| {
        part.map(|part| part.to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    let end = path.extension().map(|end| format!(".{}", text(Some(end))));
    (text(path.file_stem()), end.unwrap_or_default())
}
