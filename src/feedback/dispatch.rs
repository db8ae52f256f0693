//! The first look at a field's name, made for every header of every response: most are told from rate fields by a few
//! of their bytes.

use super::retry_after::FIELDS;
use super::value::TimeForm;

/// What a field may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Certainly nothing about rates.
    Nothing,
    /// An explicit wait, known by its exact name.
    Hold(&'static str, TimeForm),
    /// `RateLimit` (draft 07 on).
    State,
    /// `RateLimit-Policy`.
    Policy,
    /// gRPC's status, for trailers-only responses.
    GrpcStatus,
    /// Envoy's mark on refusals of its own.
    EnvoyLimited,
    /// A name to be read by the grammar.
    Named,
}

/// Longer names are no rate fields; the longest honest one met has 60 bytes.
const MAX_NAME: usize = 128;

/// Sorts a field by its name, in lower case.
pub(super) fn kind(name: &str) -> Kind {
    if name.len() > MAX_NAME {
        return Kind::Nothing;
    }
    match name.as_bytes() {
        // Shorter than any rate field but `age`, which is looked up on need.
        [] | [_] | [_, _] | [_, _, _] | [_, _, _, _] => Kind::Nothing,
        [b'r', b'e', b't', ..]
        | [b'x', b'-', b'm', b's', b'-', b'r', b'e', ..]
        | [b'x', b'-', b'r', b'e', b't', ..] => hold(name),
        [b'g', b'r', b'p', b'c', ..] => match name {
            "grpc-status" => Kind::GrpcStatus,
            _ => hold(name),
        },
        [b'r', b'a', ..] => match name {
            "ratelimit" => Kind::State,
            "ratelimit-policy" => Kind::Policy,
            _ => named(name),
        },
        [b'x', b'-', b'e', ..] if name == "x-envoy-ratelimited" => Kind::EnvoyLimited,
        [b'x', b'-', b'r', b'e', b'm', ..] | [b'x', b'-', b'f', b'l', b'o', ..] => Kind::Named,
        [b'x', b'-', .., b'r', b'e', b's', b'e', b't'] => Kind::Named,
        [b'x', b'-', .., b'a', b'i', b'n', b'i', b'n', b'g'] => Kind::Named,
        _ => named(name),
    }
}

fn hold(name: &str) -> Kind {
    let found = FIELDS.iter().find(|(field, _)| *field == name);
    found.map_or_else(|| named(name), |&(field, form)| Kind::Hold(field, form))
}

/// Every other rate field has the word `limit` in it.
fn named(name: &str) -> Kind {
    if has_limit(name.as_bytes()) {
        Kind::Named
    } else {
        Kind::Nothing
    }
}

/// Looks for `limit`. One byte in five is enough to rule it out: any place where it stands covers a probed one.
fn has_limit(name: &[u8]) -> bool {
    let mut probe = 4;
    while let Some(byte) = name.get(probe) {
        let starts = match byte {
            b'l' => [Some(probe), None],
            b'i' => [probe.checked_sub(1), probe.checked_sub(3)],
            b'm' => [probe.checked_sub(2), None],
            b't' => [probe.checked_sub(4), None],
            _ => [None, None],
        };
        let found = |start: usize| name.get(start..start + 5) == Some(b"limit");
        if starts.into_iter().flatten().any(found) {
            return true;
        }
        probe += 5;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_limit_at_any_offset() {
        for before in 0..12 {
            for after in 0..12 {
                let name = format!("{}limit{}", "i".repeat(before), "t".repeat(after));
                assert!(has_limit(name.as_bytes()), "{name}");
                let name = format!("{}limi{}", "l".repeat(before), "m".repeat(after));
                assert!(!has_limit(name.as_bytes()), "{name}");
            }
        }
    }

    #[test]
    fn ordinary_fields_are_nothing() {
        for name in [
            "date",
            "age",
            "etag",
            "server",
            "content-type",
            "content-length",
            "cache-control",
            "x-request-id",
            "via",
            "referrer-policy",
            "x-content-type-options",
            "strict-transport-security",
            "refresh",
            "grpc-message",
            "x",
        ] {
            assert_eq!(kind(name), Kind::Nothing, "{name}");
        }
    }

    #[test]
    fn endless_names_are_nothing() {
        let name = |length: usize| format!("{}-ratelimit-limit", "x".repeat(length));
        assert_eq!(kind(&name(100)), Kind::Named);
        assert_eq!(kind(&name(120)), Kind::Nothing);
    }

    #[test]
    fn exact_names() {
        assert_eq!(
            kind("retry-after"),
            Kind::Hold("retry-after", TimeForm::Auto)
        );
        assert_eq!(
            kind("retry-after-ms"),
            Kind::Hold("retry-after-ms", TimeForm::Millis)
        );
        assert_eq!(
            kind("x-ms-retry-after-ms"),
            Kind::Hold("x-ms-retry-after-ms", TimeForm::Millis)
        );
        assert_eq!(
            kind("grpc-retry-pushback-ms"),
            Kind::Hold("grpc-retry-pushback-ms", TimeForm::Millis)
        );
        assert_eq!(kind("ratelimit"), Kind::State);
        assert_eq!(kind("ratelimit-policy"), Kind::Policy);
        assert_eq!(kind("ratelimit-limit"), Kind::Named);
        assert_eq!(kind("rate-limit-reset"), Kind::Named);
        assert_eq!(kind("x-remaining-today"), Kind::Named);
    }
}
