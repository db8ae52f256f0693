/// What happens to a key that is not known yet while [`max_keys`](super::KeyedBuilder::max_keys) are tracked and none of them can be
/// forgotten.
///
/// Either way it shows: in the error, or in [`KeyedSnapshot::overflowed`](super::KeyedSnapshot::overflowed).
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Overflow {
    /// Its callers get an error ([`is_too_many_keys`](crate::Error::is_too_many_keys)). Nothing leaves without a budget of its own.
    #[default]
    Refuse,
    /// All such keys share one more limiter, with the quota for all keys: slower for them, but nobody is refused for it.
    Share,
}
