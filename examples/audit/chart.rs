pub(crate) fn run(
    _: &[std::path::PathBuf],
    _: &std::path::Path,
    _: &mut impl std::io::Write,
) -> Result<(), crate::Error> {
    Ok(())
}
