//! Header blocks: what a response head is to the reader.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use tower_throttle::feedback::{Dialect, Meaning, Reader, Rule, TimeForm, Unit};

use super::bytes::Bytes;

/// Names of real fields, from all families.
pub(crate) const NAMES: &[&str] = &[
    "retry-after",
    "date",
    "age",
    "ratelimit",
    "ratelimit-policy",
    "ratelimit-limit",
    "ratelimit-remaining",
    "ratelimit-reset",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "x-ratelimit-reset-after",
    "x-ratelimit-reset-in",
    "x-ratelimit-retry-after",
    "x-ratelimit-used",
    "x-ratelimit-usage",
    "x-ratelimit-resource",
    "x-ratelimit-bucket",
    "x-ratelimit-scope",
    "x-ratelimit-global",
    "x-ratelimit-period",
    "x-ratelimit-interval-seconds",
    "x-ratelimit",
    "x-ratelimit-limit-requests",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-requests",
    "x-ratelimit-limit-tokens",
    "x-ratelimit-remaining-tokens",
    "x-ratelimit-reset-tokens",
    "x-ratelimit-limit-minute",
    "x-ratelimit-remaining-minute",
    "x-ratelimit-remaining-req-10-second",
    "x-ratelimit-dailylimit",
    "x-ratelimit-dailyremaining",
    "x-ratelimit-dailyreset",
    "x-ratelimit-complexity-remaining",
    "x-ratelimit-complexity-reset",
    "x-rate-limit-limit",
    "x-rate-limit-remaining",
    "x-rate-limit-reset",
    "x-rate-limit-window",
    "rate-limit-reset",
    "anthropic-ratelimit-requests-remaining",
    "anthropic-ratelimit-requests-reset",
    "anthropic-ratelimit-tokens-remaining",
    "anthropic-ratelimit-tokens-reset",
    "retry-after-ms",
    "x-ms-retry-after-ms",
    "x-retry-in",
    "grpc-retry-pushback-ms",
    "grpc-status",
    "x-envoy-ratelimited",
    "x-remaining-today",
    "x-limit-per-day",
    "x-daylimit-remaining",
    "x-app-rate-limit",
    "x-app-rate-limit-count",
    "x-method-rate-limit",
    "x-sentry-rate-limits",
    "x-shopify-shop-api-call-limit",
    "sforce-limit-info",
    "x-business-use-case-usage",
    "x-amzn-errortype",
    "x-amzn-ratelimit-limit",
    "x-mbx-used-weight-1m",
    "x-bapi-limit-status",
    "x-bapi-limit-reset-timestamp",
    "x-ms-ratelimit-time-remaining-xrm-requests",
    "requestlimit-write-retryafter",
    "gw-ratelimit-reset",
    "content-type",
];

/// Values that are at an edge of some grammar.
pub(crate) const VALUES: &[&str] = &[
    "0",
    "1",
    "2",
    "60",
    "-1",
    "-5",
    "0.5",
    "1e400",
    "NaN",
    "inf",
    "99999999999999999999",
    "1372699626",
    "1372699636",
    "1372699686000",
    "9223372036854775807",
    "18446744073709551615",
    "253402300799",
    "Mon, 01 Jul 2013 17:27:06 GMT",
    "Mon, 01 Jul 2013 17:28:06 GMT",
    "Sun Nov  6 08:49:37 2099",
    "Sunday, 06-Nov-94 08:49:37 GMT",
    "9999-12-31T23:59:60.999999999999Z",
    "0000-01-01T00:00:00+23:59",
    "2013-07-01T17:27:36Z",
    "6m0s",
    "99999999999999999999h",
    "10, 10;w=1, 50;w=60",
    "\"a\";r=0;t=30",
    "\"a\";r=0;t=999999999999999",
    "\"a\";q=1;w=999999999999999;pk=:YQ==:",
    "limit=1, remaining=0, reset=5",
    "{\"limit\":1,\"remaining\":0,\"until\":\"x\"}",
    "total=1; remaining=0; resets=5",
    "20:1,100:18446744073709551615",
    "32/40",
    "a=1/2; b=3/4(c)",
    "60:error:org, 5::",
    "{\"call_count\":200,\"estimated_time_to_regain_access\":18446744073709551615}",
    "ThrottlingException",
    "global",
    "8",
    ",",
    ";",
    "\"",
    "",
    "0.0000000000001",
    "1,000",
];

/// Mon, 01 Jul 2013 17:27:06 GMT, near which the dictionary's instants lie.
pub(crate) const NOW: Duration = Duration::from_secs(1_372_699_626);

const STATUSES: [u16; 16] = [
    200, 429, 503, 403, 204, 301, 304, 307, 400, 404, 418, 420, 500, 502, 100, 999,
];

/// A response head, when it came, and who reads it.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) now: SystemTime,
    pub(crate) dialect: Option<Dialect>,
}

/// More lines than `http` allows in one map would be an error of its own, and longer values are no news to the reader.
const MAX_LINES: usize = 1_000;
const MAX_LENGTH: usize = 8_192;

impl Block {
    /// Status, clock and dialect take a few bytes; the rest are lines.
    pub(crate) fn parse(mut bytes: Bytes<'_>) -> Self {
        let status = status(bytes.byte());
        let now = clock(&mut bytes);
        let dialect = dialect(bytes.byte());
        let mut block = Self {
            status,
            headers: HeaderMap::new(),
            now,
            dialect,
        };
        block.lines(bytes.rest());
        block
    }

    pub(crate) fn reader(&self) -> Reader {
        match &self.dialect {
            None => Reader::new(),
            Some(dialect) => Reader::new().dialect(dialect.clone()),
        }
    }

    /// Reads lines of `name: value`. A first byte above 127 stands for a name of the dictionary, and at the start of a value for
    /// one of its values. 1 and a count before a line repeat the line, 2 and a count the value; 3 makes a rule of the line.
    pub(crate) fn lines(&mut self, text: &[u8]) {
        for line in text.split(|&byte| byte == b'\n') {
            let mut bytes = Bytes::new(line);
            let (mut lines, mut repeats) = (1, 1);
            if let Some(mark @ 1..=3) = line.first() {
                bytes.byte();
                match mark {
                    1 => lines = usize::from(bytes.byte()) + 1,
                    2 => repeats = (usize::from(bytes.byte()) + 1) * 8,
                    _ => {
                        self.rule(bytes);
                        continue;
                    }
                }
            }
            let (name, value) = field(bytes.rest());
            let value = value.repeat(repeats);
            let (Ok(name), Ok(value)) = (
                HeaderName::from_bytes(&name),
                HeaderValue::from_bytes(&value[..value.len().min(MAX_LENGTH)]),
            ) else {
                continue;
            };
            for _ in 0..lines {
                if self.headers.len() < MAX_LINES {
                    self.headers.append(&name, value.clone());
                }
            }
        }
    }

    /// Adds a rule to the dialect: what the field means, how its windows and name are given, and its name.
    fn rule(&mut self, mut bytes: Bytes<'_>) {
        const WINDOWS: &[Duration] = &[Duration::from_secs(900), Duration::from_secs(86_400)];
        let (meaning, flags) = (bytes.byte(), bytes.byte());
        let (name, _) = field(bytes.rest());
        let Ok(name) = String::from_utf8(name) else {
            return;
        };
        let mut rule = Rule::new(name, self::meaning(meaning));
        if flags & 1 != 0 {
            rule = rule.named("a-*-b");
        }
        if flags & 2 != 0 {
            rule = rule.unit(Unit::Tokens);
        }
        if flags & 4 != 0 {
            rule = rule.windows(WINDOWS);
        }
        if flags & 8 != 0 {
            rule = rule.grouped();
        }
        let mut dialect = self.dialect.take().unwrap_or_default().rule(rule);
        if flags & 16 != 0 {
            dialect = dialect.refuses(self.status);
        }
        if flags & 32 != 0 {
            dialect = dialect.refuses_when_spent();
        }
        if flags & 64 != 0 {
            dialect = dialect.refusal_wait(Duration::from_secs(30));
        }
        self.dialect = Some(dialect);
    }
}

fn field(line: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let known = |list: &[&str], byte: u8| list[usize::from(byte) % list.len()].as_bytes().to_vec();
    let (name, value) = match line {
        [byte @ 128..=255, rest @ ..] => (known(NAMES, *byte), rest),
        _ => match line.iter().position(|&byte| byte == b':') {
            Some(colon) => (line[..colon].to_vec(), &line[colon + 1..]),
            None => (line.to_vec(), &[][..]),
        },
    };
    let value = match value.trim_ascii_start() {
        [byte @ 128..=255, rest @ ..] => [known(VALUES, *byte), rest.to_vec()].concat(),
        value => value.to_vec(),
    };
    (name, value)
}

/// The usual statuses, and the others too.
pub(crate) fn status(byte: u8) -> StatusCode {
    let code = match byte {
        ..128 => STATUSES[usize::from(byte) % STATUSES.len()],
        _ => 100 + u16::from(byte - 128) * 7,
    };
    StatusCode::from_u16(code).expect("all are between 100 and 999")
}

/// The wall clock: right, off by any number of seconds, or anything at all.
pub(crate) fn clock(bytes: &mut Bytes<'_>) -> SystemTime {
    let (whole, nanos) = match bytes.byte() % 4 {
        0 => (NOW.as_secs() as i64, 0),
        1 => (i64::from(bytes.number(4) as u32), 0),
        2 => (bytes.wild() as i64, bytes.number(4)),
        _ => (-(bytes.number(5) as i64), bytes.number(4)),
    };
    let nanos = Duration::from_nanos(nanos % 1_000_000_000);
    let offset = Duration::from_secs(whole.unsigned_abs());
    let time = if whole < 0 {
        SystemTime::UNIX_EPOCH.checked_sub(offset)
    } else {
        SystemTime::UNIX_EPOCH.checked_add(offset)
    };
    time.and_then(|time| time.checked_add(nanos))
        .unwrap_or(SystemTime::UNIX_EPOCH)
}

/// None for the lower half, then the ready ones.
pub(crate) fn dialect(byte: u8) -> Option<Dialect> {
    const READY: [fn() -> Dialect; 24] = [
        Dialect::airtable,
        Dialect::amazon_sp_api,
        Dialect::aws,
        Dialect::azure_openai,
        Dialect::binance,
        Dialect::bybit,
        Dialect::cashfree,
        Dialect::dataverse,
        Dialect::discord,
        Dialect::discord_v7,
        Dialect::facebook,
        Dialect::github,
        Dialect::gorgias,
        Dialect::ixx,
        Dialect::kucoin,
        Dialect::nginx,
        Dialect::oracle,
        Dialect::prisjakt,
        Dialect::riot,
        Dialect::salesforce,
        Dialect::sentry,
        Dialect::shopify,
        Dialect::skuvault,
        Dialect::strava,
    ];
    let index = byte.checked_sub(128)?;
    Some(READY[usize::from(index) % READY.len()]())
}

fn meaning(byte: u8) -> Meaning {
    const TEXTS: &[&str] = &["Throttl", "limit", ""];
    let form = match byte / 16 % 3 {
        0 => TimeForm::Auto,
        1 => TimeForm::Seconds,
        _ => TimeForm::Millis,
    };
    match byte % 16 {
        0 => Meaning::Limit,
        1 => Meaning::Remaining,
        2 => Meaning::Used,
        3 => Meaning::Reset(form),
        4 => Meaning::Window(form),
        5 => Meaning::Hold(form),
        6 => Meaning::Rate,
        7 => Meaning::UsedOfLimit,
        8 => Meaning::NamedUsedOfLimit,
        9 => Meaning::LimitPerWindow,
        10 => Meaning::UsedPerWindow,
        11 => Meaning::Holds,
        12 => Meaning::Percents,
        13 => Meaning::Refusal(TEXTS),
        _ => Meaning::Ignore,
    }
}
