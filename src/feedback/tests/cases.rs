//! Case by case from public bug reports.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, StatusCode};

use super::super::{Fault, Feedback, Hold, Scope, Unit, read};
use super::{DATE, T, answer, at, hold, read_at, secs};

/// C07: a value that is no number is no information; one that is too large is a very long wait.
#[test]
fn c07_values_that_panic_or_mislead() {
    for text in [
        "-5",
        "-0.0",
        "NaN",
        "inf",
        "1e400",
        "",
        " ",
        "+3",
        "3 seconds",
        "1,000",
        "1e3",
        "²",
        "0x10",
        "5;",
        "--5",
        "1.",
        "Infinity",
        "- 5",
        "\u{1F550}",
    ] {
        let feedback = answer(429, &[("retry-after", text)]);
        assert!(feedback.refused, "{text}");
        assert_eq!(feedback.hold, None, "{text}");
        assert_eq!(feedback.wait(), None, "{text}");
        assert_eq!(feedback.malformed_count, 1, "{text}");
        assert_eq!(&*feedback.malformed[0].field, "retry-after", "{text}");
    }
    for text in [
        "99999999999999999999",
        "18446744073709551615",
        &"9".repeat(200),
        "9999999999999999999999.5",
    ] {
        let wait = answer(429, &[("retry-after", text)]).wait().unwrap();
        assert!(wait > secs(1_000_000_000), "{text}: {wait:?}");
    }
    let junk = HeaderValue::from_bytes(b"\xff\xfe5").unwrap();
    let mut map = HeaderMap::new();
    map.insert("retry-after", junk);
    assert_eq!(
        read(StatusCode::TOO_MANY_REQUESTS, &map, at(T)).wait(),
        None
    );
}

/// C17: HTTP-dates are in GMT whatever the local zone, and in three forms.
#[test]
fn c17_http_dates() {
    let wait = |text| read_at(at(1_593_120_492), 429, &[("retry-after", text)]).hold;
    assert_eq!(wait("Thu, 25 Jun 2020 21:30:12 GMT"), hold(secs(120)));
    assert_eq!(wait("Thursday, 25-Jun-20 21:30:12 GMT"), hold(secs(120)));
    assert_eq!(wait("Thu Jun 25 21:30:12 2020"), hold(secs(120)));
    assert_eq!(wait("Thu, 25 Jun 2020 21:28:02 GMT"), hold(Duration::ZERO));
    assert_eq!(wait("Thu, 31 Feb 2020 00:00:00 GMT"), None);
    assert_eq!(wait("-5"), None);
}

/// C18: an absolute reset is measured against the server's own clock, and a relative one needs none.
#[test]
fn c18_the_local_clock_does_not_matter() {
    let spent = |now, more: &[(&str, &str)]| {
        let fields = [&[("x-ratelimit-remaining", "0")], more].concat();
        read_at(now, 429, &fields).wait()
    };
    let reset = ("x-ratelimit-reset", "1372699631");
    for now in [T - 40, T + 40, T] {
        assert_eq!(
            spent(at(now), &[DATE, reset]),
            Some(secs(5)),
            "local clock {now}"
        );
    }
    assert_eq!(
        spent(at(T + 40), &[reset]),
        Some(Duration::ZERO),
        "no Date: past, so no hint"
    );
    for now in [T - 40, T + 40] {
        let both = [
            DATE,
            ("x-ratelimit-reset-after", "5.000"),
            ("x-ratelimit-reset", "1372699999"),
        ];
        assert_eq!(
            spent(at(now), &both),
            Some(secs(5)),
            "relative beats absolute"
        );
    }
    assert_eq!(
        spent(at(T), &[DATE, ("x-ratelimit-reset", "1372699626")]),
        Some(Duration::ZERO)
    );
    let both = [
        DATE,
        ("x-ratelimit-reset", "1372699626"),
        ("x-ratelimit-reset-after", "0.5"),
    ];
    assert_eq!(spent(at(T), &both), Some(Duration::from_millis(500)));
}

/// C18: a `Date` that cannot be read is as good as none.
#[test]
fn c18_a_bad_date_is_passed_over() {
    let fields = [
        ("date", "today"),
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "1372699631"),
    ];
    assert_eq!(read_at(at(T), 429, &fields).wait(), Some(secs(5)));
}

/// C19: the same name, three units.
#[test]
fn c19_reset_units() {
    let spent = |status, reset| {
        answer(
            status,
            &[
                DATE,
                ("x-ratelimit-remaining", "0"),
                ("x-ratelimit-reset", reset),
            ],
        )
    };
    for reset in ["1372700873", "1247", "1372700873000"] {
        assert_eq!(spent(429, reset).wait(), Some(secs(1247)), "{reset}");
        assert_eq!(spent(200, reset).wait(), Some(secs(1247)), "{reset}");
    }
    assert_eq!(spent(200, "1372699625").wait(), Some(Duration::ZERO));
    assert_eq!(
        spent(429, "1372699625").budgets[0].reset,
        Some(Duration::ZERO)
    );
    assert_eq!(
        answer(429, &[DATE, ("retry-after", "1372700873")]).wait(),
        Some(secs(1247))
    );
    let draft = answer(429, &[DATE, ("ratelimit", "\"a\";r=0;t=1372700873")]);
    assert_eq!(draft.wait(), None, "t is always a delay, here of 43 years");
    assert_eq!(draft.malformed[0].why, Fault::Implausible);
}

/// C20: durations and timestamps.
#[test]
fn c20_reset_forms() {
    let spent = |reset| {
        let fields = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", reset)];
        read_at(at(1_767_225_600), 429, &fields).wait()
    };
    for (text, millis) in [
        ("6m0s", 360_000),
        ("1m30s", 90_000),
        ("500ms", 500),
        ("17ms", 17),
        ("1.5s", 1_500),
        ("2m59.56s", 179_560),
        ("23h47m36.648s", 85_656_648),
        ("2026-01-01T00:00:30Z", 30_000),
        ("2026-01-01T01:00:30+01:00", 30_000),
    ] {
        assert_eq!(spent(text), Some(Duration::from_millis(millis)), "{text}");
    }
    let two = answer(
        429,
        &[
            ("x-ratelimit-remaining-requests", "59"),
            ("x-ratelimit-reset-requests", "1s"),
            ("x-ratelimit-remaining-tokens", "0"),
            ("x-ratelimit-reset-tokens", "6m0s"),
        ],
    );
    assert_eq!(two.wait(), Some(secs(360)), "the spent budget decides");
    assert_eq!(two.reset_on_refusal(), Some(secs(360)));
}

/// C23: refusals under other statuses.
#[test]
fn c23_other_statuses() {
    let a = answer(
        403,
        &[("retry-after", "60"), ("x-ratelimit-remaining", "4999")],
    );
    assert!(a.refused);
    assert_eq!(a.wait(), Some(secs(60)));

    let b = answer(
        403,
        &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "25")],
    );
    assert!(b.refused);
    assert_eq!(b.wait(), Some(secs(25)));

    assert_eq!(answer(403, &[]), Feedback::default());

    let d = answer(
        429,
        &[("x-ratelimit-remaining", "14"), ("x-ratelimit-reset", "25")],
    );
    assert_eq!((d.refused, d.wait()), (true, None));
    assert_eq!(d.reset_on_refusal(), Some(secs(25)));
    let two = [("ratelimit", "\"a\";r=5;t=60, \"b\";r=5;t=25, \"c\";r=5;t=0")];
    assert_eq!(
        answer(429, &two).reset_on_refusal(),
        Some(secs(25)),
        "the nearest instant named"
    );
    let passed = answer(
        200,
        &[("x-ratelimit-remaining", "14"), ("x-ratelimit-reset", "25")],
    );
    assert_eq!(passed.reset_on_refusal(), None);

    for status in [418, 420, 503] {
        assert!(answer(status, &[("retry-after", "7")]).refused, "{status}");
        assert!(!answer(status, &[]).refused, "{status}");
    }
    assert!(answer(200, &[("grpc-status", "8")]).refused);
    assert!(!answer(200, &[("grpc-status", "14")]).refused);
}

/// C24: a budget spent on a success.
#[test]
fn c24_spent_on_success() {
    let fields = [
        ("ratelimit-limit", "10"),
        ("ratelimit-remaining", "0"),
        ("ratelimit-reset", "10"),
    ];
    let spent = answer(200, &fields);
    assert_eq!(
        (spent.refused, spent.hold, spent.wait()),
        (false, None, Some(secs(10)))
    );

    let fields = [
        ("ratelimit-remaining", "2"),
        ("x-ratelimit-reset-after", "10"),
    ];
    let open = answer(200, &fields);
    assert_eq!(open.wait(), None);
    let budget = open
        .budgets
        .iter()
        .find(|budget| budget.remaining.is_some())
        .unwrap();
    assert_eq!(budget.remaining, Some(2));
}

/// C26: zero is no hint, a fraction is not zero, and a success holds nobody.
#[test]
fn c26_zero() {
    let zero = answer(429, &[("retry-after", "0")]);
    assert_eq!(zero.hold, hold(Duration::ZERO));
    assert_eq!(zero.wait(), Some(Duration::ZERO));
    assert_eq!(zero.reset_on_refusal(), None);

    let fields = [
        ("retry-after", "0"),
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset-after", "36"),
    ];
    let with_reset = answer(429, &fields);
    assert_eq!(with_reset.wait(), Some(secs(36)));
    assert_eq!(with_reset.reset_on_refusal(), Some(secs(36)));
    let unspent = answer(
        429,
        &[("retry-after", "0"), ("x-ratelimit-reset-after", "36")],
    );
    assert_eq!(unspent.reset_on_refusal(), Some(secs(36)));

    assert_eq!(
        answer(429, &[("retry-after", "0.493")]).wait(),
        Some(Duration::from_millis(493))
    );
    assert_eq!(answer(200, &[("retry-after", "0")]), Feedback::default());
}

/// C43 (b): a limit over every route says so.
#[test]
fn c43_global() {
    for fields in [
        [
            ("x-ratelimit-global", "true"),
            ("x-ratelimit-scope", "user"),
        ],
        [
            ("x-ratelimit-scope", "user"),
            ("x-ratelimit-global", "true"),
        ],
    ] {
        assert_eq!(answer(429, &fields).scope, Scope::Global);
    }
    assert_eq!(
        answer(429, &[("x-ratelimit-global", "true")]).scope,
        Scope::Global
    );
    assert_eq!(
        answer(429, &[("x-ratelimit-scope", "global")]).scope,
        Scope::Global
    );
    assert_eq!(
        answer(429, &[("x-ratelimit-scope", "shared")]).scope,
        Scope::Shared
    );
    assert_eq!(
        answer(429, &[("x-ratelimit-global", "false")]).scope,
        Scope::Unspecified
    );
}

/// C56: `Retry-After` counts on 503 and redirects, and on no success.
#[test]
fn c56_retry_after_elsewhere() {
    let seven = [("retry-after", "7")];
    assert_eq!(answer(503, &seven).hold, hold(secs(7)));
    assert_eq!(answer(500, &[]), Feedback::default());
    let moved = answer(301, &seven);
    assert_eq!((moved.refused, moved.hold), (false, hold(secs(7))));
    assert_eq!(answer(200, &seven), Feedback::default());
}

/// C71: many policies, many lines, many spellings.
#[test]
fn c71_lines_and_policies() {
    for fields in [
        vec![("ratelimit", "\"p1\";r=20;t=20, \"p2\";r=0;t=300")],
        vec![
            ("ratelimit", "\"p1\";r=20;t=20"),
            ("RateLimit", "\"p2\";r=0;t=300"),
        ],
    ] {
        let both = answer(429, &fields);
        assert_eq!(both.budgets.len(), 2);
        assert_eq!(both.wait(), Some(secs(300)));
    }
    for fields in [
        vec![
            ("x-ratelimit-remaining", "14"),
            ("X-RateLimit-Remaining", "3"),
        ],
        vec![("x-ratelimit-remaining", "14, 3")],
    ] {
        let low = answer(200, &fields);
        assert_eq!(low.budgets.len(), 1);
        assert_eq!(low.budgets[0].remaining, Some(3));
    }
    let list = [
        ("ratelimit-limit", "10, 10;w=1, 50;w=60"),
        ("ratelimit-remaining", "4"),
        ("ratelimit-reset", "9"),
    ];
    let list = answer(200, &list);
    let budget = list
        .budgets
        .iter()
        .find(|budget| budget.remaining.is_some())
        .unwrap();
    assert_eq!(
        (budget.limit, budget.remaining, budget.reset),
        (Some(10), Some(4), Some(secs(9)))
    );
    assert_eq!(budget.window, Some(secs(1)), "the policy of its quota");
    let twins = [
        ("ratelimit-limit", "10, 10;w=1, 10;w=60"),
        ("ratelimit-remaining", "4"),
        ("ratelimit-reset", "9"),
    ];
    let twins = answer(200, &twins);
    let budget = twins
        .budgets
        .iter()
        .find(|budget| budget.remaining.is_some())
        .unwrap();
    assert_eq!(
        budget.window,
        Some(secs(60)),
        "a window of a second is over in less than nine"
    );

    let no_reset = answer(
        200,
        &[("x-ratelimit-limit", "60"), ("x-ratelimit-remaining", "0")],
    );
    assert_eq!(no_reset.wait(), None);
    for prefix in [
        "x-rate-limit",
        "x-ratelimit",
        "rate-limit",
        "ratelimit",
        "X-RATE-LIMIT",
    ] {
        let fields = [
            (format!("{prefix}-remaining"), "0"),
            (format!("{prefix}-reset"), "8"),
        ];
        let fields: Vec<_> = fields
            .iter()
            .map(|(name, value)| (name.as_str(), *value))
            .collect();
        assert_eq!(answer(200, &fields).wait(), Some(secs(8)), "{prefix}");
    }
    let suffix = answer(
        200,
        &[
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-reset-requests", "8s"),
        ],
    );
    assert_eq!(
        (suffix.wait(), suffix.budgets[0].unit),
        (Some(secs(8)), Unit::Requests)
    );
}

/// RFC 9651 section 4.2: one fault voids a structured field, and nothing else.
#[test]
fn a_broken_structured_field_is_dropped_alone() {
    let fields = [
        ("ratelimit", "\"a\";r=0;t=30"),
        ("ratelimit", "b;r=;t=1"),
        ("ratelimit-policy", "\"a\";q=10;w=60"),
        ("x-ratelimit-remaining", "7"),
    ];
    let feedback = answer(200, &fields);
    assert_eq!(feedback.malformed_count, 1);
    assert_eq!(
        (&*feedback.malformed[0].field, feedback.malformed[0].why),
        ("ratelimit", Fault::Syntax)
    );
    assert_eq!(feedback.budgets.len(), 2);
    assert_eq!(feedback.wait(), None);
}

/// Draft-10 section 7.3: counters from a cache are somebody's past.
#[test]
fn a_cached_answer_has_no_budgets() {
    let spent = ("ratelimit", "\"a\";r=0;t=30");
    let cached = answer(200, &[("age", "30"), spent]);
    assert_eq!(
        (cached.cached, cached.budgets.len(), cached.wait()),
        (true, 0, None)
    );
    for age in ["0", "000", "-3", "old"] {
        assert_eq!(
            answer(200, &[("age", age), spent]).wait(),
            Some(secs(30)),
            "{age}"
        );
    }
}

/// `Retry-After` counts before a reset, longer or shorter.
#[test]
fn an_explicit_wait_beats_a_reset() {
    for retry in [5, 50] {
        let text = retry.to_string();
        let fields = [
            ("retry-after", text.as_str()),
            ("ratelimit", "\"a\";r=0;t=20"),
        ];
        assert_eq!(answer(429, &fields).wait(), Some(secs(retry)));
    }
    let two = answer(
        429,
        &[
            ("retry-after", "5"),
            ("retry-after", "10"),
            ("retry-after-ms", "7000"),
        ],
    );
    assert_eq!(two.hold, hold(secs(10)));
    let finer = answer(429, &[("retry-after", "1"), ("retry-after-ms", "1500")]);
    assert_eq!(
        finer.hold,
        Some(Hold {
            wait: Duration::from_millis(1500),
            field: "retry-after-ms"
        })
    );
}
