//! Every line of the corpus of real responses, against the reading a careful person gave it.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde_json::Value;
use tower_throttle::feedback::{Budget, Dialect, Feedback, MAX_WINDOW, Reader};

const CORPUS: &str = include_str!("headers.jsonl");

/// A wait at least this long stands for "longer than any client's ceiling".
const OVER_LONG: f64 = 1e9;

/// Lines whose expected reset is not what their own header minus their own `at` gives, so that no reading can be right.
/// `bybit-spent`: the timestamp is 09:28:55.324, `at` is 09:02:14.824, and the reset is said to be half a second ahead.
const CONTRADICTORY: [&str; 1] = ["bybit-spent"];

#[test]
fn every_line_reads_as_it_should() {
    let mut failed = Vec::new();
    let mut lines = 0;
    for line in CORPUS.lines() {
        let line: Value = serde_json::from_str(line).expect("a line is one JSON object");
        lines += 1;
        let reader = reader_for(&line);
        let feedback = reader.read(
            status(&line),
            &headers(&line),
            instant(line["at"].as_str().expect("at")),
        );
        let faults = faults(&line, &feedback);
        if !faults.is_empty() {
            let id = line["id"].as_str().expect("an id").to_owned();
            let text = format!("{id}: {}\n    {feedback:?}", faults.join("; "));
            failed.push((id, text));
        }
    }
    assert!(lines > 0, "the corpus is empty");
    let contradictory: Vec<_> = failed
        .iter()
        .filter(|(id, _)| CONTRADICTORY.contains(&id.as_str()))
        .collect();
    assert_eq!(
        contradictory.len(),
        CONTRADICTORY.len(),
        "a line of CONTRADICTORY passes: take it off the list"
    );
    failed.retain(|(id, _)| !CONTRADICTORY.contains(&id.as_str()));
    let list: Vec<_> = failed.iter().map(|(_, text)| text.as_str()).collect();
    assert!(
        list.is_empty(),
        "{} of {lines} lines:\n{}",
        list.len(),
        list.join("\n")
    );
}

/// A vendor's dialect may be used for all that the vendor sends, not only where it is needed.
#[test]
fn a_dialect_spoils_no_line_of_its_vendor() {
    let mut lines = 0;
    for line in CORPUS.lines() {
        let line: Value = serde_json::from_str(line).expect("a line is one JSON object");
        let Some(dialect) = dialect(line["api"].as_str().expect("an API"))
            .filter(|_| line["needs_vendor"] == false)
        else {
            continue;
        };
        lines += 1;
        let reader = Reader::new().dialect(dialect);
        let feedback = reader.read(
            status(&line),
            &headers(&line),
            instant(line["at"].as_str().expect("at")),
        );
        assert_eq!(
            faults(&line, &feedback),
            [""; 0],
            "{}: {feedback:?}",
            line["id"]
        );
    }
    assert!(lines > 10, "only {lines} lines");
}

/// The general rules, and the vendor's dialect where the line says that they cannot be enough.
fn reader_for(line: &Value) -> Reader {
    let dialect =
        (line["needs_vendor"] == true).then(|| dialect(line["api"].as_str().expect("an API")));
    match dialect.flatten() {
        Some(dialect) => Reader::new().dialect(dialect),
        None => Reader::new(),
    }
}

/// The dialect of an API, if it has one: some need nothing but the careful reading of the general rules.
fn dialect(api: &str) -> Option<Dialect> {
    let dialects = [
        ("Airtable", Dialect::airtable()),
        ("Amazon SP-API", Dialect::amazon_sp_api()),
        ("Azure OpenAI", Dialect::azure_openai()),
        ("Binance", Dialect::binance()),
        ("Bybit", Dialect::bybit()),
        ("Cashfree", Dialect::cashfree()),
        ("Discord (2016", Dialect::discord_v7()),
        ("Discord", Dialect::discord()),
        ("Dynamics 365", Dialect::dataverse()),
        ("Facebook", Dialect::facebook()),
        ("GitHub", Dialect::github()),
        ("Gorgias", Dialect::gorgias()),
        ("IXX", Dialect::ixx()),
        ("KuCoin", Dialect::kucoin()),
        ("Oracle", Dialect::oracle()),
        ("Prisjakt", Dialect::prisjakt()),
        ("Riot", Dialect::riot()),
        ("Salesforce", Dialect::salesforce()),
        ("Sentry", Dialect::sentry()),
        ("Shopify", Dialect::shopify()),
        ("SkuVault", Dialect::skuvault()),
        ("Strava", Dialect::strava()),
    ];
    let found = dialects.into_iter().find(|(name, _)| api.starts_with(name));
    found.map(|(_, dialect)| dialect)
}

fn status(line: &Value) -> StatusCode {
    let code = line["status"]
        .as_u64()
        .and_then(|code| u16::try_from(code).ok());
    StatusCode::from_u16(code.expect("a status")).expect("a status code")
}

fn headers(line: &Value) -> HeaderMap {
    let mut map = HeaderMap::new();
    for pair in line["headers"].as_array().expect("headers") {
        let name = pair[0].as_str().expect("a name");
        let value = pair[1].as_str().expect("a value");
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a legal name");
        map.append(
            name,
            HeaderValue::from_bytes(value.as_bytes()).expect("a legal value"),
        );
    }
    map
}

/// `2022-09-14T00:30:09.123Z`. Its own small reader, so that the test does not lean on the code under test.
fn instant(text: &str) -> SystemTime {
    let number = |from: usize, to: usize| text[from..to].parse::<i64>().expect("digits");
    let (year, month, day) = (number(0, 4), number(5, 7), number(8, 10));
    let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut days: i64 = (1970..year)
        .map(|year| if leap(year) { 366 } else { 365 })
        .sum();
    let lengths = [
        31,
        if leap(year) { 29 } else { 28 },
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    days += lengths[..usize::try_from(month - 1).expect("a month")]
        .iter()
        .sum::<i64>()
        + day
        - 1;
    let secs = days * 86_400 + number(11, 13) * 3_600 + number(14, 16) * 60 + number(17, 19);
    let fraction = text[19..].trim_end_matches('Z').trim_start_matches('.');
    let nanos = format!("{fraction:0<9}").parse().expect("a fraction");
    SystemTime::UNIX_EPOCH + Duration::new(u64::try_from(secs).expect("after 1970"), nanos)
}

/// What differs from the expected reading.
fn faults(line: &Value, feedback: &Feedback) -> Vec<String> {
    let mut faults = Vec::new();
    // The grain of the clock that absolute times are measured with: seconds in `Date`, at best milliseconds in `at`.
    let fractional = line["at"].as_str().is_some_and(|at| at.contains('.'));
    let slack = match line["at_basis"] == "Date header" {
        true => 1.0,
        false if fractional => 1e-3,
        false => 0.0,
    };

    if line["refused"] != feedback.refused && !refused_in_the_body(line) {
        faults.push(format!("refused should be {}", line["refused"]));
    }

    let one = [line["expect"]["wait_s"].clone()];
    let accepted = line["accept_wait_s"]
        .as_array()
        .map_or(one.as_slice(), Vec::as_slice);
    if !accepted
        .iter()
        .any(|wait| same_wait(wait, feedback.wait(), slack))
    {
        faults.push(format!(
            "wait {:?} should be one of {accepted:?}",
            feedback.wait()
        ));
    }

    let expected = line["expect"]["budgets"].as_array().expect("budgets");
    let mut found: Vec<_> = feedback.budgets.iter().collect();
    for budget in expected {
        match found
            .iter()
            .position(|found| same_budget(line, budget, found, slack))
        {
            Some(index) => drop(found.swap_remove(index)),
            None => faults.push(format!("no budget {budget}")),
        }
    }
    faults.extend(found.iter().map(|budget| format!("unexpected {budget:?}")));
    faults
}

/// A response without a single rate field, under a status that has other uses, which the API's body or documentation
/// calls a refusal: no reader of headers can know.
fn refused_in_the_body(line: &Value) -> bool {
    line["family"] == "none" && line["refused"] == true && line["status"] != 429
}

fn same_wait(expected: &Value, found: Option<Duration>, slack: f64) -> bool {
    match (expected, found) {
        (Value::String(word), Some(found)) => word == "max" && found.as_secs_f64() >= OVER_LONG,
        (Value::String(_), None) => false,
        _ => same_time(expected, found, slack),
    }
}

fn same_time(expected: &Value, found: Option<Duration>, slack: f64) -> bool {
    match (expected.as_f64(), found) {
        (Some(expected), Some(found)) => (expected - found.as_secs_f64()).abs() <= slack + 1e-6,
        (None, None) => true,
        _ => false,
    }
}

fn same_budget(line: &Value, expected: &Value, found: &Budget, slack: f64) -> bool {
    let resets = expected["accept_reset_in_s"].as_array().cloned();
    let mut resets = resets.unwrap_or_else(|| vec![expected["reset_in_s"].clone()]);
    // Where the line accepts that nobody waits for it, a reset that no window explains may be distrusted.
    let absurd =
        |reset: &Value| (reset.as_f64()).is_some_and(|reset| reset > MAX_WINDOW.as_secs_f64());
    let need_not_wait = |waits: &Vec<Value>| waits.contains(&Value::Null);
    if resets.iter().all(absurd) && line["accept_wait_s"].as_array().is_some_and(need_not_wait) {
        resets.push(Value::Null);
    }
    expected["name"].as_str() == found.name.as_deref()
        && (same_count(&expected["limit"], found.limit) || same_rate(expected, found))
        && same_count(&expected["remaining"], found.remaining)
        && (expected["used"].is_null() || same_count(&expected["used"], found.used))
        && resets
            .iter()
            .any(|reset| same_time(reset, found.reset, slack))
        && (same_time(&expected["window_s"], found.window, 0.0)
            // A dialect may know what the documentation says.
            || line["needs_vendor"] == true && same_time(&expected["doc_window_s"], found.window, 0.0)
            || same_rate(expected, found))
}

/// A fraction that is left is less than one: it is cut.
fn same_count(expected: &Value, found: Option<u64>) -> bool {
    match (expected.as_f64(), found) {
        (Some(expected), Some(found)) => {
            expected == found as f64
                || expected.fract() > 0.0 && expected >= 1.0 && expected.floor() == found as f64
        }
        (None, None) => true,
        _ => false,
    }
}

/// A limit below one is a rate per second, which is shown as a limit and its window.
fn same_rate(expected: &Value, found: &Budget) -> bool {
    let rate = expected["limit"].as_f64().filter(|rate| rate.fract() > 0.0);
    let (Some(rate), Some(limit), Some(window)) = (rate, found.limit, found.window) else {
        return false;
    };
    (limit as f64 / window.as_secs_f64() / rate - 1.0).abs() < 1e-6
}
