//! More left than the limit: one of the two numbers is wrong, and the one that never sends earlier counts.

use tower_throttle::feedback::{Dialect, Fault, Meaning, Reader, Rule, Unit};

use crate::read::{answer, answer_in, only_budget, only_fault};

type Fields = &'static [(&'static str, &'static str)];

/// Limit 5 and 5000 left, in every dialect the reader knows; and the field that says what is left.
const ABOVE: [(&str, Fields); 24] = [
    (
        "x-ratelimit-remaining",
        &[
            ("x-ratelimit-limit", "5"),
            ("x-ratelimit-remaining", "5000"),
        ],
    ),
    (
        "x-ratelimit-remaining",
        &[
            ("x-ratelimit-remaining", "5000"),
            ("x-ratelimit-reset", "60"),
            ("x-ratelimit-limit", "5"),
        ],
    ),
    (
        "x-rate-limit-remaining",
        &[
            ("x-rate-limit-limit", "5"),
            ("x-rate-limit-remaining", "5000"),
            ("x-rate-limit-reset", "1559559660"),
        ],
    ),
    (
        "ratelimit-remaining",
        &[
            ("ratelimit-limit", "5"),
            ("ratelimit-remaining", "5000"),
            ("ratelimit-reset", "60"),
        ],
    ),
    (
        "ratelimit-remaining",
        &[
            ("ratelimit-limit", "5, 5;w=60"),
            ("ratelimit-remaining", "5000"),
        ],
    ),
    (
        "ratelimit-remaining",
        &[
            ("ratelimit-limit", "5;w=21600"),
            ("ratelimit-remaining", "5000;w=21600"),
        ],
    ),
    (
        "ratelimit-remaining",
        &[
            ("ratelimit-limit", "5"),
            ("ratelimit-policy", "5;w=60"),
            ("ratelimit-remaining", "5000"),
        ],
    ),
    (
        "rate-limit-remaining",
        &[("rate-limit-limit", "5"), ("rate-limit-remaining", "5000")],
    ),
    (
        "ratelimit",
        &[("ratelimit", "limit=5, remaining=5000, reset=60")],
    ),
    (
        "ratelimit",
        &[
            ("ratelimit-policy", "\"a\";q=5;w=60"),
            ("ratelimit", "\"a\";r=5000;t=30"),
        ],
    ),
    (
        "ratelimit",
        &[
            ("ratelimit", "\"a\";r=5000;pk=:dXNlcjE=:"),
            ("ratelimit-policy", "\"a\";q=5;w=60;pk=:dXNlcjE=:"),
        ],
    ),
    (
        "x-ratelimit-remaining-requests",
        &[
            ("x-ratelimit-limit-requests", "5"),
            ("x-ratelimit-remaining-requests", "5000"),
            ("x-ratelimit-reset-requests", "6m0s"),
        ],
    ),
    (
        "anthropic-ratelimit-tokens-remaining",
        &[
            ("anthropic-ratelimit-tokens-limit", "5"),
            ("anthropic-ratelimit-tokens-remaining", "5000"),
            ("anthropic-ratelimit-tokens-reset", "2019-06-03T11:01:00Z"),
        ],
    ),
    (
        "x-ratelimit-remaining-minute",
        &[
            ("x-ratelimit-limit-minute", "5"),
            ("x-ratelimit-remaining-minute", "5000"),
        ],
    ),
    (
        "x-ratelimit-remaining-second",
        &[
            ("x-ratelimit-limit-second", "5"),
            ("x-ratelimit-remaining-second", "5000"),
        ],
    ),
    (
        "x-hubspot-ratelimit-daily-remaining",
        &[
            ("x-hubspot-ratelimit-daily", "5"),
            ("x-hubspot-ratelimit-daily-remaining", "5000"),
        ],
    ),
    (
        "x-remaining-today",
        &[("x-limit-per-day", "5"), ("x-remaining-today", "5000")],
    ),
    (
        "ratelimit-remaining",
        &[
            ("ratelimit-dailylimit", "5"),
            ("ratelimit-remaining", "5000"),
            ("ratelimit-resettime", "600"),
        ],
    ),
    (
        "x-ratelimit",
        &[("x-ratelimit", "{\"limit\":5,\"remaining\":5000}")],
    ),
    (
        "zendesk-ratelimit-tickets-index",
        &[(
            "zendesk-ratelimit-tickets-index",
            "total=5; remaining=5000; resets=41",
        )],
    ),
    (
        "x-rate-limit",
        &[("x-rate-limit", "user-hour-lim:5;user-hour-rem:5000;")],
    ),
    // The limit and what is left of it in two sets.
    (
        "x-rate-limit-requests-left",
        &[
            ("x-rate-limit-time-reset-ms", "15000"),
            ("x-rate-limit-requests-left", "5000"),
            ("x-rate-limit-requests-quota", "5"),
        ],
    ),
    (
        "ratelimit-remaining",
        &[
            ("x-rate-limit-limit", "5"),
            ("ratelimit-limit", "5"),
            ("ratelimit-remaining", "5000"),
            ("ratelimit-reset", "60"),
        ],
    ),
    // The largest number there is, also as one that does not fit.
    (
        "x-ratelimit-remaining",
        &[
            ("x-ratelimit-limit", "5"),
            ("x-ratelimit-remaining", "99999999999999999999999"),
        ],
    ),
];

#[test]
fn more_left_than_the_limit_is_read_as_the_limit_and_counted() {
    for (field, fields) in ABOVE {
        let feedback = answer(200, fields);
        let budget = only_budget(&feedback);
        let counts = (budget.limit, budget.remaining);
        assert_eq!(counts, (Some(5), Some(5)), "{fields:?}");
        assert_eq!(only_fault(&feedback), (field, Fault::AboveLimit));
    }
}

/// The same budget under two names is one fault.
#[test]
fn a_budget_under_two_names_is_counted_once() {
    let feedback = answer(
        200,
        &[
            ("x-ratelimit-limit", "5"),
            ("x-ratelimit-remaining", "5000"),
            ("x-ratelimit-reset", "60"),
            ("ratelimit", "limit=5, remaining=5000, reset=60"),
        ],
    );
    assert_eq!(only_budget(&feedback).remaining, Some(5));
    assert_eq!(only_fault(&feedback).1, Fault::AboveLimit);
}

#[test]
fn two_joined_sets_are_bounded_each_by_its_own_limit() {
    let feedback = answer(
        200,
        &[
            ("x-ratelimit-limit", "1000, 60"),
            ("x-ratelimit-remaining", "61, 61"),
            ("x-ratelimit-reset", "3480, 55"),
        ],
    );
    let left: Vec<_> = feedback
        .budgets
        .iter()
        .map(|budget| budget.remaining)
        .collect();
    assert_eq!(left, [Some(61), Some(60)]);
    assert_eq!(feedback.malformed_count, 1);
}

/// A dialect's own fields are no exception.
#[test]
fn what_a_dialect_reads_is_bounded_too() {
    let plain = Dialect::new()
        .rule(Rule::new("x-calls-max", Meaning::Limit))
        .rule(Rule::new("x-calls-left", Meaning::Remaining));
    let grouped = Dialect::new()
        .rule(Rule::new("x-calls-max", Meaning::Limit))
        .rule(
            Rule::new("x-calls-left", Meaning::Remaining)
                .grouped()
                .unit(Unit::Time),
        );
    for (dialect, left) in [(plain, "5000"), (grouped, "5,000.5")] {
        let reader = Reader::new().dialect(dialect);
        let feedback = answer_in(
            &reader,
            200,
            &[("x-calls-max", "5"), ("x-calls-left", left)],
        );
        assert_eq!(only_budget(&feedback).remaining, Some(5));
        assert_eq!(only_fault(&feedback), ("x-calls-left", Fault::AboveLimit));
    }
    let reader = Reader::new().dialect(Dialect::bybit());
    let fields = [("x-bapi-limit", "5"), ("x-bapi-limit-status", "5000")];
    let feedback = answer_in(&reader, 200, &fields);
    assert_eq!(only_budget(&feedback).remaining, Some(5));
    assert_eq!(
        only_fault(&feedback),
        ("x-bapi-limit-status", Fault::AboveLimit)
    );
}

/// Where the limit that is shown is not the most there is, all that is left is believed.
#[test]
fn a_limit_that_is_a_rate_or_one_of_several_bounds_nothing() {
    let legitimate: [(&str, Fields, u64); 5] = [
        (
            "tollbooth and its like: the rate, and what its bucket still holds",
            &[
                ("ratelimit-limit", "20"),
                ("ratelimit-remaining", "99"),
                ("ratelimit-reset", "1"),
                ("x-rate-limit-limit", "20.00"),
                ("x-rate-limit-duration", "1"),
            ],
            99,
        ),
        (
            "Spring: the rate, the burst on top, and what is left of that",
            &[
                ("x-ratelimit-remaining", "19"),
                ("x-ratelimit-limit", "10"),
                ("x-ratelimit-burst-capacity", "20"),
                ("x-ratelimit-replenish-rate", "10"),
            ],
            19,
        ),
        (
            "a counter of another policy than the one shown first",
            &[
                ("x-ratelimit-limit", "10, 10;w=1, 1000;w=3600"),
                ("x-ratelimit-remaining", "900"),
                ("x-ratelimit-reset", "1800"),
            ],
            900,
        ),
        (
            "a limit that was lowered while the window runs",
            &[
                ("ratelimit", "limit=15, remaining=40, reset=40"),
                ("ratelimit-policy", "100;w=60"),
            ],
            40,
        ),
        (
            "all of it",
            &[("x-ratelimit-limit", "5"), ("x-ratelimit-remaining", "5")],
            5,
        ),
    ];
    for (what, fields, left) in legitimate {
        let feedback = answer(200, fields);
        let most = feedback
            .budgets
            .iter()
            .filter_map(|budget| budget.remaining);
        assert_eq!(most.max(), Some(left), "{what}: {feedback:?}");
        assert_eq!(feedback.malformed_count, 0, "{what}: {feedback:?}");
    }
    let dialect = Dialect::new()
        .rule(Rule::new("x-amzn-ratelimit-limit", Meaning::Rate))
        .rule(Rule::new("x-amzn-ratelimit-remaining", Meaning::Remaining));
    let fields = [
        ("x-amzn-ratelimit-limit", "0.0167"),
        ("x-amzn-ratelimit-remaining", "15"),
        ("x-amzn-ratelimit-reset", "600"),
    ];
    let feedback = answer_in(&Reader::new().dialect(dialect), 200, &fields);
    assert_eq!(only_budget(&feedback).remaining, Some(15), "a rate");
    assert_eq!(feedback.malformed_count, 0);
}

/// A limit of zero of which something is left is no limit. Read as the limit, nothing would be left, and everybody would wait for one
/// wrong field.
#[test]
fn of_a_limit_of_zero_nothing_can_be_left() {
    let fields = [
        ("x-ratelimit-limit", "0"),
        ("x-ratelimit-remaining", "9"),
        ("x-ratelimit-reset", "3600"),
    ];
    let feedback = answer(200, &fields);
    let budget = only_budget(&feedback);
    assert_eq!((budget.limit, budget.remaining), (None, Some(9)));
    assert_eq!(feedback.wait(), None);
    let fault = ("x-ratelimit-remaining", Fault::AboveLimit);
    assert_eq!(only_fault(&feedback), fault);
}
