//! Files that somebody compressed since: they are part of the journal, but only plain files are read.

/// What compresses, by the extension it gives: how its files begin, and what unpacks them.
const PACKERS: [(&str, &[u8], &str); 4] = [
    ("bz2", b"BZh", "bunzip2"),
    ("gz", b"\x1f\x8b", "gunzip"),
    ("xz", b"\xfd7zXZ\0", "unxz"),
    ("zst", b"\x28\xb5\x2f\xfd", "unzstd"),
];

/// The name before it was compressed, if it was.
pub(super) fn plain_name(name: &str) -> Option<&str> {
    let (plain, end) = name.rsplit_once('.')?;
    PACKERS
        .iter()
        .any(|packer| packer.0 == end)
        .then_some(plain)
}

/// What unpacks a file that begins so, if it is compressed.
pub(super) fn unpacker(beginning: &[u8]) -> Option<&'static str> {
    (PACKERS.iter())
        .find(|packer| beginning.starts_with(packer.1))
        .map(|packer| packer.2)
}
