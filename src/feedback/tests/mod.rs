//! The reader as a whole.

mod cases;
mod dialects;
mod families;
mod forms;
mod names;

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::{Feedback, Hold, read};

/// Mon, 01 Jul 2013 17:27:06 GMT
const T: u64 = 1_372_699_626;
const DATE: (&str, &str) = ("date", "Mon, 01 Jul 2013 17:27:06 GMT");

fn at(secs: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(secs)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn headers(fields: &[(&str, &str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in fields {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        map.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    map
}

fn read_at(now: SystemTime, status: u16, fields: &[(&str, &str)]) -> Feedback {
    read(StatusCode::from_u16(status).unwrap(), &headers(fields), now)
}

fn answer(status: u16, fields: &[(&str, &str)]) -> Feedback {
    read_at(at(T), status, fields)
}

fn hold(wait: Duration) -> Option<Hold> {
    Some(Hold {
        wait,
        field: "retry-after",
    })
}

/// Name, limit, remaining, reset and window in seconds of each budget, in the order of their names.
type Row<'a> = (
    Option<&'a str>,
    Option<u64>,
    Option<u64>,
    Option<u64>,
    Option<u64>,
);

fn rows(feedback: &Feedback) -> Vec<Row<'_>> {
    let whole = |time: Option<Duration>| time.map(|time| time.as_secs());
    let mut rows: Vec<Row<'_>> = feedback
        .budgets
        .iter()
        .map(|budget| {
            (
                budget.name.as_deref(),
                budget.limit,
                budget.remaining,
                whole(budget.reset),
                whole(budget.window),
            )
        })
        .collect();
    rows.sort_unstable();
    rows
}

#[track_caller]
fn check(fields: &[(&str, &str)], expected: &[Row<'_>]) {
    let feedback = answer(200, fields);
    assert_eq!(rows(&feedback), expected);
    assert_eq!(feedback.malformed, []);
}
