//! What must be true of every reading of a header block.

use std::time::{Duration, SystemTime};

use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{AGE, DATE, RETRY_AFTER},
};
use tower_throttle::feedback::{
    self, Dialect, Fault, Feedback, Hold, MAX_BUDGETS, MAX_MALFORMED, Meaning, Reader, Rule,
};

use super::block::Block;

/// So few and so short fields that no bound of the reader is reached.
const FEW: usize = 8;
const SHORT: usize = 300;

const MAX_TEXT: usize = 64;
const MAX_VALUE: usize = 1_024;

pub(crate) fn check(block: &Block) {
    let Block {
        status,
        ref headers,
        now,
        ..
    } = *block;
    let reader = block.reader();
    let feedback = reader.read(status, headers, now);
    assert_eq!(
        feedback,
        reader.read(status, headers, now),
        "not a function"
    );
    is_bounded(&feedback);
    is_consistent(status, headers, &feedback);
    follows_the_clock(block, &reader, &feedback);
    for value in headers.get_all(RETRY_AFTER) {
        retry_after_alone(value, now);
    }
    match &block.dialect {
        None => {
            assert_eq!(feedback, feedback::read(status, headers, now));
            is_general(block, &feedback);
            obeys_ignore(block);
        }
        Some(dialect) => {
            if *dialect == Dialect::github() && feedback.refused {
                assert!(feedback.wait().is_some(), "the documented wait is lost");
            }
        }
    }
}

fn is_bounded(feedback: &Feedback) {
    assert!(feedback.budgets.len() <= MAX_BUDGETS);
    let listed = MAX_MALFORMED.min(feedback.malformed_count as usize);
    assert_eq!(feedback.malformed.len(), listed);
    let short = |text: &str| text.len() <= MAX_TEXT;
    assert!(feedback.malformed.iter().all(|entry| short(&entry.field)));
    for budget in &feedback.budgets {
        assert!(budget.name.as_deref().is_none_or(short));
        let key = budget.partition.as_ref();
        assert!(key.is_none_or(|key| key.len() <= MAX_VALUE));
        assert_ne!(budget.window, Some(Duration::ZERO));
    }
}

fn is_consistent(status: StatusCode, headers: &HeaderMap, feedback: &Feedback) {
    if status == StatusCode::TOO_MANY_REQUESTS {
        assert!(feedback.refused);
    }
    assert!(!feedback.cached || feedback.budgets.is_empty());
    assert!(!feedback.cached || headers.contains_key(AGE));
    // A positive hold wins over any reset, and is no less than what was asked for.
    if feedback.hold.is_some() {
        assert!(feedback.refused || status.is_redirection());
    }
    let (wait, asked) = (feedback.wait(), positive(feedback));
    assert!(asked.is_none() || wait == asked);
    assert_eq!(
        wait.is_none(),
        feedback.hold.is_none() && !has_spent_reset(feedback)
    );
    let fallback = feedback.reset_on_refusal();
    assert!(fallback.is_none() || feedback.refused && asked.is_none());
    if feedback.refused && asked.is_none() && wait.is_some_and(|wait| !wait.is_zero()) {
        assert!(fallback.is_some(), "the reset of a spent budget is lost");
    }
}

fn positive(feedback: &Feedback) -> Option<Duration> {
    (feedback.hold.map(|hold| hold.wait)).filter(|wait| !wait.is_zero())
}

fn has_spent_reset(feedback: &Feedback) -> bool {
    let mut budgets = feedback.budgets.iter();
    budgets.any(|budget| budget.is_spent() && budget.reset.is_some())
}

/// Beside a readable `Date` the own clock does not matter, but for years of two digits.
fn follows_the_clock(block: &Block, reader: &Reader, feedback: &Feedback) {
    let Some(date) = block.headers.get(DATE) else {
        return;
    };
    let two_digits = |value: &HeaderValue| {
        let mut pairs = value.as_bytes().windows(2);
        pairs.any(|pair| pair[0] == b'-' && pair[1].is_ascii_alphabetic())
    };
    if instant(date).is_none() || block.headers.values().any(two_digits) {
        return;
    }
    for shift in [1, 86_400, 1_000_000_000] {
        let Some(now) = block.now.checked_sub(Duration::from_secs(shift)) else {
            continue;
        };
        assert_eq!(*feedback, reader.read(block.status, &block.headers, now));
    }
}

/// The preferred form of HTTP-dates, as another parser reads it.
fn instant(value: &HeaderValue) -> Option<SystemTime> {
    let text = value.to_str().ok()?;
    let time = httpdate::parse_http_date(text).ok()?;
    (httpdate::fmt_http_date(time) == text).then_some(time)
}

fn retry_after_alone(value: &HeaderValue, now: SystemTime) {
    let headers = HeaderMap::from_iter([(RETRY_AFTER, value.clone())]);
    let feedback = feedback::read(StatusCode::TOO_MANY_REQUESTS, &headers, now);
    let hold = feedback.hold.map(|hold| hold.wait);
    let text = value.as_bytes().trim_ascii();
    let digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    if !text.contains(&b',') || hold.is_none() {
        // Unreadable is no information, and is counted.
        assert_eq!(hold.is_none(), feedback.malformed_count > 0, "{value:?}");
    }
    if !text.iter().any(u8::is_ascii_digit) {
        assert_eq!(hold, None, "{value:?}");
    }
    if let [b'+' | b'-', rest @ ..] = text
        && digits(rest)
    {
        assert_eq!(hold, None, "{value:?}");
    }
    if digits(text) && text.len() <= 9 {
        let seconds = text
            .iter()
            .fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
        assert_eq!(hold, Some(Duration::from_secs(seconds)), "{value:?}");
    }
    if let Some(time) = instant(value) {
        let wait = time.duration_since(now).unwrap_or_default();
        assert_eq!(hold, Some(wait), "{value:?} at {now:?}");
    }
    // No meaning on a success.
    let success = feedback::read(StatusCode::OK, &headers, now);
    assert_eq!((success.hold, success.wait()), (None, None));
}

/// What holds where nothing but the general rules is known.
fn is_general(block: &Block, feedback: &Feedback) {
    let Block {
        status,
        ref headers,
        now,
        ..
    } = *block;
    let read = |status, headers: &HeaderMap| feedback::read(status, headers, now);
    let exhausted = headers
        .get_all("grpc-status")
        .iter()
        .any(|value| value == "8");
    match status.as_u16() {
        _ if exhausted => assert!(feedback.refused),
        403 | 418 | 420 | 503 if headers.contains_key(RETRY_AFTER) => assert!(feedback.refused),
        429 | 403 | 418 | 420 | 503 => {}
        400.. if headers.contains_key("x-envoy-ratelimited") => {}
        _ => assert!(!feedback.refused),
    }
    let is_name = |field: &str| field.bytes().all(|byte| !byte.is_ascii_uppercase());
    assert!(feedback.hold.is_none_or(|hold| is_name(hold.field)));
    assert!(feedback.malformed.iter().all(|entry| {
        let names = headers.keys().map(HeaderName::as_str);
        // The common spelling of all waits whose names are found by their words.
        let mut names = names.chain(["x-ratelimit-retry-after"]);
        names.any(|name| name.starts_with(&*entry.field))
    }));

    // The status decides what is a refusal, and nothing else.
    let refusal = read(StatusCode::TOO_MANY_REQUESTS, headers);
    assert!(feedback.hold.is_none() || feedback.hold == refusal.hold);
    let as_refused = Feedback::clone(&refusal);
    let mut as_seen = feedback.clone();
    (as_seen.refused, as_seen.hold) = (as_refused.refused, as_refused.hold);
    assert_eq!(as_seen, as_refused);

    if !feedback.refused && status.is_success() {
        let without = read(status, &without(headers, &RETRY_AFTER));
        assert_eq!(said(feedback), said(&without), "Retry-After on a success");
    }
    let mut more = headers.clone();
    more.append("x-request-id", HeaderValue::from_static("0"));
    more.append("content-length", HeaderValue::from_static("429"));
    assert_eq!(
        *feedback,
        read(status, &more),
        "unknown fields say something"
    );

    if headers.len() > FEW || headers.values().map(HeaderValue::len).sum::<usize>() > SHORT {
        return;
    }
    let over_full = |feedback: &Feedback| {
        let mut faults = feedback.malformed.iter().map(|entry| entry.why);
        faults.any(|why| why == Fault::TooMany) || feedback.budgets.len() == MAX_BUDGETS
    };
    if over_full(feedback) || feedback.malformed_count as usize > MAX_MALFORMED {
        return;
    }
    let mut longer = headers.clone();
    longer.append(RETRY_AFTER, HeaderValue::from_static("7777777"));
    let longer = read(StatusCode::TOO_MANY_REQUESTS, &longer);
    let asked = longer.hold.map(|Hold { wait, .. }| wait);
    assert!(asked >= Some(Duration::from_secs(7_777_777)), "{longer:?}");

    for junk in ["soon", "", "-", "NaN"] {
        let mut more = headers.clone();
        more.append(RETRY_AFTER, HeaderValue::from_static(junk));
        let more = read(status, &more);
        assert!(more.wait() >= feedback.wait(), "{feedback:?} {more:?}");
        assert!(more.refused || !feedback.refused);
        assert_eq!(positive(&more), positive(feedback));
    }
    let reversed = reversed(headers);
    let other = read(status, &reversed);
    let sum = |feedback: &Feedback| {
        let wait = feedback.hold.map(|hold| hold.wait);
        (feedback.refused, wait, feedback.malformed_count)
    };
    assert_eq!(sum(feedback), sum(&other), "{feedback:?} {other:?}");
}

/// All but what could not be read.
fn said(feedback: &Feedback) -> Feedback {
    let mut said = feedback.clone();
    said.malformed.clear();
    said.malformed_count = 0;
    said
}

/// A dialect's `Ignore` is as if the field had not come.
fn obeys_ignore(block: &Block) {
    let names = block.headers.keys();
    let fit = |name: &&HeaderName| {
        // What says when the response was made is no rate field, and a star in a rule stands for others.
        ![DATE, AGE].contains(name) && !name.as_str().contains('*')
    };
    for name in names.filter(fit).take(4) {
        let rule = Rule::new(name.as_str().to_owned(), Meaning::Ignore);
        let reader = Reader::new().dialect(Dialect::new().rule(rule));
        let without = without(&block.headers, name);
        assert_eq!(
            reader.read(block.status, &block.headers, block.now),
            feedback::read(block.status, &without, block.now),
            "ignoring {name}"
        );
    }
}

fn without(headers: &HeaderMap, name: &HeaderName) -> HeaderMap {
    let kept = headers.iter().filter(|(other, _)| *other != name);
    collect(kept)
}

fn reversed(headers: &HeaderMap) -> HeaderMap {
    let names: Vec<_> = headers.keys().collect();
    let lines = names.into_iter().rev().flat_map(|name| {
        let values = headers.get_all(name).iter();
        values.map(move |value| (name, value))
    });
    collect(lines)
}

fn collect<'a>(lines: impl Iterator<Item = (&'a HeaderName, &'a HeaderValue)>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        headers.append(name, value.clone());
    }
    headers
}
