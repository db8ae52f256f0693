//! What a dialect adds, and what it leaves alone.

use std::time::Duration;

use http::StatusCode;

use super::super::{Dialect, Fault, Feedback, Hold, Meaning, Reader, Rule, TimeForm, Unit};
use super::{T, at, headers, secs};

fn read(dialect: &Dialect, status: u16, fields: &[(&str, &str)]) -> Feedback {
    let status = StatusCode::from_u16(status).unwrap();
    Reader::new()
        .dialect(dialect.clone())
        .read(status, &headers(fields), at(T))
}

/// C71 (a): letter case does not matter, in rules and in fields.
#[test]
fn letter_case() {
    let dialect = Dialect::new()
        .rule(Rule::new("X-Calls-LEFT", Meaning::Remaining))
        .rule(
            Rule::new(
                String::from("x-CALLS-*-back"),
                Meaning::Reset(TimeForm::Millis),
            )
            .named("x"),
        );
    let feedback = read(
        &dialect,
        200,
        &[("X-CALLS-left", "0"), ("X-Calls-All-Back", "1500")],
    );
    assert_eq!(
        feedback.budgets.len(),
        1,
        "a nameless set completes a named one"
    );
    assert_eq!(feedback.wait(), Some(Duration::from_millis(1500)));
}

#[test]
fn a_star_names_the_budget() {
    let dialect = Dialect::new()
        .rule(Rule::new("x-mine-*-left", Meaning::Remaining))
        .rule(
            Rule::new("x-used-*", Meaning::Used)
                .named("weight-*")
                .unit(Unit::Other),
        );
    let feedback = read(
        &dialect,
        200,
        &[
            ("x-mine-search-left", "4"),
            ("x-used-1m", "9"),
            ("x-mine--left", "1"),
        ],
    );
    assert_eq!(
        feedback.budgets.len(),
        2,
        "a star is at least one character"
    );
    assert_eq!(feedback.budgets[0].name.as_deref(), Some("search"));
    let weight = &feedback.budgets[1];
    assert_eq!(
        (weight.name.as_deref(), weight.used, weight.window),
        (Some("weight-1m"), Some(9), Some(secs(60)))
    );
    assert_eq!(weight.unit, Unit::Other);
}

#[test]
fn a_rule_joins_the_fields_that_the_general_rules_read() {
    let fields = [
        ("x-ratelimit-limit", "10"),
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "48212"),
    ];
    let feedback = read(&Dialect::skuvault(), 429, &fields);
    assert_eq!(feedback.budgets.len(), 1);
    assert_eq!(feedback.wait(), Some(Duration::from_millis(48_212)));
    let fields = [
        ("x-ratelimit-remaining-requests", "0"),
        ("x-ratelimit-reset-requests", "500"),
    ];
    assert_eq!(
        read(&Dialect::azure_openai(), 429, &fields).wait(),
        Some(Duration::from_millis(500))
    );
}

#[test]
fn used_of_limit() {
    let shop = |value| {
        read(
            &Dialect::shopify(),
            200,
            &[("x-shopify-shop-api-call-limit", value)],
        )
    };
    let budget = &shop("32/40").budgets[0];
    assert_eq!(
        (budget.used, budget.limit, budget.remaining),
        (Some(32), Some(40), Some(8))
    );
    assert_eq!(shop("41/40").budgets[0].remaining, Some(0));
    for junk in ["32", "a/40", "32/", "/", ""] {
        let feedback = shop(junk);
        assert_eq!(
            (feedback.budgets.len(), feedback.malformed_count),
            (0, 1),
            "{junk}"
        );
    }
    let named = read(
        &Dialect::salesforce(),
        200,
        &[(
            "sforce-limit-info",
            "api-usage=25/5000; x=17/250(app=y); junk",
        )],
    );
    assert_eq!((named.budgets.len(), named.malformed_count), (2, 1));
    assert_eq!(named.budgets[1].name.as_deref(), Some("x"));
}

#[test]
fn counts_by_window_are_joined_on_the_window() {
    let fields = [
        ("x-app-rate-limit", "20:1,100:120"),
        ("x-app-rate-limit-count", "36:120,21:1"),
    ];
    let feedback = read(&Dialect::riot(), 429, &fields);
    let left: Vec<_> = feedback
        .budgets
        .iter()
        .map(|budget| (budget.window, budget.remaining))
        .collect();
    assert_eq!(
        left,
        [(Some(secs(1)), Some(0)), (Some(secs(120)), Some(64))]
    );
    assert!(
        feedback
            .budgets
            .iter()
            .all(|budget| budget.name.as_deref() == Some("app"))
    );
}

#[test]
fn windows_by_place() {
    let fields = [
        ("x-ratelimit-limit", "200,2000"),
        ("x-ratelimit-usage", "5,148"),
    ];
    let feedback = read(&Dialect::strava(), 200, &fields);
    let rows: Vec<_> = feedback
        .budgets
        .iter()
        .map(|budget| (budget.window, budget.remaining))
        .collect();
    assert_eq!(
        rows,
        [
            (Some(secs(900)), Some(195)),
            (Some(secs(86_400)), Some(1852))
        ]
    );
    let alone = read(
        &Dialect::strava(),
        200,
        &[("x-ratelimit-limit", "200,2000")],
    );
    assert_eq!(alone.budgets.len(), 2);
}

#[test]
fn rates() {
    let rate = |value| {
        let feedback = read(
            &Dialect::amazon_sp_api(),
            200,
            &[("x-amzn-ratelimit-limit", value)],
        );
        feedback
            .budgets
            .first()
            .map(|budget| (budget.limit, budget.window.unwrap()))
    };
    assert_eq!(rate("2.0"), Some((Some(2), secs(1))));
    let (limit, window) = rate("0.0167").unwrap();
    assert_eq!(limit, Some(1));
    assert!(window > Duration::from_millis(59_880) && window < Duration::from_millis(59_881));
    assert_eq!(rate("0"), None);
    assert_eq!(
        rate("99999999999999999999.5").unwrap().1,
        Duration::from_nanos(1)
    );
}

#[test]
fn waits_by_category() {
    let fields = [(
        "x-sentry-rate-limits",
        "60:transaction:key, 2700:error;security:organization, 5::org",
    )];
    let feedback = read(&Dialect::sentry(), 200, &fields);
    assert!(!feedback.refused);
    assert_eq!(feedback.wait(), Some(secs(2700)));
    let names: Vec<_> = feedback
        .budgets
        .iter()
        .map(|budget| budget.name.as_deref())
        .collect();
    assert_eq!(names, [Some("transaction"), Some("error;security"), None]);
}

#[test]
fn per_cents() {
    let usage = r#"{"17":[{"type":"ads","call_count":100,"total_time":25,"estimated_time_to_regain_access":19}]}"#;
    let feedback = read(
        &Dialect::facebook(),
        400,
        &[("x-business-use-case-usage", usage)],
    );
    let calls = feedback
        .budgets
        .iter()
        .find(|budget| budget.name.as_deref() == Some("call_count"))
        .unwrap();
    assert_eq!(
        (calls.limit, calls.remaining, calls.reset),
        (Some(100), Some(0), Some(secs(19 * 60)))
    );
    assert_eq!(calls.unit, Unit::Percent);
    let time = feedback
        .budgets
        .iter()
        .find(|budget| budget.name.as_deref() == Some("total_time"))
        .unwrap();
    assert_eq!((time.remaining, time.reset), (Some(75), None));
}

#[test]
fn grouped_digits() {
    let feedback = read(
        &Dialect::dataverse(),
        204,
        &[("x-ms-ratelimit-time-remaining-xrm-requests", "1,199.46")],
    );
    let budget = &feedback.budgets[0];
    assert_eq!((budget.remaining, budget.unit), (Some(1199), Unit::Time));
}

#[test]
fn refusals() {
    let documented = Some(Hold {
        wait: secs(30),
        field: Rule::DOCUMENTED,
    });
    assert_eq!(read(&Dialect::airtable(), 429, &[]).hold, documented);
    assert_eq!(read(&Dialect::airtable(), 200, &[]).hold, None);
    assert_eq!(
        read(&Dialect::airtable(), 429, &[("retry-after", "5")]).wait(),
        Some(secs(5))
    );
    let spent = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "25")];
    assert_eq!(
        read(&Dialect::github(), 403, &spent).wait(),
        Some(secs(25)),
        "a reset is named"
    );
    let secondary = [("x-ratelimit-remaining", "4000"), ("retry-after", "")];
    assert_eq!(
        read(&Dialect::github(), 403, &secondary).wait(),
        Some(secs(60))
    );
    assert!(
        !read(&Dialect::github(), 403, &secondary[..1]).refused,
        "most are no limits"
    );

    assert!(read(&Dialect::nginx(), 503, &[]).refused);
    assert!(read(&Dialect::binance(), 418, &[]).refused);
    let error = |name| read(&Dialect::aws(), 400, &[("x-amzn-errortype", name)]).refused;
    assert!(error("ThrottlingException:http://internal.amazon.com/"));
    assert!(error("ProvisionedThroughputExceededException"));
    assert!(!error("ValidationException"));
    assert!(
        !read(
            &Dialect::aws(),
            200,
            &[("x-amzn-errortype", "ThrottlingException")]
        )
        .refused
    );
}

#[test]
fn a_reset_that_comes_only_with_refusals() {
    let bybit = |left, reset| {
        let fields = [
            ("x-bapi-limit", "10"),
            ("x-bapi-limit-status", left),
            ("x-bapi-limit-reset-timestamp", reset),
        ];
        read(&Dialect::bybit(), 200, &fields)
    };
    let spent = bybit("0", "1372699626500");
    assert_eq!(
        (spent.refused, spent.wait()),
        (true, Some(Duration::from_millis(500)))
    );
    let last = bybit("0", "1372699626000");
    assert!(!last.refused, "the last request that passed");
    let open = bybit("9", "1372699700000");
    assert_eq!(
        (open.refused, open.budgets[0].reset),
        (false, Some(Duration::ZERO))
    );
}

#[test]
fn milliseconds_in_retry_after() {
    let retry = [("retry-after", "6457")];
    assert_eq!(
        read(&Dialect::discord_v7(), 429, &retry).wait(),
        Some(Duration::from_millis(6457))
    );
    assert_eq!(
        read(&Dialect::discord(), 429, &retry).wait(),
        Some(secs(6457))
    );
    assert!(read(&Dialect::discord(), 503, &[("retry-after", "soon")]).refused);
}

#[test]
fn intervals_under_other_names() {
    let feedback = read(
        &Dialect::ixx(),
        403,
        &[("x-ratelimit-limit", "1000"), ("x-ratelimit-next", "500")],
    );
    assert_eq!(
        (feedback.refused, feedback.wait()),
        (true, Some(Duration::from_millis(500)))
    );
    let budget = &feedback.budgets[0];
    assert_eq!((budget.limit, budget.window), (None, Some(secs(1))));
}

#[test]
fn ignored_fields() {
    let dialect = Dialect::new().rule(Rule::new("x-ratelimit-*", Meaning::Ignore));
    let fields = [
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "5"),
        ("retry-after", "1"),
    ];
    let feedback = read(&dialect, 429, &fields);
    assert_eq!(
        (feedback.budgets.len(), feedback.wait()),
        (0, Some(secs(1)))
    );
}

/// However much comes before it, an explicit wait is read.
#[test]
fn nothing_hides_an_explicit_wait() {
    let fields: Vec<_> = (0..100)
        .map(|n| format!("x-ratelimit-limit-b{n}"))
        .collect();
    let mut fields: Vec<_> = fields.iter().map(|name| (name.as_str(), "5")).collect();
    fields.push(("retry-after", "7"));
    assert_eq!(read(&Dialect::new(), 429, &fields).wait(), Some(secs(7)));
    assert_eq!(
        read(&Dialect::discord(), 429, &fields).wait(),
        Some(secs(7))
    );
}

#[test]
fn bounds_hold_for_rules_too() {
    let fields: Vec<_> = (0..100).map(|n| format!("x-used-{n}")).collect();
    let fields: Vec<_> = fields.iter().map(|name| (name.as_str(), "5")).collect();
    let dialect = Dialect::new().rule(Rule::new("x-used-*", Meaning::Used));
    let feedback = read(&dialect, 200, &fields);
    assert!(feedback.malformed_count > 60);
    assert!(
        feedback
            .malformed
            .iter()
            .all(|malformed| malformed.why == Fault::TooMany)
    );
}
