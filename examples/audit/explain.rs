pub(crate) fn run(
    _: &[std::path::PathBuf],
    _: u64,
    _: Option<&str>,
    _: &mut impl std::io::Write,
) -> Result<(), crate::Error> {
    Ok(())
}
