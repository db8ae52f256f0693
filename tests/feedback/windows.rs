//! Windows that are written out in names.

use std::time::Duration;

use tower_throttle::feedback::Unit;

use crate::read::{answer, only_budget};

const SECOND: u64 = 1;
const MINUTE: u64 = 60;
const HOUR: u64 = 3_600;
const DAY: u64 = 86_400;

/// A name with `*` for the role, the budget's name and its window; 0 for none of a fixed length.
const WRITTEN_OUT: [(&str, &str, u64); 32] = [
    // As it has always been, for comparison.
    ("x-ratelimit-*-minute", "minute", MINUTE),
    ("x-ratelimit-*-requests-minute", "requests-minute", MINUTE),
    ("x-ratelimit-*-per-minute", "minute", MINUTE),
    (
        "x-ratelimit-*-requests-per-minute",
        "requests-minute",
        MINUTE,
    ),
    (
        "X-RateLimit-*-Requests-Per-Minute",
        "requests-minute",
        MINUTE,
    ),
    ("ratelimit-*-requests-per-second", "requests-second", SECOND),
    ("x-ratelimit-*-per_second", "second", SECOND),
    ("x-ratelimit-*-requests_per_hour", "requests-hour", HOUR),
    ("x-ratelimit-*-tokens-per-day", "tokens-day", DAY),
    ("x-ratelimit-*-per-week", "week", 7 * DAY),
    ("x-ratelimit-*-per-month", "month", 0),
    ("x-ratelimit-*-requests-per-month", "requests-month", 0),
    ("x-ratelimit-*-per-year", "year", 0),
    ("x-ratelimit-*-per-10-seconds", "10-seconds", 10),
    (
        "x-ratelimit-*-requests-per-15-minutes",
        "requests-15-minutes",
        900,
    ),
    ("x-ratelimit-*-per-5min", "5min", 300),
    (
        "x-ratelimit-requests-per-minute-*",
        "requests-minute",
        MINUTE,
    ),
    ("x-rate-limit-per-minute-*", "minute", MINUTE),
    ("x-brand-ratelimit-per-hour-*", "hour", HOUR),
    // With glue the whole word is the name, as is known from a server.
    ("x-ratelimit-perhour-*", "perhour", HOUR),
    ("x-ratelimit-*-perminute", "perminute", MINUTE),
    ("X-RateLimit-*-PerHour", "perhour", HOUR),
    ("x-ratelimit-*-perDay", "perday", DAY),
    ("x-ratelimit-*-permonth", "permonth", 0),
    (
        "x-ratelimit-*-requests-perminute",
        "requests-perminute",
        MINUTE,
    ),
    (
        "x-ratelimit-*-requestsPerSecond",
        "requestspersecond",
        SECOND,
    ),
    ("x-ratelimit-*-callsper10seconds", "callsper10seconds", 10),
    ("X-RateLimit-*PerHour", "perhour", HOUR),
    ("x-ratelimit-*perday", "perday", DAY),
    ("x-ratelimitperminute-*", "perminute", MINUTE),
    // So many in a window, not a window of so many.
    ("x-ratelimit-*-10-per-minute", "10-minute", MINUTE),
    ("x-ratelimit-*-10-perminute", "10-perminute", MINUTE),
];

/// Words that only look like one.
const OTHERS: [(&str, &str); 16] = [
    ("x-ratelimit-*-permit", "permit"),
    ("x-ratelimit-*-permits", "permits"),
    ("x-ratelimit-*-per-page", "page"),
    ("x-ratelimit-*-perpage", "perpage"),
    ("x-ratelimit-*-personal", "personal"),
    ("x-ratelimit-*-person", "person"),
    ("x-ratelimit-*-per-user", "user"),
    ("x-ratelimit-*-peruser", "peruser"),
    ("x-ratelimit-*-perms", "perms"),
    ("x-ratelimit-*-performance", "performance"),
    ("x-ratelimit-*-experiment", "experiment"),
    ("x-ratelimit-*-superhour", "superhour"),
    ("x-ratelimit-*-paperday", "paperday"),
    ("x-ratelimit-*-holiday", "holiday"),
    ("x-ratelimit-*-audio-seconds", "audio-seconds"),
    ("x-ratelimit-*-per-99999-days", "99999-days"),
];

/// What a pair of limit and remaining with this name says.
#[track_caller]
fn assert_pair(pattern: &str, name: &str, window: u64) {
    let (limit, remaining) = (
        pattern.replace('*', "limit"),
        pattern.replace('*', "remaining"),
    );
    let feedback = answer(200, &[(&limit, "60"), (&remaining, "7")]);
    let budget = only_budget(&feedback);
    assert_eq!(budget.name.as_deref(), Some(name), "{pattern}");
    assert_eq!(
        (budget.limit, budget.remaining),
        (Some(60), Some(7)),
        "{pattern}"
    );
    let window = (window > 0).then(|| Duration::from_secs(window));
    assert_eq!(budget.window, window, "{pattern}");
    assert_eq!(feedback.malformed_count, 0, "{pattern}");
}

#[test]
fn a_window_written_out_in_a_name_is_a_window() {
    for (pattern, name, window) in WRITTEN_OUT {
        assert_pair(pattern, name, window);
    }
}

#[test]
fn other_words_that_begin_or_end_like_one_are_names() {
    for (pattern, name) in OTHERS {
        assert_pair(pattern, name, 0);
    }
}

/// Without a role, so many in a window is a limit: as `-daily` and `-minute` are.
#[test]
fn a_name_without_a_role_that_ends_in_a_window_is_a_limit() {
    for (field, name, window) in [
        ("x-ratelimit-minute", "minute", MINUTE),
        ("x-ratelimit-per-minute", "minute", MINUTE),
        ("x-ratelimit-perminute", "perminute", MINUTE),
        ("x-rate-limit-per-second", "second", SECOND),
        ("x-ratelimit-requests-per-hour", "requests-hour", HOUR),
        ("x-ratelimit-max-per-day", "day", DAY),
        ("x-ratelimitperday", "perday", DAY),
    ] {
        let feedback = answer(200, &[(field, "60")]);
        let budget = only_budget(&feedback);
        assert_eq!(budget.name.as_deref(), Some(name), "{field}");
        assert_eq!(
            (budget.limit, budget.remaining),
            (Some(60), None),
            "{field}"
        );
        assert_eq!(budget.window, Some(Duration::from_secs(window)), "{field}");
    }
    for field in [
        "x-ratelimit-cost-per-request",
        "x-ratelimit-tokens-per-query",
        "x-ratelimit-permit",
        "x-ratelimit-per-page",
    ] {
        assert_eq!(answer(200, &[(field, "60")]).budgets, [], "{field}");
    }
}

/// Words that are a role only at the end are still at the end before a window.
#[test]
fn what_is_left_in_a_window_is_no_limit() {
    let fields = [
        ("x-ratelimit-requests-max-per-day", "60"),
        ("x-ratelimit-requests-left-per-day", "7"),
    ];
    let feedback = answer(200, &fields);
    let budget = only_budget(&feedback);
    assert_eq!((budget.limit, budget.remaining), (Some(60), Some(7)));
    assert_eq!(budget.window, Some(Duration::from_secs(DAY)));
}

#[test]
fn what_is_counted_is_told_from_the_window() {
    let fields = [("x-ratelimit-limit-tokensperminute", "60")];
    assert_eq!(only_budget(&answer(200, &fields)).unit, Unit::Tokens);
}
