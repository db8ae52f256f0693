use std::{error, fmt, time::Duration};

use crate::engine::{ConfigError, Refusal};

/// A request was not sent, or a permit not given, because of the limiter.
///
/// It has taken nothing from the budget. The layer returns it from the response future (never from `poll_ready`), boxed; get it back
/// with `error.downcast_ref::<tower_throttle::Error>()`. [`retry_after`](Self::retry_after) says when an attempt could succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Refused(Refusal),
    NotReady,
    UnknownQuota(Box<str>),
    #[cfg_attr(
        not(feature = "journal"),
        expect(dead_code, reason = "only a journal refuses")
    )]
    Unrecorded,
    TooManyKeys,
    InvalidQuota(ConfigError),
}

impl Error {
    pub(crate) const fn refused(refusal: Refusal) -> Self {
        Self {
            kind: Kind::Refused(refusal),
        }
    }

    pub(crate) const fn not_ready() -> Self {
        Self {
            kind: Kind::NotReady,
        }
    }

    #[cfg(feature = "journal")]
    pub(crate) const fn unrecorded() -> Self {
        Self {
            kind: Kind::Unrecorded,
        }
    }

    /// The journal takes no more, and the application wants nothing to be sent that is not recorded.
    #[must_use]
    pub const fn is_unrecorded(&self) -> bool {
        matches!(self.kind(), ErrorKind::Unrecorded)
    }

    pub(crate) fn unknown_quota(name: &str) -> Self {
        Self {
            kind: Kind::UnknownQuota(name.into()),
        }
    }

    pub(crate) const fn too_many_keys() -> Self {
        Self {
            kind: Kind::TooManyKeys,
        }
    }

    pub(crate) const fn invalid_quota(error: ConfigError) -> Self {
        Self {
            kind: Kind::InvalidQuota(error),
        }
    }

    /// A keyed limiter tracks as many keys as it may, this one is not among them, and none of them can be forgotten; see
    /// [`Overflow`](crate::limiter::keyed::Overflow).
    #[must_use]
    pub const fn is_too_many_keys(&self) -> bool {
        matches!(self.kind(), ErrorKind::TooManyKeys)
    }

    /// The quota the application gave for a key, in
    /// [`quota_for`](crate::limiter::keyed::KeyedBuilder::quota_for), cannot work.
    #[must_use]
    pub const fn is_invalid_quota(&self) -> bool {
        matches!(self.kind(), ErrorKind::InvalidQuota)
    }

    /// The limiter was closed.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        matches!(self.kind(), ErrorKind::Closed)
    }

    /// The cost is above the burst, so that it could never be met. Raise the burst or split the work.
    #[must_use]
    pub const fn is_too_expensive(&self) -> bool {
        matches!(self.kind(), ErrorKind::TooExpensive)
    }

    /// The wait would have been longer than allowed, or there would have been one at all for
    /// [`try_acquire`](crate::Limiter::try_acquire). Known at once, or as soon as a pause began that lasts longer than the patience of
    /// who waited.
    #[must_use]
    pub const fn is_wait_too_long(&self) -> bool {
        matches!(self.kind(), ErrorKind::WaitTooLong)
    }

    /// As many callers as are allowed were waiting already.
    #[must_use]
    pub const fn is_queue_full(&self) -> bool {
        matches!(self.kind(), ErrorKind::QueueFull)
    }

    /// The server asked for a pause longer than the limiter's `max_pause`.
    #[must_use]
    pub const fn is_paused(&self) -> bool {
        matches!(self.kind(), ErrorKind::Paused)
    }

    /// The caller's patience ended while it waited, because the wait became longer than was foreseen.
    #[must_use]
    pub const fn is_timeout(&self) -> bool {
        matches!(self.kind(), ErrorKind::TimedOut)
    }

    /// The service was called without `poll_ready` having returned ready: a mistake in the caller, and nothing was sent.
    #[must_use]
    pub const fn is_not_ready(&self) -> bool {
        matches!(self.kind(), ErrorKind::NotReady)
    }

    /// The cost names a quota that the limiter does not have.
    #[must_use]
    pub const fn is_unknown_quota(&self) -> bool {
        matches!(self.kind(), ErrorKind::UnknownQuota)
    }

    /// Which of these it is. There may be more kinds in later versions.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self.kind {
            Kind::Refused(Refusal::Closed) => ErrorKind::Closed,
            Kind::Refused(Refusal::TooExpensive { .. }) => ErrorKind::TooExpensive,
            Kind::Refused(Refusal::WouldWait(_)) => ErrorKind::WaitTooLong,
            Kind::Refused(Refusal::QueueFull(_)) => ErrorKind::QueueFull,
            Kind::Refused(Refusal::Paused(_)) => ErrorKind::Paused,
            Kind::Refused(Refusal::TimedOut(_)) => ErrorKind::TimedOut,
            Kind::NotReady => ErrorKind::NotReady,
            Kind::UnknownQuota(_) => ErrorKind::UnknownQuota,
            Kind::Unrecorded => ErrorKind::Unrecorded,
            Kind::TooManyKeys => ErrorKind::TooManyKeys,
            Kind::InvalidQuota(_) => ErrorKind::InvalidQuota,
        }
    }

    /// How long after this error was made an attempt could succeed, where that is known: the projected wait, or what was left of a
    /// pause. `None` if no time can be told, as while the application holds everything back.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.kind {
            // As the server says, however long that is.
            Kind::Refused(Refusal::Paused(wait)) => Some(wait),
            Kind::Refused(
                Refusal::WouldWait(wait) | Refusal::QueueFull(wait) | Refusal::TimedOut(wait),
            ) if wait.as_secs() < NEVER => Some(wait),
            _ => None,
        }
    }

    /// One word for records.
    pub(crate) const fn reason(&self) -> &'static str {
        match self.kind() {
            ErrorKind::Closed => "closed",
            ErrorKind::TooExpensive => "too_expensive",
            ErrorKind::WaitTooLong => "wait_too_long",
            ErrorKind::QueueFull => "queue_full",
            ErrorKind::Paused => "paused",
            ErrorKind::TimedOut => "timed_out",
            ErrorKind::NotReady => "not_ready",
            ErrorKind::UnknownQuota => "unknown_quota",
            ErrorKind::Unrecorded => "unrecorded",
            ErrorKind::TooManyKeys => "too_many_keys",
            ErrorKind::InvalidQuota => "invalid_quota",
        }
    }
}

/// The kinds of [`Error`], each of which [has a predicate too](Error#implementations) that says what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// See [`Error::is_closed`].
    Closed,
    /// See [`Error::is_too_expensive`].
    TooExpensive,
    /// See [`Error::is_wait_too_long`].
    WaitTooLong,
    /// See [`Error::is_queue_full`].
    QueueFull,
    /// See [`Error::is_paused`].
    Paused,
    /// See [`Error::is_timeout`].
    TimedOut,
    /// See [`Error::is_not_ready`].
    NotReady,
    /// See [`Error::is_unknown_quota`].
    UnknownQuota,
    /// See [`Error::is_unrecorded`].
    Unrecorded,
    /// See [`Error::is_too_many_keys`].
    TooManyKeys,
    /// See [`Error::is_invalid_quota`].
    InvalidQuota,
}

/// A wait of a century, in seconds, is no wait: nothing is known to end it.
const NEVER: u64 = 100 * 365 * 86_400;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Refused(Refusal::Closed) => f.write_str("throttle is closed"),
            Kind::Refused(Refusal::TooExpensive { cost, burst }) => write!(
                f,
                "throttle can never meet a cost of {cost}: its burst is {burst}"
            ),
            Kind::Refused(Refusal::WouldWait(wait)) => {
                write!(
                    f,
                    "throttle would hold this for {wait:?}, longer than allowed"
                )
            }
            Kind::Refused(Refusal::QueueFull(wait)) => {
                write!(f, "throttle queue is full; the wait would be {wait:?}")
            }
            Kind::Refused(Refusal::Paused(left)) => write!(
                f,
                "server asked for a pause that lasts {left:?} more, longer than allowed"
            ),
            Kind::Refused(Refusal::TimedOut(_)) => {
                f.write_str("gave up waiting for the throttle: the wait became longer than allowed")
            }
            Kind::NotReady => f.write_str("throttle was called before it was ready"),
            Kind::Unrecorded => f.write_str("throttle's journal takes no more"),
            Kind::UnknownQuota(name) => write!(f, "throttle has no quota named {name:?}"),
            Kind::TooManyKeys => {
                f.write_str("throttle tracks as many keys as it may, and can forget none of them")
            }
            Kind::InvalidQuota(error) => write!(f, "quota for this key: {error}"),
        }
    }
}

impl error::Error for Error {}
