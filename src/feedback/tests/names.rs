//! The grammar of field names.

use super::super::TimeForm;
use super::super::name::FieldName;
use super::super::words::Role;

fn parsed(name: &str) -> Option<(&str, Role, String, Option<u64>)> {
    let found = FieldName::parse(name)?;
    let window = found.label.window().map(|window| window.as_secs());
    Some((
        found.family,
        found.role,
        found.label.text().into_string(),
        window,
    ))
}

#[test]
fn one_budget_under_many_names() {
    for name in [
        "x-ratelimit-limit-tokens",
        "x-ratelimit-tokens-limit",
        "x-ratelimit-tokenslimit",
        "x-rate-limit-tokens-limit",
        "anthropic-ratelimit-tokens-limit",
        "x-brand-ratelimit-limit-tokens",
        "tokens-ratelimit-limit",
        "x-tokensratelimit-limit",
        "ratelimittokens-limit",
    ] {
        let (_, role, label, _) = parsed(name).unwrap();
        assert_eq!((role, label.as_str()), (Role::Limit, "tokens"), "{name}");
    }
}

#[test]
fn roles_and_families() {
    for (name, family, role, label, window) in [
        ("x-ratelimit", "x-ratelimit", Role::Bare, "", None),
        ("x-rate-limit-limit", "x-rate-limit", Role::Limit, "", None),
        ("ratelimit-observed", "ratelimit", Role::Used, "", None),
        (
            "x-app-rate-limit-reset",
            "x-app-rate-limit",
            Role::Reset,
            "app",
            None,
        ),
        (
            "fitbit-rate-limit-reset",
            "fitbit-rate-limit",
            Role::Reset,
            "",
            None,
        ),
        (
            "x-ratelimit-reset-after",
            "x-ratelimit",
            Role::ResetAfter,
            "",
            None,
        ),
        (
            "x-ratelimit-reset-in",
            "x-ratelimit",
            Role::ResetAfter,
            "",
            None,
        ),
        ("ratelimit-resettime", "ratelimit", Role::ResetAt, "", None),
        (
            "x-ratelimit-limit-req-10-second",
            "x-ratelimit",
            Role::Limit,
            "req-10-second",
            Some(10),
        ),
        (
            "x-ratelimit-limit-tokens-month",
            "x-ratelimit",
            Role::Limit,
            "tokens-month",
            None,
        ),
        (
            "x-ratelimit-perhour-remaining",
            "x-ratelimit",
            Role::Remaining,
            "perhour",
            Some(3_600),
        ),
        (
            "x-hubspot-ratelimit-daily",
            "x-hubspot-ratelimit",
            Role::Limit,
            "daily",
            Some(86_400),
        ),
        (
            "x-hubspot-ratelimit-max",
            "x-hubspot-ratelimit",
            Role::Limit,
            "",
            None,
        ),
        (
            "x-ratelimit-monthlylimit",
            "x-ratelimit",
            Role::Limit,
            "monthly",
            None,
        ),
        (
            "x-ms-ratelimit-burst-remaining-xrm-requests",
            "x-ms-ratelimit",
            Role::Remaining,
            "burst-xrm-requests",
            None,
        ),
        (
            "x-daylimit-remaining",
            "x-limit",
            Role::Remaining,
            "day",
            Some(86_400),
        ),
        (
            "x-appminlimit-remaining",
            "x-limit",
            Role::Remaining,
            "appmin",
            Some(60),
        ),
        ("x-limit-per-second", "x", Role::Limit, "second", Some(1)),
        (
            "x-remaining-this-secon",
            "x",
            Role::Remaining,
            "second",
            Some(1),
        ),
        (
            "x-remaining-today",
            "x",
            Role::Remaining,
            "day",
            Some(86_400),
        ),
        (
            "x-user-limit-24hour-remaining",
            "x",
            Role::Remaining,
            "user-24hour",
            Some(86_400),
        ),
        (
            "x-rate-limit-time-reset-ms",
            "x-rate-limit",
            Role::Reset,
            "",
            None,
        ),
        (
            "x-rate-limit-requests-left",
            "x-rate-limit",
            Role::Remaining,
            "requests",
            None,
        ),
        (
            "x-ratelimit-burst-capacity",
            "x-ratelimit",
            Role::Limit,
            "",
            None,
        ),
        (
            "x-ratelimit-limit-audio-seconds",
            "x-ratelimit",
            Role::Limit,
            "audio-seconds",
            None,
        ),
        (
            "requestlimit-default-retryafter",
            "requestlimit",
            Role::Hold,
            "default",
            None,
        ),
        (
            "x-ratelimit-retry-after",
            "x-ratelimit",
            Role::Hold,
            "",
            None,
        ),
        ("x-ratelimit-after", "x-ratelimit", Role::Hold, "", None),
        (
            "x-ratelimit-resource",
            "x-ratelimit",
            Role::Name(2),
            "",
            None,
        ),
        (
            "x-mediaratelimit-class",
            "x-mediaratelimit",
            Role::Name(4),
            "media",
            None,
        ),
        (
            "x-ratelimit-tokens-query-cost",
            "x-ratelimit",
            Role::Other,
            "tokens-query-cost",
            None,
        ),
        (
            "x-ratelimit-nearlimit",
            "x-ratelimit",
            Role::Other,
            "nearlimit",
            None,
        ),
    ] {
        assert_eq!(
            parsed(name),
            Some((family, role, label.to_owned(), window)),
            "{name}"
        );
    }
}

/// The short way for the commonest names leads to the same place.
#[test]
fn the_commonest_names() {
    for role in ["limit", "remaining", "reset", "used", "resource"] {
        for kind in ["", "-requests", "-tokens"] {
            let name = format!("x-ratelimit-{role}{kind}");
            let (short, long) = (
                FieldName::parse(&name).unwrap(),
                FieldName::parse_uncommon(&name).unwrap(),
            );
            assert_eq!(
                (short.family, short.role, short.form),
                (long.family, long.role, long.form),
                "{name}"
            );
            assert!(
                short.label == long.label && short.loose == long.loose,
                "{name}"
            );
        }
    }
}

#[test]
fn milliseconds_by_name() {
    for name in [
        "x-ratelimit-reset-ms",
        "x-rate-limit-interval-ms",
        "x-ratelimit-interval-milliseconds",
    ] {
        assert_eq!(
            FieldName::parse(name).unwrap().form,
            TimeForm::Millis,
            "{name}"
        );
    }
    assert_eq!(
        FieldName::parse("x-ratelimit-interval-seconds")
            .unwrap()
            .form,
        TimeForm::Auto
    );
}

#[test]
fn not_rate_fields() {
    for name in [
        "sforce-limit-info",
        "x-limit",
        "x",
        "",
        "-",
        "x-unlimited",
        "x-ratelimited",
        "a-b-c-d-e-f-g-h-i-j-ratelimit",
    ] {
        let found = parsed(name);
        assert!(found.is_none() || name == "x-limit", "{name}: {found:?}");
    }
}
