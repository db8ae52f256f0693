//! Times years away: no information, and nothing that a caller could wait for without being told.

use std::time::Duration;

use tower::{Layer, ServiceExt};
use tower_throttle::{
    Limiter, Quota, ThrottleLayer,
    feedback::{Dialect, Fault, MAX_WINDOW, Meaning, Reader, Rule, TimeForm},
};

use crate::{
    read::{answer, answer_in, only_budget, only_fault},
    support::{Answer, Origin, Timeline, request, secs},
};

type Fields = &'static [(&'static str, &'static str)];

/// A budget of 100 with 99 left, and its reset beyond any window, in every form and dialect; and the field at fault.
const FAR_RESETS: [(&str, Fields); 9] = [
    // As the documentation of a public API shows it: an instant that lost a digit.
    (
        "x-ratelimit-reset",
        &[
            ("x-ratelimit-limit", "100"),
            ("x-ratelimit-remaining", "99"),
            ("x-ratelimit-reset", "150933900"),
        ],
    ),
    (
        "x-ratelimit-reset",
        &[
            ("x-ratelimit-limit", "100"),
            ("x-ratelimit-remaining", "99"),
            ("x-ratelimit-reset", "2029-06-03T11:00:00Z"),
        ],
    ),
    (
        "x-ratelimit-reset-after",
        &[
            ("x-ratelimit-limit", "100"),
            ("x-ratelimit-remaining", "99"),
            ("x-ratelimit-reset-after", "9601h"),
        ],
    ),
    (
        "ratelimit-reset",
        &[
            ("ratelimit-limit", "100"),
            ("ratelimit-remaining", "99"),
            ("ratelimit-reset", "Fri, 31 Dec 9999 23:59:59 GMT"),
        ],
    ),
    (
        "x-ratelimit-reset-ms",
        &[
            ("x-ratelimit-limit", "100"),
            ("x-ratelimit-remaining", "99"),
            ("x-ratelimit-reset-ms", "34560000001"),
        ],
    ),
    (
        "ratelimit",
        &[("ratelimit", "limit=100, remaining=99, reset=150933900")],
    ),
    (
        "ratelimit",
        &[
            ("ratelimit-policy", "\"a\";q=100"),
            ("ratelimit", "\"a\";r=99;t=150933900"),
        ],
    ),
    (
        "x-ratelimit",
        &[(
            "x-ratelimit",
            "{\"limit\":100,\"remaining\":99,\"until\":\"2029-06-03T11:00:00Z\"}",
        )],
    ),
    (
        "zendesk-ratelimit-tickets-index",
        &[(
            "zendesk-ratelimit-tickets-index",
            "total=100; remaining=99; resets=150933900",
        )],
    ),
];

#[test]
fn a_reset_beyond_any_window_is_dropped_and_the_counts_stay() {
    for (field, fields) in FAR_RESETS {
        let feedback = answer(200, fields);
        let budget = only_budget(&feedback);
        assert_eq!(
            (budget.limit, budget.remaining, budget.reset),
            (Some(100), Some(99), None),
            "{fields:?}"
        );
        assert_eq!(only_fault(&feedback), (field, Fault::Implausible));
    }
}

#[test]
fn a_window_beyond_any_is_dropped_and_the_counts_stay() {
    let windows: [(&str, Fields); 6] = [
        (
            "ratelimit-policy",
            &[
                ("ratelimit-policy", "\"a\";q=100;w=34560001"),
                ("ratelimit", "\"a\";r=99;t=9"),
            ],
        ),
        (
            "ratelimit-policy",
            &[
                ("ratelimit-policy", "100;w=34560001"),
                ("ratelimit", "limit=100, remaining=99, reset=9"),
            ],
        ),
        (
            "x-ratelimit-limit",
            &[
                ("x-ratelimit-limit", "100, 100;window=34560001"),
                ("x-ratelimit-remaining", "99"),
                ("x-ratelimit-reset", "9"),
            ],
        ),
        (
            "ratelimit-limit",
            &[
                ("ratelimit-limit", "100;w=34560001"),
                ("ratelimit-remaining", "99;w=60"),
                ("ratelimit-reset", "9"),
            ],
        ),
        (
            "x-ratelimit-period",
            &[
                ("x-ratelimit-limit", "100"),
                ("x-ratelimit-period", "401d"),
                ("x-ratelimit-remaining", "99"),
                ("x-ratelimit-reset", "9"),
            ],
        ),
        (
            "x-ratelimit-interval-ms",
            &[
                ("x-ratelimit-limit", "100"),
                ("x-ratelimit-interval-ms", "34560000001"),
                ("x-ratelimit-remaining", "99"),
                ("x-ratelimit-reset", "9"),
            ],
        ),
    ];
    for (field, fields) in windows {
        let feedback = answer(200, fields);
        let budget = only_budget(&feedback);
        let counts = (budget.limit, budget.remaining, budget.reset);
        assert_eq!(counts, (Some(100), Some(99), Some(secs(9.0))), "{fields:?}");
        assert!(budget.window.is_none_or(|window| window == secs(60.0)));
        assert_eq!(only_fault(&feedback), (field, Fault::Implausible));
    }
}

/// What a dialect reads in its own ways has the same bound.
#[test]
fn times_that_a_dialect_reads_are_bounded_too() {
    let rules = [
        (Meaning::Reset(TimeForm::Seconds), "34560001"),
        (Meaning::Reset(TimeForm::Millis), "34560000001"),
        (Meaning::Window(TimeForm::Seconds), "34560001"),
        (Meaning::LimitPerWindow, "20:34560001"),
        (Meaning::Rate, "0.00000001"),
        (Meaning::Holds, "34560001:error:organization"),
        (
            Meaning::Percents,
            "{\"call_count\":100,\"estimated_time_to_regain_access\":576001}",
        ),
    ];
    for (meaning, value) in rules {
        let dialect = Dialect::new().rule(Rule::new("x-told", meaning));
        let feedback = answer_in(&Reader::new().dialect(dialect), 200, &[("x-told", value)]);
        assert_eq!(only_fault(&feedback), ("x-told", Fault::Implausible));
        let times = (feedback.budgets.iter()).flat_map(|budget| [budget.reset, budget.window]);
        assert_eq!(times.flatten().max(), None, "{meaning:?}");
        assert_eq!(feedback.wait(), None, "{meaning:?}");
    }
}

/// The bound is above the longest window of any known server: a year.
#[test]
fn a_year_is_believed() {
    let year = "31622400";
    let fields = [
        ("x-ratelimit-limit", "100"),
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-window", year),
        ("x-ratelimit-reset", year),
    ];
    let feedback = answer(200, &fields);
    let budget = only_budget(&feedback);
    let year = Some(Duration::from_secs(366 * 86_400));
    assert!(year < Some(MAX_WINDOW));
    assert_eq!((budget.reset, budget.window), (year, year));
    assert_eq!(feedback.malformed_count, 0);
}

/// An explicit wait keeps its own law: it is taken at its word, and too long a pause is an error that says when.
#[test]
fn an_explicit_wait_is_not_bounded() {
    for field in ["retry-after", "x-ratelimit-retry-after"] {
        let feedback = answer(429, &[(field, "150933900")]);
        assert_eq!(feedback.wait(), Some(Duration::from_secs(150_933_900)));
        assert_eq!(feedback.malformed_count, 0);
    }
}

/// The example from the documentation stalled everybody: 99 left for five years.
#[tokio::test(start_paused = true)]
async fn a_reset_years_away_stalls_nobody() {
    for (_, fields) in FAR_RESETS {
        for status in [200, 404] {
            let time = Timeline::start();
            let limiter = Limiter::new(Quota::per_second(100)).unwrap();
            let service = ThrottleLayer::new(limiter.clone()).layer(origin(&time, status, fields));
            for _ in 0..300 {
                service.clone().oneshot(request()).await.unwrap();
            }
            let took = time.now();
            assert!(took <= secs(3.1), "{fields:?}: {took:?}");
            assert_eq!(limiter.snapshot().counters.malformed, 300);
        }
    }
}

/// On a refusal it is no wait either: the limiter's own back-off holds.
#[tokio::test(start_paused = true)]
async fn a_refusal_with_a_reset_years_away_is_backed_off_from() {
    for (_, fields) in FAR_RESETS {
        let time = Timeline::start();
        let limiter = Limiter::new(Quota::per_second(100)).unwrap();
        let service = ThrottleLayer::new(limiter).layer(Origin::new(&time, |number| {
            scripted(if number == 0 { 429 } else { 200 }, fields)
        }));
        for _ in 0..2 {
            service.clone().oneshot(request()).await.unwrap();
        }
        let took = time.now();
        assert!(took > secs(0.01) && took <= secs(1.1), "{took:?}");
    }
}

/// Answers with one field that is wrong, or that a client would rather not believe.
const WRONG: [Fields; 16] = [
    &[
        ("x-ratelimit-limit", "100"),
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "30000000"),
    ],
    &[
        ("x-ratelimit-limit", "100"),
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "150933900"),
    ],
    &[
        ("x-ratelimit-limit", "100"),
        ("x-ratelimit-remaining", "1"),
        ("x-ratelimit-reset", "30000000"),
    ],
    &[
        ("x-ratelimit-limit", "100"),
        ("x-ratelimit-remaining", "3"),
        ("x-ratelimit-reset", "30000000"),
    ],
    &[
        ("x-ratelimit-limit", "100"),
        ("x-ratelimit-remaining", "99"),
        ("x-ratelimit-reset", "30000000"),
    ],
    &[
        ("x-ratelimit-limit", "5"),
        ("x-ratelimit-remaining", "5000"),
        ("x-ratelimit-reset", "30000000"),
    ],
    &[
        ("x-ratelimit-limit", "0"),
        ("x-ratelimit-remaining", "9"),
        ("x-ratelimit-reset", "30000000"),
    ],
    // A window in milliseconds, say.
    &[
        ("x-ratelimit-limit", "1"),
        ("x-ratelimit-remaining", "1"),
        ("x-ratelimit-reset", "1"),
        ("x-ratelimit-window", "30000000"),
    ],
    &[
        ("x-ratelimit-limit", "1"),
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "1"),
        ("x-ratelimit-window", "30000000"),
    ],
    &[
        ("ratelimit-policy", "\"a\";q=1;w=30000000"),
        ("ratelimit", "\"a\";r=1;t=1"),
    ],
    &[
        ("ratelimit-policy", "\"a\";q=1;w=99999999"),
        ("ratelimit", "\"a\";r=0;t=99999999"),
    ],
    &[("ratelimit-policy", "\"a\";q=1;w=30000000")],
    &[("x-ratelimit-remaining", "0")],
    &[
        ("x-ratelimit-remaining-tokens", "0"),
        ("x-ratelimit-reset-tokens", "30000000"),
    ],
    &[
        ("x-ratelimit-remaining-tokens", "0"),
        ("x-ratelimit-reset-tokens", "150933900"),
    ],
    &[("retry-after", "150933900"), ("x-ratelimit-remaining", "0")],
];

/// Whatever field is wrong, whatever the status, and whether later requests are answered or lost: nobody waits longer than the longest
/// pause that is sat out. Either a turn comes by then, or there is an error that says when.
#[tokio::test(start_paused = true)]
async fn no_field_holds_a_caller_longer_than_the_longest_pause_without_an_error() {
    let max_pause = secs(3_600.0);
    for status in [200, 429, 503] {
        for (fields, answered) in WRONG
            .iter()
            .flat_map(|fields| [(fields, true), (fields, false)])
        {
            let limiter = Limiter::builder()
                .quota("q", Quota::per_second(7))
                .max_pause(max_pause)
                .build()
                .unwrap();
            for number in 0..8 {
                let time = Timeline::start();
                let turn = tokio::time::timeout(max_pause + secs(1.0), limiter.acquire(1)).await;
                let told = format!("{status} {fields:?} {answered}, request {number}");
                match turn.unwrap_or_else(|_| panic!("{told} waits for ever")) {
                    Ok(permit) if answered || number == 0 => {
                        tokio::time::sleep(secs(0.01)).await;
                        let status = if number == 0 { status } else { 200 };
                        limiter.answered(&permit, &answer(status, fields));
                    }
                    Ok(_lost) => {}
                    Err(error) => {
                        assert!(error.is_paused(), "{told}: {error}");
                        let after = error.retry_after().unwrap();
                        assert!(after > max_pause, "{told}: {after:?}");
                        assert!(time.now() <= max_pause, "{told}");
                        break;
                    }
                }
            }
        }
    }
}

fn origin(time: &Timeline, status: u16, fields: Fields) -> Origin {
    Origin::new(time, move |_| scripted(status, fields))
}

/// An answer with these fields, to whose instants the year 2019 is the present.
fn scripted(status: u16, fields: Fields) -> Answer {
    let answer = Answer::status(status).header("date", "Mon, 03 Jun 2019 11:00:00 GMT");
    (fields.iter()).fold(answer, |answer, (name, value)| answer.header(name, value))
}

/// What is assumed of the next window is over when the budget is forgotten, a day after it was last heard of, however long a pause is
/// sat out.
#[tokio::test(start_paused = true)]
async fn an_assumed_window_is_over_when_its_budget_is_forgotten() {
    let limiter = Limiter::builder()
        .quota("q", Quota::per_second(7))
        .max_pause(Duration::MAX)
        .build()
        .unwrap();
    let fields = [
        ("x-ratelimit-limit", "1"),
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "1"),
        ("x-ratelimit-window", "30000000"),
    ];
    let permit = limiter.acquire(1).await.unwrap();
    let time = Timeline::start();
    limiter.answered(&permit, &answer(200, &fields));
    // One in the window that is assumed to follow. Its answer is lost.
    limiter.acquire(1).await.unwrap();
    limiter.acquire(1).await.unwrap();
    crate::support::assert_times(&[time.now()], &[86_400.0]);
}
