//! The reader of response heads: whatever a server sends, no panic and bounded output.
#![allow(missing_docs, clippy::unwrap_used)]

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use proptest::prelude::*;

use tower_throttle::feedback::{Dialect, Feedback, MAX_BUDGETS, MAX_MALFORMED, Reader, read};

/// Words that the grammar knows, so that most names mean something.
const WORDS: &[&str] = &[
    "x",
    "ratelimit",
    "rate",
    "limit",
    "remaining",
    "reset",
    "after",
    "in",
    "at",
    "ms",
    "used",
    "window",
    "period",
    "policy",
    "resource",
    "scope",
    "global",
    "tokens",
    "requests",
    "minute",
    "10",
    "second",
    "daily",
    "dailylimit",
    "per",
    "time",
    "max",
    "left",
    "retry",
    "burst",
    "capacity",
    "brand",
    "mediaratelimit",
    "ratelimitbysize",
    "",
];

const NAMES: &[&str] = &[
    "retry-after",
    "retry-after-ms",
    "x-retry-in",
    "grpc-retry-pushback-ms",
    "grpc-status",
    "age",
    "date",
    "ratelimit",
    "ratelimit-policy",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "x-envoy-ratelimited",
    "x-shopify-shop-api-call-limit",
    "sforce-limit-info",
    "x-app-rate-limit",
    "x-app-rate-limit-count",
    "x-sentry-rate-limits",
    "x-business-use-case-usage",
    "x-amzn-ratelimit-limit",
    "x-bapi-limit-status",
    "x-ms-ratelimit-time-remaining-xrm-requests",
    "x-amzn-errortype",
    "x-mbx-used-weight-1m",
];

const VALUES: &[&str] = &[
    "0",
    "1",
    "-1",
    "-5",
    "0.5",
    "1e400",
    "NaN",
    "inf",
    "99999999999999999999",
    "1372699626",
    "1372699626000",
    "9223372036854775807",
    "18446744073709551615",
    "253402300799",
    "Mon, 01 Jul 2013 17:27:06 GMT",
    "Sun Nov  6 08:49:37 2099",
    "Sunday, 06-Nov-94 08:49:37 GMT",
    "9999-12-31T23:59:60.999999999999Z",
    "0000-01-01T00:00:00+23:59",
    "6m0s",
    "99999999999999999999h",
    "10, 10;w=1, 50;w=60",
    "\"a\";r=0;t=999999999999999",
    "\"a\";q=1;w=999999999999999;pk=:YQ==:",
    "limit=1, remaining=0, reset=5",
    "{\"limit\":1,\"remaining\":0,\"until\":\"x\"}",
    "total=1; remaining=0; resets=5",
    "20:1,100:18446744073709551615",
    "32/40",
    "a=1/2; b=3/4(c)",
    "60:error:org, 5::",
    "{\"call_count\":200,\"estimated_time_to_regain_access\":18446744073709551615}",
    ",",
    ";",
    "\"",
    "0.0000000000001",
];

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::sample::select(NAMES).prop_map(str::to_owned),
        proptest::collection::vec(proptest::sample::select(WORDS), 1..8)
            .prop_map(|words| words.join("-")),
        "[a-z0-9_-]{1,30}",
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    let known = || proptest::sample::select(VALUES).prop_map(|text| text.as_bytes().to_vec());
    prop_oneof![
        4 => known(),
        1 => (known(), known()).prop_map(|(one, other)| [&one[..], b", ", &other].concat()),
        1 => (known(), any::<proptest::sample::Index>(), any::<u8>()).prop_map(|(mut text, at, byte)| {
            if !text.is_empty() {
                let at = at.index(text.len());
                text[at] = byte;
            }
            text
        }),
        1 => "[0-9a-zA-Z:;,.=\"{}+ -]{0,60}".prop_map(String::into_bytes),
        1 => proptest::collection::vec(any::<u8>(), 0..200),
        1 => ("[0-9;,=\"]", 900..1300_usize).prop_map(|(text, times)| text.repeat(times).into_bytes()),
    ]
}

fn block() -> impl Strategy<Value = HeaderMap> {
    proptest::collection::vec((name(), value()), 0..40).prop_map(header_map)
}

/// So few and so short fields that no bound is reached.
fn small_block() -> impl Strategy<Value = HeaderMap> {
    let known = proptest::sample::select(VALUES).prop_map(|text| text.as_bytes().to_vec());
    proptest::collection::vec((name(), known), 0..8).prop_map(header_map)
}

fn header_map(fields: Vec<(String, Vec<u8>)>) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in fields {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(&value)) {
            map.append(name, value);
        }
    }
    map
}

fn clock() -> impl Strategy<Value = SystemTime> {
    prop_oneof![
        4 => Just(SystemTime::UNIX_EPOCH + Duration::from_secs(1_372_699_626)),
        1 => any::<u32>().prop_map(|secs| SystemTime::UNIX_EPOCH + Duration::from_secs(u64::from(secs))),
        1 => (0..253_402_300_800_u64).prop_map(|secs| SystemTime::UNIX_EPOCH + Duration::from_secs(secs)),
        1 => any::<u32>().prop_map(|secs| SystemTime::UNIX_EPOCH - Duration::from_secs(u64::from(secs))),
    ]
}

fn status() -> impl Strategy<Value = StatusCode> {
    proptest::sample::select(&[200_u16, 204, 301, 400, 403, 418, 420, 429, 500, 503][..])
        .prop_map(|code| StatusCode::from_u16(code).unwrap())
}

fn readers() -> Vec<Reader> {
    let dialects = [
        Dialect::amazon_sp_api(),
        Dialect::aws(),
        Dialect::binance(),
        Dialect::bybit(),
        Dialect::dataverse(),
        Dialect::facebook(),
        Dialect::github(),
        Dialect::ixx(),
        Dialect::oracle(),
        Dialect::riot(),
        Dialect::salesforce(),
        Dialect::sentry(),
        Dialect::shopify(),
        Dialect::skuvault(),
        Dialect::strava(),
    ];
    dialects
        .into_iter()
        .map(|dialect| Reader::new().dialect(dialect))
        .collect()
}

fn check(status: StatusCode, feedback: &Feedback) -> Result<(), TestCaseError> {
    prop_assert!(feedback.budgets.len() <= MAX_BUDGETS);
    prop_assert!(feedback.malformed.len() <= MAX_MALFORMED);
    prop_assert!(feedback.malformed_count as usize >= feedback.malformed.len());
    prop_assert!(
        feedback
            .malformed
            .iter()
            .all(|malformed| malformed.field.len() <= 64)
    );
    prop_assert!(
        feedback
            .budgets
            .iter()
            .all(|budget| budget.window != Some(Duration::ZERO))
    );
    prop_assert!(
        feedback
            .budgets
            .iter()
            .all(|budget| budget.name.as_ref().is_none_or(|name| name.len() <= 64))
    );
    prop_assert!(!feedback.cached || feedback.budgets.is_empty());
    if status.is_success() && !feedback.refused {
        prop_assert_eq!(feedback.hold, None);
    }
    if status == StatusCode::TOO_MANY_REQUESTS {
        prop_assert!(feedback.refused);
    }
    // An explicit wait is never cut short, and a positive one is never lost beside resets.
    if let Some(hold) = feedback.hold {
        prop_assert!(feedback.wait().unwrap() >= hold.wait);
    }
    prop_assert!(feedback.refused || feedback.reset_on_refusal().is_none());
    Ok(())
}

proptest! {
    #[test]
    fn no_block_panics(status in status(), headers in block(), now in clock()) {
        check(status, &read(status, &headers, now))?;
        for reader in readers() {
            check(status, &reader.read(status, &headers, now))?;
        }
    }

    #[test]
    fn the_order_of_fields_does_not_matter(status in status(), headers in small_block(), now in clock()) {
        let mut reversed = HeaderMap::new();
        let names: Vec<_> = headers.keys().cloned().collect();
        for name in names.into_iter().rev() {
            for value in headers.get_all(&name) {
                reversed.append(name.clone(), value.clone());
            }
        }
        let (one, other) = (read(status, &headers, now), read(status, &reversed, now));
        prop_assert_eq!(one.refused, other.refused);
        prop_assert_eq!(one.hold.map(|hold| hold.wait), other.hold.map(|hold| hold.wait));
        prop_assert_eq!(one.malformed_count, other.malformed_count);
    }

    #[test]
    fn an_unreadable_field_shortens_no_wait(
        status in status(),
        headers in small_block(),
        now in clock(),
        field in proptest::sample::select(&[
            "retry-after", "retry-after-ms", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset",
            "x-ratelimit-reset-after", "ratelimit-remaining", "x-ratelimit-remaining-tokens", "x-ratelimit",
        ][..]),
        junk in proptest::sample::select(&["junk", "", "NaN", "+3", "-", "1e3", "5k", "soon, now"][..]),
    ) {
        let mut more = headers.clone();
        more.append(field, HeaderValue::from_static(junk));
        let (one, other) = (read(status, &headers, now), read(status, &more, now));
        prop_assert!(other.wait() >= one.wait(), "{one:?} {other:?}");
        prop_assert!(other.refused || !one.refused);
    }

    #[test]
    fn a_delay_is_read_exactly(secs in 0..1_000_000_000_u64, millis in 0..1000_u64) {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", format!("{secs}.{millis:03}").parse().unwrap());
        let wait = read(StatusCode::TOO_MANY_REQUESTS, &headers, SystemTime::UNIX_EPOCH).wait();
        prop_assert_eq!(wait, Some(Duration::from_millis(secs * 1000 + millis)));
    }

    #[test]
    fn an_instant_is_measured_against_date(ahead in 0..31_000_000_u64, date in 1_000_000_000..4_000_000_000_u64, now in clock()) {
        let at = |secs| SystemTime::UNIX_EPOCH + Duration::from_secs(secs);
        let mut headers = HeaderMap::new();
        headers.insert("date", httpdate::fmt_http_date(at(date)).parse().unwrap());
        headers.insert("x-ratelimit-remaining", "0".parse().unwrap());
        headers.insert("x-ratelimit-reset", (date + ahead).to_string().parse().unwrap());
        let feedback = read(StatusCode::OK, &headers, now);
        prop_assert_eq!(feedback.wait(), Some(Duration::from_secs(ahead)));
        headers.remove("x-ratelimit-reset");
        headers.insert("retry-after", httpdate::fmt_http_date(at(date + ahead)).parse().unwrap());
        let feedback = read(StatusCode::SERVICE_UNAVAILABLE, &headers, now);
        prop_assert_eq!(feedback.hold.unwrap().wait, Duration::from_secs(ahead));
    }
}
