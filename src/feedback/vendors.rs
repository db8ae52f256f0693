//! Ready dialects, each with what the server's documentation says beyond its field names.

use std::time::Duration;

use http::StatusCode;

use super::{Dialect, Meaning, Rule, TimeForm, Unit};

const QUARTER_HOUR: Duration = Duration::from_secs(900);
const DAY: Duration = Duration::from_secs(86_400);

/// The `X-RateLimit-Reset` of several services, in milliseconds from now.
fn millis_reset(field: &'static str) -> Dialect {
    Dialect::new().rule(Rule::new(field, Meaning::Reset(TimeForm::Millis)))
}

impl Dialect {
    /// Airtable: a 429 names no time; wait 30 seconds.
    pub fn airtable() -> Self {
        Self::new().refusal_wait(Duration::from_secs(30))
    }

    /// Amazon Selling Partner API: the limit is a rate in requests per second, often below one.
    pub fn amazon_sp_api() -> Self {
        Self::new().rule(Rule::new("x-amzn-RateLimit-Limit", Meaning::Rate))
    }

    /// AWS services that throttle with status 400 and say so in `x-amzn-ErrorType`.
    pub fn aws() -> Self {
        const TEXTS: &[&str] = &[
            "Throttl",
            "TooManyRequests",
            "LimitExceeded",
            "ThroughputExceeded",
            "SlowDown",
        ];
        Self::new().rule(Rule::new("x-amzn-ErrorType", Meaning::Refusal(TEXTS)))
    }

    /// Azure OpenAI: resets are milliseconds from now, under OpenAI's names.
    pub fn azure_openai() -> Self {
        millis_reset("x-ratelimit-reset-*")
    }

    /// Binance: fields carry what is used, by window; the limits stand in its documentation. 418 is a ban.
    pub fn binance() -> Self {
        Self::new()
            .rule(
                Rule::new("X-MBX-USED-WEIGHT", Meaning::Used)
                    .named("used-weight")
                    .unit(Unit::Other),
            )
            .rule(
                Rule::new("X-MBX-USED-WEIGHT-*", Meaning::Used)
                    .named("used-weight-*")
                    .unit(Unit::Other),
            )
            .rule(
                Rule::new("X-MBX-ORDER-COUNT-*", Meaning::Used)
                    .named("order-count-*")
                    .unit(Unit::Other),
            )
            .refuses(StatusCode::IM_A_TEAPOT)
    }

    /// Bybit v5: `Status` is what is left, and the reset lies ahead only when the request was refused in the body of a 200.
    pub fn bybit() -> Self {
        Self::new()
            .rule(Rule::new("X-Bapi-Limit", Meaning::Limit))
            .rule(Rule::new("X-Bapi-Limit-Status", Meaning::Remaining))
            .rule(Rule::new(
                "X-Bapi-Limit-Reset-Timestamp",
                Meaning::Reset(TimeForm::Auto),
            ))
            .refuses_when_spent()
    }

    /// Cashfree: `retry` is the wait in seconds once limited, and 0 before.
    pub fn cashfree() -> Self {
        Self::new().rule(Rule::new(
            "x-ratelimit-retry",
            Meaning::Hold(TimeForm::Seconds),
        ))
    }

    /// Microsoft Dataverse: one of its counters is seconds of execution time, with commas between thousands.
    pub fn dataverse() -> Self {
        let time = Rule::new(
            "x-ms-ratelimit-time-remaining-xrm-requests",
            Meaning::Remaining,
        );
        Self::new().rule(time.unit(Unit::Time).grouped())
    }

    /// Discord: `Retry-After` is seconds, with a fraction, and never an epoch.
    pub fn discord() -> Self {
        Self::new().rule(Rule::new("retry-after", Meaning::Hold(TimeForm::Seconds)))
    }

    /// Discord's API up to version 7: `Retry-After` is milliseconds.
    pub fn discord_v7() -> Self {
        Self::new().rule(Rule::new("retry-after", Meaning::Hold(TimeForm::Millis)))
    }

    /// Facebook Graph: usage in per cent, in JSON.
    pub fn facebook() -> Self {
        Self::new()
            .rule(Rule::new("x-app-usage", Meaning::Percents))
            .rule(Rule::new("x-page-usage", Meaning::Percents))
            .rule(Rule::new("x-ad-account-usage", Meaning::Percents))
            .rule(Rule::new("x-business-use-case-usage", Meaning::Percents))
    }

    /// GitHub: a refusal by a secondary limit that names no time asks for at least a minute.
    pub fn github() -> Self {
        Self::new().refusal_wait(Duration::from_secs(60))
    }

    /// Gorgias: used/limit.
    pub fn gorgias() -> Self {
        Self::new().rule(Rule::new(
            "X-Gorgias-Account-Api-Call-Limit",
            Meaning::UsedOfLimit,
        ))
    }

    /// IXX exchange: `limit` is the interval between calls and `next` the time until the next one, both in milliseconds.
    pub fn ixx() -> Self {
        Self::new()
            .rule(Rule::new(
                "X-ratelimit-limit",
                Meaning::Window(TimeForm::Millis),
            ))
            .rule(Rule::new(
                "X-ratelimit-next",
                Meaning::Hold(TimeForm::Millis),
            ))
    }

    /// KuCoin: the reset is milliseconds from now.
    pub fn kucoin() -> Self {
        millis_reset("gw-ratelimit-reset")
    }

    /// nginx and ASP.NET Core in their defaults: a refusal is a bare 503.
    pub fn nginx() -> Self {
        Self::new().refuses(StatusCode::SERVICE_UNAVAILABLE)
    }

    /// Oracle Access Governance: waits in milliseconds, one for each kind of request.
    pub fn oracle() -> Self {
        millis_reset("RequestLimit-*-RetryAfter")
    }

    /// Prisjakt: the reset is milliseconds from now.
    pub fn prisjakt() -> Self {
        millis_reset("X-Rate-Limit-Reset")
    }

    /// Riot Games: limits and counts by window, for the application and for the method.
    pub fn riot() -> Self {
        Self::new()
            .rule(Rule::new("X-App-Rate-Limit", Meaning::LimitPerWindow).named("app"))
            .rule(Rule::new("X-App-Rate-Limit-Count", Meaning::UsedPerWindow).named("app"))
            .rule(Rule::new("X-Method-Rate-Limit", Meaning::LimitPerWindow).named("method"))
            .rule(Rule::new("X-Method-Rate-Limit-Count", Meaning::UsedPerWindow).named("method"))
    }

    /// Salesforce: used/limit under several names in one field.
    pub fn salesforce() -> Self {
        Self::new().rule(Rule::new("Sforce-Limit-Info", Meaning::NamedUsedOfLimit))
    }

    /// Sentry: waits for each category of event, announced on successes too. They say more than `Retry-After`, which is one
    /// number for all of them.
    pub fn sentry() -> Self {
        Self::new().rule(Rule::new("X-Sentry-Rate-Limits", Meaning::Holds))
    }

    /// Shopify's REST admin API: used/limit.
    pub fn shopify() -> Self {
        Self::new().rule(Rule::new(
            "X-Shopify-Shop-Api-Call-Limit",
            Meaning::UsedOfLimit,
        ))
    }

    /// SkuVault: the reset is milliseconds from now.
    pub fn skuvault() -> Self {
        millis_reset("X-RateLimit-Reset")
    }

    /// Strava: each field holds the quarter hour and the day.
    pub fn strava() -> Self {
        let windows: &'static [Duration] = &[QUARTER_HOUR, DAY];
        Self::new()
            .rule(Rule::new("X-RateLimit-Limit", Meaning::Limit).windows(windows))
            .rule(Rule::new("X-RateLimit-Usage", Meaning::Used).windows(windows))
            .rule(Rule::new("X-ReadRateLimit-Limit", Meaning::Limit).windows(windows))
            .rule(Rule::new("X-ReadRateLimit-Usage", Meaning::Used).windows(windows))
    }
}
