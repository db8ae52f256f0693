//! The families of field names, as real servers send them.

use super::super::{Fault, Unit};
use super::{answer, check, rows};

#[test]
fn windows_and_kinds_in_names() {
    check(
        &[
            ("x-ratelimit-limit-req-10-second", "60"),
            ("x-ratelimit-remaining-req-10-second", "53"),
            ("x-ratelimit-limit-tokens-month", "1000"),
            ("x-ratelimit-remaining-tokens-month", "900"),
            ("x-ratelimit-tokens-query-cost", "110"),
        ],
        &[
            (Some("req-10-second"), Some(60), Some(53), None, Some(10)),
            (Some("tokens-month"), Some(1000), Some(900), None, None),
        ],
    );
    check(
        &[
            ("x-rate-limit-api-key-interval-ms", "300000"),
            ("x-rate-limit-api-key-max", "300"),
            ("x-rate-limit-api-key-remaining", "299"),
            ("x-rate-limit-db-query-time-interval-ms", "600000"),
            ("x-rate-limit-db-query-time-max", "7200000"),
        ],
        &[
            (Some("api-key"), Some(300), Some(299), None, Some(300)),
            (
                Some("db-query-time"),
                Some(7_200_000),
                None,
                None,
                Some(600),
            ),
        ],
    );
    check(
        &[
            ("brand-perminuteratelimit-limit", "60"),
            ("brand-perminuteratelimit-remaining", "59"),
        ],
        &[(Some("perminute"), Some(60), Some(59), None, Some(60))],
    );
}

#[test]
fn units_by_name() {
    let feedback = answer(
        200,
        &[
            ("x-ratelimit-remaining-input-tokens", "1"),
            ("x-ratelimit-remaining-concurrent", "1"),
            ("x-ratelimit-remaining-bytes", "1"),
            ("x-ratelimit-remaining-complexity", "1"),
            ("x-ratelimit-remaining-api-token", "1"),
            ("x-ratelimit-remaining", "1"),
        ],
    );
    let unit = |name: Option<&str>| {
        feedback
            .budgets
            .iter()
            .find(|budget| budget.name.as_deref() == name)
            .unwrap()
            .unit
    };
    assert_eq!(unit(Some("input-tokens")), Unit::Tokens);
    assert_eq!(unit(Some("concurrent")), Unit::Concurrency);
    assert_eq!(unit(Some("bytes")), Unit::Bytes);
    assert_eq!(unit(Some("complexity")), Unit::Other);
    assert_eq!(
        unit(Some("api-token")),
        Unit::Requests,
        "an API token is a credential"
    );
    assert_eq!(unit(None), Unit::Requests);
}

#[test]
fn names_in_values() {
    let trio = |name, value| {
        [
            (name, value),
            ("x-ratelimit-limit", "10"),
            ("x-ratelimit-remaining", "9"),
        ]
    };
    for name in [
        "x-ratelimit-resource",
        "x-ratelimit-bucket",
        "x-ratelimit-name",
        "x-ratelimit-zone",
        "x-ratelimit-by",
    ] {
        check(
            &trio(name, "core"),
            &[(Some("core"), Some(10), Some(9), None, None)],
        );
    }
    let both = [
        &trio("x-ratelimit-type", "Daily")[..],
        &[("x-ratelimit-category", "Heavy")],
    ]
    .concat();
    check(&both, &[(Some("Heavy"), Some(10), Some(9), None, None)]);
    let long = "ä".repeat(100);
    let feedback = answer(200, &trio("x-ratelimit-name", &long));
    assert_eq!(
        feedback.budgets[0].name.as_deref(),
        Some(&*"ä".repeat(32)),
        "64 bytes, cut at a character"
    );
}

#[test]
fn policies_find_their_counter() {
    check(
        &[
            (
                "x-ratelimit-limit",
                "10, 10;w=1;name=\"per-ip\", 1000;w=3600",
            ),
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset", "1"),
        ],
        &[
            (None, Some(1000), None, None, Some(3600)),
            (Some("per-ip"), Some(10), Some(0), Some(1), Some(1)),
        ],
    );
    check(
        &[
            ("ratelimit-limit", "100;w=21600"),
            ("ratelimit-remaining", "76;w=21600"),
        ],
        &[(None, Some(100), Some(76), None, Some(21600))],
    );
    check(
        &[
            ("x-ratelimit-limit", "60, 60;w=3600"),
            ("x-ratelimit-remaining", "8"),
            ("x-ratelimit-resource", "api"),
        ],
        &[(Some("api"), Some(60), Some(8), None, Some(3600))],
    );
    check(
        &[
            ("ratelimit-limit", "10;w=1, 50;w=60"),
            ("ratelimit-remaining", "9;w=1, 0;w=60"),
        ],
        &[
            (None, Some(10), Some(0), None, Some(1)),
            (None, Some(50), None, None, Some(60)),
        ],
    );
    check(
        &[
            ("x-app-rate-limit-limit", "10, 10;w=1, 50;w=60"),
            ("x-app-rate-limit-remaining", "4"),
        ],
        &[
            (Some("app"), Some(10), Some(4), None, Some(1)),
            (Some("app"), Some(50), None, None, Some(60)),
        ],
    );
    // A dynamic limit has no policy of its size.
    check(
        &[
            ("ratelimit", "limit=15, remaining=15, reset=40"),
            ("ratelimit-policy", "100;w=60"),
        ],
        &[
            (None, Some(15), Some(15), Some(40), None),
            (None, Some(100), None, None, Some(60)),
        ],
    );
    // Two layers with one limit, joined on the way.
    check(
        &[
            ("x-ratelimit-limit", "100, 100;window=60"),
            ("x-ratelimit-limit", "100, 100;window=60"),
            ("x-ratelimit-remaining", "98, 98"),
            ("x-ratelimit-reset", "3, 3"),
        ],
        &[(None, Some(100), Some(98), Some(3), Some(60))],
    );
}

#[test]
fn named_policies() {
    let key = "pk=:dXNlcjE=:";
    let feedback = answer(
        200,
        &[
            (
                "ratelimit-policy",
                &format!("\"a\";q=10;w=60;{key}, \"a\";q=100;w=60;pk=:YXBwMQ==:"),
            ),
            (
                "ratelimit",
                &format!("\"a\";r=70;t=12;pk=:YXBwMQ==:, \"a\";r=0;t=12;{key}"),
            ),
        ],
    );
    let spent = feedback
        .budgets
        .iter()
        .find(|budget| budget.is_spent())
        .unwrap();
    assert_eq!(
        (spent.limit, spent.partition.as_deref()),
        (Some(10), Some(&b"user1"[..]))
    );
    assert_eq!(feedback.budgets.len(), 2);

    let alike = "\"a\";q=10;w=60;pk=:dXNlcjE=:, \"a\";q=10;w=60;pk=:YXBwMQ==:";
    assert_eq!(answer(200, &[("ratelimit-policy", alike)]).budgets.len(), 2);

    let unit = |unit: &str| {
        answer(
            200,
            &[(
                "ratelimit-policy",
                &format!("\"a\";q=10;w=60;qu=\"{unit}\""),
            )],
        )
        .budgets[0]
            .unit
    };
    assert_eq!(unit("content-bytes"), Unit::Bytes);
    assert_eq!(unit("concurrent-requests"), Unit::Concurrency);
    assert_eq!(unit("requests"), Unit::Requests);
    assert_eq!(unit("bananas"), Unit::Other);
}

#[test]
fn members_without_what_they_must_have_are_dropped_alone() {
    let feedback = answer(
        200,
        &[
            (
                "ratelimit-policy",
                "quota;q=100;w=1, \"a\";w=1, \"b\";q=-1, \"c\";q=5;w=0",
            ),
            (
                "ratelimit",
                "quota;r=1;t=1, \"a\";t=1, \"b\";r=-1;t=30, \"d\";r=3;t=1.5",
            ),
        ],
    );
    assert_eq!(
        rows(&feedback),
        [
            (Some("c"), Some(5), None, None, None),
            (Some("d"), None, Some(3), None, None)
        ],
        "no window of zero, no reset with a fraction"
    );
    assert_eq!(feedback.malformed_count, 7);
    assert!(
        feedback
            .malformed
            .iter()
            .all(|malformed| malformed.why == Fault::Incomplete)
    );
}

#[test]
fn one_budget_under_two_names_counts_once() {
    let trio = [
        ("x-ratelimit-limit", "100"),
        ("x-ratelimit-remaining", "60"),
        ("x-ratelimit-reset", "58"),
    ];
    let list = [
        ("ratelimit-policy", "\"default\";q=100;w=60"),
        ("ratelimit", "\"default\";r=60;t=58"),
    ];
    check(
        &[&trio[..], &list].concat(),
        &[(Some("default"), Some(100), Some(60), Some(58), Some(60))],
    );

    // An epoch under one name and a delay under the other can be a second apart; the later counts.
    for (epoch, reset) in [("1372699685", 59), ("1372699683", 58)] {
        let trio = [
            ("x-ratelimit-limit", "100"),
            ("x-ratelimit-remaining", "60"),
            ("x-ratelimit-reset", epoch),
        ];
        check(
            &[&list[..], &trio].concat(),
            &[(Some("default"), Some(100), Some(60), Some(reset), Some(60))],
        );
    }

    let other = [("x-rate-limit", "100"), ("x-rate-limit-remaining", "60")];
    check(
        &[&trio[..], &other].concat(),
        &[(None, Some(100), Some(60), Some(58), None)],
    );

    // Bytes are no requests, whatever the numbers.
    let bytes = [
        ("ratelimit-policy", "\"b\";q=100;w=60;qu=\"content-bytes\""),
        ("ratelimit", "\"b\";r=60;t=58"),
    ];
    assert_eq!(answer(200, &[&trio[..], &bytes].concat()).budgets.len(), 2);
    // The same counts in two windows are not known to be the same.
    let minute = [
        ("x-brand-ratelimit-limit-minute", "100"),
        ("x-brand-ratelimit-remaining-minute", "60"),
    ];
    assert_eq!(answer(200, &[&trio[..], &minute].concat()).budgets.len(), 2);
    // Nor are two sets that share nothing.
    let apart = [
        ("x-ratelimit-limit", "100"),
        ("fastly-ratelimit-reset", "58"),
    ];
    assert_eq!(answer(200, &apart).budgets.len(), 2);
}

#[test]
fn a_nameless_set_completes_a_named_one() {
    check(
        &[
            ("ratelimit-dailylimit", "5000"),
            ("ratelimit-remaining", "4990"),
            ("ratelimit-resettime", "600"),
        ],
        &[(
            Some("daily"),
            Some(5000),
            Some(4990),
            Some(600),
            Some(86_400),
        )],
    );
    check(
        &[
            ("x-rate-limit-requests-left", "19"),
            ("x-rate-limit-requests-quota", "20"),
            ("x-rate-limit-time-reset-ms", "15000"),
            ("x-rate-limit-time-window-ms", "30000"),
        ],
        &[(Some("requests"), Some(20), Some(19), Some(15), Some(30))],
    );
    // Both show a limit, so they are two.
    check(
        &[
            ("x-ratelimit-limit", "10"),
            ("x-ratelimit-remaining", "5"),
            ("x-ratelimit-limit-tokens", "100"),
        ],
        &[
            (None, Some(10), Some(5), None, None),
            (Some("tokens"), Some(100), None, None, None),
        ],
    );
    // With two named sets there is no telling.
    check(
        &[
            ("x-ratelimit-limit-burst", "10"),
            ("x-ratelimit-limit-second", "2"),
            ("x-ratelimit-remaining", "0"),
        ],
        &[
            (None, None, Some(0), None, None),
            (Some("burst"), Some(10), None, None, None),
            (Some("second"), Some(2), None, None, Some(1)),
        ],
    );
}

#[test]
fn ordinary_words_count_only_as_a_pair() {
    check(
        &[("x-limit-per-day", "10000"), ("x-remaining-today", "9998")],
        &[(Some("day"), Some(10000), Some(9998), None, Some(86_400))],
    );
    check(
        &[
            ("x-upload-limit", "5"),
            ("x-some-reset", "soon"),
            ("x-items-remaining", "7"),
        ],
        &[],
    );
    check(
        &[
            ("x-upload-limit", "5MB"),
            ("sforce-limit-info", "api-usage=1/2"),
            ("content-limit", "3"),
        ],
        &[],
    );
    let concurrency = answer(200, &[("x-concurrency-limit", "5")]);
    assert_eq!(concurrency.budgets[0].unit, Unit::Concurrency);
}
