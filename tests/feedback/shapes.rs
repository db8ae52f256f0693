//! Which ways of writing a time are read, and which are no information. What is read is what a standard says or a known server sends.

use std::time::Duration;

use tower_throttle::feedback::Fault;

use crate::read::{answer, only_fault};

/// `Date` of all answers here.
const DATE: (&str, &str) = ("date", "Mon, 03 Jun 2019 11:00:00 GMT");

/// The shapes of `Retry-After` that are read, with where they come from, and the wait in milliseconds.
const READ: [(&str, &str, u64); 34] = [
    ("RFC 9110, 10.2.3", "120", 120_000),
    ("RFC 9110, 10.2.3", "0", 0),
    ("RFC 9110, 10.2.3", "0030", 30_000),
    ("RFC 9110, 5.5", "\t 5 ", 5_000),
    ("IMF-fixdate", "Mon, 03 Jun 2019 11:30:12 GMT", 1_812_000),
    ("RFC 850", "Monday, 03-Jun-19 11:30:12 GMT", 1_812_000),
    ("asctime", "Mon Jun  3 11:30:12 2019", 1_812_000),
    ("a past date", "Mon, 03 Jun 2019 10:00:00 GMT", 0),
    ("leap second", "Mon, 03 Jun 2019 23:59:60 GMT", 46_800_000),
    ("RFC 5322", "3 Jun 2019 11:00:45 GMT", 45_000),
    ("RFC 5322", "Mon, 03 Jun 2019 13:00:45 +0200", 45_000),
    ("Netscape", "Mon, 03-Jun-2019 11:00:45 GMT", 45_000),
    ("POSIX date, Java", "Mon Jun  3 11:00:45 UTC 2019", 45_000),
    ("wrong weekday", "Fri, 03 Jun 2019 11:00:45 GMT", 45_000),
    ("UTC", "Mon, 03 Jun 2019 11:00:45 UTC", 45_000),
    ("one-digit day", "Mon, 3 Jun 2019 11:00:45 UTC", 45_000),
    (
        "JavaScript",
        "Mon Jun 03 2019 12:00:45 GMT+0100 (Central European Standard Time)",
        45_000,
    ),
    ("ISO 8601", "2019-06-03T11:00:45Z", 45_000),
    ("ISO 8601", "2019-06-03T11:00Z", 0),
    ("ISO 8601", "2019-06-03T11:00:41.6181792Z", 41_619),
    ("RFC 3339", "2019-06-03t13:00:45+02:00", 45_000),
    ("RFC 3339", "2019-06-03 11:00:45Z", 45_000),
    ("Ruby", "2019-06-03 11:00:45 UTC", 45_000),
    ("fraction", "2.0", 2_000),
    ("fraction", "2.128", 2_128),
    ("fraction", "292.052427053", 292_053),
    ("duration", "12000ms", 12_000),
    ("duration", "13ms", 13),
    ("duration", "1m", 60_000),
    ("duration", "6m0s", 360_000),
    ("quotes", "\"120\"", 120_000),
    ("joined", "60, 60", 60_000),
    ("joined", "5, 10", 10_000),
    (
        "joined",
        "Mon, 03 Jun 2019 11:00:30 GMT, Mon, 03 Jun 2019 11:00:40 GMT",
        40_000,
    ),
];

#[test]
fn the_known_shapes_of_a_time_are_read() {
    for (source, text, millis) in READ {
        let feedback = answer(429, &[DATE, ("retry-after", text)]);
        let wait = feedback.hold.map(|hold| hold.wait);
        let up = |wait: Duration| wait.as_nanos().div_ceil(1_000_000);
        assert_eq!(wait.map(up), Some(millis.into()), "{source}: {text}");
        assert_eq!(feedback.malformed_count, 0, "{source}: {text}");
    }
}

/// Shapes that no standard and no known server has.
const REFUSED: [&str; 86] = [
    // Nothing says of which zone it is.
    "1 Jan 2099 00:00:00",
    "01 Jan 2099 00:00:00",
    "Thu, 01 Jan 2099 00:00:00",
    "Thu, 1 Jan 2099 00:00:00",
    "Thursday, 01-Jan-99 00:00:00",
    "Thu Jan 01 2099 00:00:00",
    "Jan  1 00:00:00 2099",
    "2099-01-01T00:00:00",
    "2099-01-01 00:00:00",
    "2099-01-01",
    "20990101T000000",
    "24.12.2030 00:00:00",
    "01/01/2099 00:00:00",
    // A zone that is none, or two.
    "Thu, 01 Jan 2099 00:00:00 EST",
    "Thu, 01 Jan 2099 00:00:00 MEZ",
    "Thu, 01 Jan 2099 00:00:00 +2",
    "Thu, 01 Jan 2099 00:00:00 +2500",
    "Thu, 01 Jan 2099 00:00:00 GMT GMT",
    "Thu, 01 Jan 2099 00:00:00 GMT +0200",
    "2099-01-01T00:00:00 PST",
    // Parts in another order, missing, doubled or cut.
    "Thu 01 Jan 2099 00:00:00 GMT",
    "Thu; 01 Jan 2099 00:00:00 GMT",
    "Thu, Jan 01 2099 00:00:00 GMT",
    "Thu, 01 Jan 2099 GMT 00:00:00",
    "GMT 2099 Jan 1 00:00:00",
    "00:00:00 1 Jan 2099 GMT",
    "Thu, 01 Jan 2099 2098 00:00:00 GMT",
    "Thu, 01 Jan 2099",
    "Thu, 01 Jan 2099 00:00 GMT",
    "Thu, 01 Jan 2099 0:00:00 GMT",
    "Thu, 01 Jan 2099 1:2:3 GMT",
    "Thu, 01 Jan 2099 00:00:00.5 GMT",
    "Thu, 01 Jan 2099 00.00.00 GMT",
    "Thu, 01 January 2099 00:00:00 GMT",
    "Thu, 01 01 2099 00:00:00 GMT",
    "Thx, 01 Jan 2099 00:00:00 GMT",
    "never 01 Jan 2099 00:00:00 GMT",
    "Thu,,, 01,Jan,2099,00:00:00,GMT",
    "January 5, 2099",
    "2099-1-1T00:00:00Z",
    "2099-01-01T0:00:00Z",
    "2099-01-01T00Z",
    "2099-01-01T000000Z",
    "2099-01-01T00:00:00.Z",
    "2099-01-01_00:00:00Z",
    "2099/01/01 00:00:00 GMT",
    // A year of two digits is RFC 850's alone.
    "Thu, 01 Jan 99 00:00:00 GMT",
    "Thu Jan  1 00:00:00 99",
    "99-01-01T00:00:00Z",
    "Thursday, 01-Jan-099 00:00:00 GMT",
    "Thu, 01 Jan 12099 00:00:00 GMT",
    // No such day or time of day.
    "Thu, 31 Feb 2099 00:00:00 GMT",
    "Thu, 01 Jan 2099 24:00:00 GMT",
    "Thu, 01 Jan 2099 12:34:60 GMT",
    "2099-01-01T12:34:60Z",
    // Something behind it.
    "Thu, 01 Jan 2099 00:00:00 GMT foo",
    "Thu, 01 Jan 2099 00:00:00 GMT (x",
    "2099-01-01T00:00:00Zfoo",
    "5;q=1",
    "5;",
    "5 seconds",
    "5 seconds ago",
    "5s ago",
    "60, soon",
    "60, 5 minutes",
    // Numbers in other notations.
    "+5",
    "0x10",
    "0b1",
    "1e3",
    "5.",
    ".5",
    "5_000",
    "1,000",
    "5:00",
    "1/2",
    "\u{0665}",
    "²",
    "\u{FF15}",
    "NaN",
    "inf",
    "Infinity",
    "null",
    // Durations as Go does not print them.
    "5s6m",
    "1m1m",
    "+5s",
    "5S",
];

#[test]
fn other_shapes_of_a_time_are_no_information() {
    for text in REFUSED {
        for field in ["retry-after", "x-ratelimit-retry-after", "x-retry-in"] {
            let feedback = answer(429, &[DATE, (field, text)]);
            assert_eq!(feedback.hold, None, "{field}: {text}");
            assert_eq!(only_fault(&feedback), (field, Fault::NotATime), "{text}");
        }
    }
    for text in ["-5", "-0", "-5s"] {
        let feedback = answer(429, &[DATE, ("retry-after", text)]);
        assert_eq!(feedback.hold, None, "{text}");
        assert_eq!(only_fault(&feedback), ("retry-after", Fault::Negative));
    }
}

/// The same shapes in a reset, which costs nothing but the reset.
#[test]
fn a_reset_in_another_shape_leaves_the_counts() {
    for text in REFUSED {
        let counts = [
            DATE,
            ("x-ratelimit-limit", "100"),
            ("x-ratelimit-remaining", "7"),
            ("x-ratelimit-reset", text),
        ];
        let feedback = answer(200, &counts);
        let [budget] = &*feedback.budgets else {
            panic!("{text}: {feedback:?}")
        };
        assert_eq!((budget.limit, budget.remaining), (Some(100), Some(7)));
        // Two values may have been joined, of which each counts alone.
        let joined = text.contains(',') && budget.reset.is_some();
        assert!(budget.reset.is_none() || joined, "{text}: {budget:?}");
        assert_eq!(only_fault(&feedback).0, "x-ratelimit-reset", "{text}");
    }
}

/// Counts are digits, with a fraction or not. A word, a sign or another notation is no count.
#[test]
fn other_shapes_of_a_count_are_no_information() {
    for text in [
        "+5",
        "0x10",
        "1e3",
        "5.",
        ".5",
        "5k",
        "5_000",
        "NaN",
        "inf",
        "none",
        "unlimited",
        "²",
        "\u{0665}",
        "5 left",
        "5/10",
        "--5",
    ] {
        let feedback = answer(
            200,
            &[("x-ratelimit-limit", "9"), ("x-ratelimit-remaining", text)],
        );
        assert_eq!(feedback.budgets[0].remaining, None, "{text}");
        let fault = ("x-ratelimit-remaining", Fault::NotACount);
        assert_eq!(only_fault(&feedback), fault, "{text}");
    }
}

#[test]
fn other_shapes_of_a_window_are_no_information() {
    for text in [
        "+5",
        "1e3",
        "-5",
        "5.5 minutes",
        "+5 minutes",
        "-5 minute",
        "x minute",
        "0x10 minutes",
        "5 minutes ago",
        "minute 5",
        "fortnight",
    ] {
        let feedback = answer(
            200,
            &[("x-ratelimit-limit", "9"), ("x-ratelimit-window", text)],
        );
        assert_eq!(feedback.budgets[0].window, None, "{text}");
        assert_eq!(only_fault(&feedback).0, "x-ratelimit-window", "{text}");
    }
}
