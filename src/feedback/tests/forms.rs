//! The forms of values, and what is done with those that have none.

use std::time::Duration;

use super::super::{Fault, MAX_BUDGETS, MAX_MALFORMED};
use super::{answer, check, rows, secs};

#[test]
fn whole_sets_in_one_value() {
    check(
        &[(
            "x-ratelimit",
            r#"{"name":"General","period":60,"limit":1000,"remaining":0,"until":"2013-07-01T17:28:06Z"}"#,
        )],
        &[(Some("General"), Some(1000), Some(0), Some(60), Some(60))],
    );
    check(
        &[(
            "zendesk-ratelimit-tickets-index",
            "total=100; remaining=99; resets=41",
        )],
        &[(Some("tickets-index"), Some(100), Some(99), Some(41), None)],
    );
    check(
        &[(
            "x-rate-limit",
            "user-hour-lim:3600;user-hour-rem:3598;, user-minute-lim:50;user-minute-rem:49;",
        )],
        &[
            (Some("user-hour"), Some(3600), Some(3598), None, Some(3600)),
            (Some("user-minute"), Some(50), Some(49), None, Some(60)),
        ],
    );
    check(
        &[(
            "x-ms-ratelimit-remaining-resource",
            "Compute/Get3Min;107,Compute/Get30Min;538",
        )],
        &[
            (Some("Compute/Get30Min"), None, Some(538), None, None),
            (Some("Compute/Get3Min"), None, Some(107), None, None),
        ],
    );
    check(
        &[("x-discogs-ratelimit", "25")],
        &[(None, Some(25), None, None, None)],
    );
}

#[test]
fn joined_sets_are_paired_by_place() {
    check(
        &[
            ("x-ratelimit-limit", "1000, 60"),
            ("x-ratelimit-remaining", "998, 59"),
            ("x-ratelimit-reset", "3480, 55"),
        ],
        &[
            (None, Some(60), Some(59), Some(55), None),
            (None, Some(1000), Some(998), Some(3480), None),
        ],
    );
    // Three values and one: nothing tells which belong together, so the least that is left and the latest reset.
    check(
        &[
            ("x-ratelimit-limit", "60"),
            ("x-ratelimit-remaining", "9, 3, 5"),
            ("x-ratelimit-reset", "10, 40"),
        ],
        &[(None, Some(60), Some(3), Some(40), None)],
    );
    check(
        &[
            ("x-ratelimit-limit", "200,2000"),
            ("x-ratelimit-usage", ","),
        ],
        &[
            (None, Some(200), None, None, None),
            (None, Some(2000), None, None, None),
        ],
    );
}

#[test]
fn sentinels_and_overdrafts() {
    check(
        &[
            ("x-ratelimit-limit", "-1"),
            ("x-ratelimit-remaining", "-1"),
            ("x-ratelimit-reset", "0"),
        ],
        &[(None, None, None, Some(0), None)],
    );
    check(
        &[
            ("x-ratelimit-limit", "1000"),
            ("x-ratelimit-remaining", "-5"),
            ("x-ratelimit-reset", "1"),
        ],
        &[(None, Some(1000), Some(0), Some(1), None)],
    );
    check(
        &[("x-ratelimit-limit", "100"), ("x-ratelimit-used", "120")],
        &[(None, Some(100), Some(0), None, None)],
    );
    check(
        &[
            ("x-ratelimit-remaining", "988.7"),
            ("x-ratelimit-used", "12"),
        ],
        &[(None, Some(1000), Some(988), None, None)],
    );
}

#[test]
fn an_unreadable_value_costs_only_its_field() {
    let fields = [
        ("x-ratelimit-limit", "5k"),
        ("x-ratelimit-remaining", "7"),
        ("x-ratelimit-reset", "24.12.2030 00:00:00"),
    ];
    let feedback = answer(200, &fields);
    assert_eq!(rows(&feedback), [(None, None, Some(7), None, None)]);
    let faults: Vec<_> = feedback
        .malformed
        .iter()
        .map(|malformed| (&*malformed.field, malformed.why))
        .collect();
    assert_eq!(
        faults,
        [
            ("x-ratelimit-limit", Fault::NotACount),
            ("x-ratelimit-reset", Fault::NotATime)
        ]
    );
    assert_eq!(
        answer(200, &[("x-ratelimit-limit", "0.5")]).malformed_count,
        1,
        "a rate, not a limit of zero"
    );
}

#[test]
fn windows_in_values() {
    let window = |value| {
        let feedback = answer(
            200,
            &[("x-ratelimit-limit", "10"), ("x-ratelimit-window", value)],
        );
        (feedback.budgets[0].window, feedback.malformed_count)
    };
    for (value, expected) in [
        ("60", 60),
        ("1s", 1),
        ("minute", 60),
        ("15 minutes", 900),
        ("1 hour", 3600),
        ("Day", 86_400),
    ] {
        assert_eq!(window(value), (Some(secs(expected)), 0), "{value}");
    }
    assert_eq!(window("month"), (None, 0));
    assert_eq!(window("0"), (None, 0));
    assert_eq!(window("fortnight"), (None, 1));
}

#[test]
fn other_explicit_waits() {
    for (name, value, millis) in [
        ("x-retry-in", "1m30s", 90_000),
        ("x-ms-retry-after-ms", "10", 10),
        ("x-ratelimit-retry-after", "41", 41_000),
        ("x-ratelimit-after", "7", 7_000),
        ("x-ratelimit-retry-after-ms", "1500", 1_500),
        ("grpc-retry-pushback-ms", "5000", 5_000),
        ("retry-after", "2013-07-01T17:27:36Z", 30_000),
        ("retry-after", "\"120\"", 120_000),
        ("retry-after", "1m", 60_000),
        ("retry-after", "12000ms", 12_000),
        (
            "retry-after",
            "Mon, 01 Jul 2013 17:27:36 GMT, Mon, 01 Jul 2013 17:27:46 GMT",
            40_000,
        ),
        ("retry-after", "\t 5 ", 5_000),
    ] {
        let feedback = answer(429, &[(name, value)]);
        assert_eq!(
            feedback.wait(),
            Some(Duration::from_millis(millis)),
            "{name}: {value}"
        );
        assert_eq!(feedback.hold.unwrap().field, name);
        assert!(answer(503, &[(name, value)]).refused, "{name}");
    }
    let never = answer(
        200,
        &[("grpc-status", "8"), ("grpc-retry-pushback-ms", "-1")],
    );
    assert_eq!((never.refused, never.hold), (true, None));
}

#[test]
fn marks_of_a_proxy() {
    let mark = ("x-envoy-ratelimited", "true");
    for status in [400, 403, 429, 503] {
        assert!(answer(status, &[mark]).refused, "{status}");
    }
    assert!(!answer(200, &[mark]).refused);
}

#[test]
fn bounds() {
    let fields: Vec<_> = (0..100)
        .map(|n| (format!("x-ratelimit-remaining-b{n}"), (n % 18).to_string()))
        .collect();
    let fields: Vec<_> = fields
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let feedback = answer(200, &fields);
    assert_eq!(feedback.budgets.len(), MAX_BUDGETS);
    assert_eq!(
        feedback
            .budgets
            .iter()
            .filter(|budget| budget.is_spent())
            .count(),
        2,
        "spent ones are kept"
    );
    assert_eq!(feedback.malformed.len(), MAX_MALFORMED);
    assert!(
        feedback.malformed_count > 60,
        "what was not read is counted"
    );
    assert!(
        feedback
            .malformed
            .iter()
            .all(|malformed| malformed.why == Fault::TooMany)
    );

    let long = format!("\"a\";r=1;t=1;x=\"{}\"", "y".repeat(2_000));
    let feedback = answer(200, &[("ratelimit", &long)]);
    assert_eq!(
        (feedback.budgets.len(), feedback.malformed[0].why),
        (0, Fault::TooLong)
    );

    let waits = answer(429, &[("retry-after", &"5,".repeat(600))]);
    assert_eq!((waits.hold, waits.malformed[0].why), (None, Fault::TooLong));
}
