//! What reading one response head costs, also as a multiple of looking one field up by its name in the same head.
//!
//! An ordinary answer without rate fields, GitHub's and OpenAI's (the ordinary fields with theirs), and heads of a hundred fields made
//! to cost as much as possible. Bars: 150 ns, 500 ns, 800 ns and 5 us.

use std::{
    hint::black_box,
    time::{Duration, SystemTime},
};

use http::{HeaderMap, HeaderName, StatusCode};
use tower_throttle::feedback::read;

use table::{Table, now};

#[path = "support/table.rs"]
mod table;

const SAMPLES: usize = 31;
const READS: u32 = 5_000;

const ORDINARY: &[(&str, &str)] = &[
    ("date", "Tue, 05 Mar 2024 10:15:00 GMT"),
    ("content-type", "application/json; charset=utf-8"),
    ("content-length", "5120"),
    ("server", "nginx"),
    ("cache-control", "private, max-age=60, s-maxage=60"),
    ("vary", "Accept, Authorization, Cookie"),
    ("etag", "W/\"4f7a1e0f0c9fbb3c1ab3c5b34c2a0a2f\""),
    (
        "strict-transport-security",
        "max-age=31536000; includeSubdomains; preload",
    ),
    ("x-frame-options", "deny"),
    ("x-content-type-options", "nosniff"),
    ("x-request-id", "C0F6:3A9F:2C5D2C:2D6A6C:65E6F0B4"),
    ("connection", "keep-alive"),
];

const GITHUB: &[(&str, &str)] = &[
    ("x-ratelimit-limit", "5000"),
    ("x-ratelimit-remaining", "4999"),
    ("x-ratelimit-reset", "1709637300"),
    ("x-ratelimit-used", "1"),
    ("x-ratelimit-resource", "core"),
];

const OPENAI: &[(&str, &str)] = &[
    ("x-ratelimit-limit-requests", "30000"),
    ("x-ratelimit-limit-tokens", "150000000"),
    ("x-ratelimit-remaining-requests", "29999"),
    ("x-ratelimit-remaining-tokens", "149999982"),
    ("x-ratelimit-reset-requests", "2ms"),
    ("x-ratelimit-reset-tokens", "6m0s"),
];

fn map<'a>(fields: impl IntoIterator<Item = &'a (&'a str, &'a str)>) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in fields {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a legal name");
        map.append(name, value.parse().expect("a legal value"));
    }
    map
}

/// A hundred fields, made by `field` from their number.
fn hundred(field: impl Fn(usize) -> (String, String)) -> HeaderMap {
    let fields: Vec<_> = (0..100).map(field).collect();
    map(fields
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect::<Vec<_>>()
        .iter())
}

fn main() {
    let list: String = (0..40).map(|n| format!("\"p{n}\";r=1;t=1, ")).collect();
    let hostile = [
        (
            "100 names of budgets",
            hundred(|n| (format!("x-ratelimit-limit-budget{n}"), "5".into())),
        ),
        (
            "100 families",
            hundred(|n| (format!("x-brand{n}-ratelimit-remaining"), "0".into())),
        ),
        (
            "100 loose names",
            hundred(|n| (format!("x-some-thing-{n}-remaining"), "1".into())),
        ),
        (
            "100 broken values",
            hundred(|n| (format!("x-ratelimit-reset-b{n}"), "9".repeat(300) + "x")),
        ),
        (
            "100 long numbers",
            hundred(|n| (format!("x-ratelimit-limit-b{n}"), "9".repeat(300))),
        ),
        (
            "100 huge counts",
            hundred(|n| (format!("x-ratelimit-limit-b{n}"), "9".repeat(8_000))),
        ),
        (
            "100 huge sets",
            hundred(|_| ("x-ratelimit".into(), "{\"a\":1,".repeat(1_000))),
        ),
        (
            "100 huge waits",
            hundred(|_| ("retry-after".into(), "1,".repeat(4_000))),
        ),
        (
            "100 huge lines",
            hundred(|_| ("ratelimit".into(), "\"a\";r=1, ".repeat(800))),
        ),
        (
            "100 full lines",
            hundred(|_| ("x-ratelimit-limit".into(), "1, ".repeat(340))),
        ),
        (
            "100 full sets",
            hundred(|_| ("x-ratelimit".into(), "{\"a\":1,".repeat(125))),
        ),
        (
            "100 dates",
            hundred(|_| {
                (
                    "x-ratelimit-reset".into(),
                    "Tue, 05 Mar 2024 10:15:00 GMT".into(),
                )
            }),
        ),
        (
            "100 waits",
            hundred(|_| ("retry-after".into(), "Tue, 05 Mar 2024 10:15:00 GMT".into())),
        ),
        (
            "100 joined waits",
            hundred(|_| {
                (
                    "retry-after".into(),
                    "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12".into(),
                )
            }),
        ),
        (
            "100 structured lines",
            hundred(|n| ("ratelimit".into(), format!("\"p{n}\";r=1;t=1"))),
        ),
        (
            "100 policy lines",
            hundred(|n| ("ratelimit-policy".into(), format!("\"p{n}\";q=1;w=1"))),
        ),
        (
            "100 long structured lines",
            hundred(|_| ("ratelimit".into(), list.clone())),
        ),
        (
            "100 lists",
            hundred(|n| {
                (
                    format!("x-ratelimit-limit-b{n}"),
                    "10, 10;w=1, 50;w=60".into(),
                )
            }),
        ),
        (
            "100 JSON sets",
            hundred(|_| {
                (
                    "x-ratelimit".into(),
                    "{\"name\":\"a\",\"limit\":5,\"remaining\":0}".into(),
                )
            }),
        ),
        (
            "100 word chains",
            hundred(|n| {
                (
                    format!("x-limi-limi-limi-limi-ratelimit-{n}-a-b"),
                    "1".into(),
                )
            }),
        ),
        (
            "100 joined trios",
            hundred(|n| {
                (
                    if n % 2 == 0 {
                        "x-ratelimit-limit"
                    } else {
                        "x-ratelimit-remaining"
                    }
                    .into(),
                    "1, 2, 3, 4".into(),
                )
            }),
        ),
    ];
    let usual = [
        ("12 ordinary fields", map(ORDINARY), 150.0),
        (
            "GitHub, 17 fields",
            map(ORDINARY.iter().chain(GITHUB)),
            500.0,
        ),
        (
            "OpenAI, 18 fields",
            map(ORDINARY.iter().chain(OPENAI)),
            800.0,
        ),
    ];
    let mut table = Table::new(&["head", "ns", "bar", "one look-up, ns", "read / look-up"]);
    let mut above = Vec::new();
    let hostile = hostile
        .into_iter()
        .map(|(name, head)| (name, head, 5_000.0));
    for (name, head, bar) in usual.into_iter().chain(hostile) {
        let ns = time(|| {
            let status = black_box(StatusCode::OK);
            black_box(read(status, black_box(&head), black_box(when())));
        });
        let look_up = time(|| {
            black_box(black_box(&head).get(black_box("x-ratelimit-remaining")));
        });
        table.row([
            name.to_owned(),
            format!("{ns:.0}"),
            format!("{bar:.0}"),
            format!("{look_up:.1}"),
            format!("{:.1}", ns / look_up),
        ]);
        if ns > bar {
            above.push(format!("above {bar} ns: {name}: {ns:.0}"));
        }
    }
    table.print("reading one response head");
    above.iter().for_each(|line| println!("{line}"));
}

fn when() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_709_633_700)
}

/// Nanoseconds a call; the least of many samples, as everything else on the machine can only add.
fn time(mut call: impl FnMut()) -> f64 {
    let samples = (0..SAMPLES).map(|_| {
        let start = now();
        (0..READS).for_each(|_| call());
        start.elapsed().as_secs_f64() * 1e9 / f64::from(READS)
    });
    samples.fold(f64::INFINITY, f64::min)
}
