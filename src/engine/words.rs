//! Quotas and lengths of time as people write them.

use std::{fmt, iter::Peekable, str::FromStr, time::Duration};

use super::quota::{ConfigError, Quota};

/// A unit of time.
struct Unit {
    nanos: u128,
    symbol: &'static str,
    names: &'static [&'static str],
    /// For one of it, where that is an everyday word.
    one: Option<(&'static str, &'static str)>,
}

const fn unit(
    nanos: u128,
    symbol: &'static str,
    names: &'static [&'static str],
    one: Option<(&'static str, &'static str)>,
) -> Unit {
    Unit {
        nanos,
        symbol,
        names,
        one,
    }
}

/// From long to short.
const UNITS: [Unit; 7] = [
    unit(
        86_400_000_000_000,
        "d",
        &["day", "days"],
        Some(("a", "day")),
    ),
    unit(
        3_600_000_000_000,
        "h",
        &["hr", "hour", "hours"],
        Some(("an", "hour")),
    ),
    unit(
        60_000_000_000,
        "min",
        &["m", "mins", "minute", "minutes"],
        Some(("a", "minute")),
    ),
    unit(
        1_000_000_000,
        "s",
        &["sec", "secs", "second", "seconds"],
        Some(("a", "second")),
    ),
    unit(1_000_000, "ms", &["millisecond", "milliseconds"], None),
    unit(1_000, "us", &["µs", "microsecond", "microseconds"], None),
    unit(1, "ns", &["nanosecond", "nanoseconds"], None),
];

/// As [`FromStr`] reads it: `60 a second`, `10,000 a day`, `5 in 3 s, burst 2`, `at most 50 in any 10 s`.
impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, unit) = in_units(self.period());
        let amount = grouped(self.amount());
        match (self.is_strict(), unit.one.filter(|_| count == 1)) {
            (true, Some((_, name))) => return write!(f, "at most {amount} in any {name}"),
            (true, None) => return write!(f, "at most {amount} in any {count} {}", unit.symbol),
            (false, Some((article, name))) => write!(f, "{amount} {article} {name}")?,
            (false, None) => write!(f, "{amount} in {count} {}", unit.symbol)?,
        }
        if self.burst_size() != 1 {
            write!(f, ", burst {}", grouped(self.burst_size()))?;
        }
        if self.initial_size() != self.burst_size() {
            write!(f, ", initial {}", grouped(self.initial_size()))?;
        }
        Ok(())
    }
}

/// Reads `10/s`, `5000/h`, `5/3s`, `10 per second`, `10/s burst 20`, `10/s, burst 20, initial 0`, `50 in any 10 s` (as
/// [`Quota::at_most`]), and whatever [`Display`](fmt::Display) writes.
///
/// Units are `ns`, `us`, `ms`, `s`, `min`, `h` and `d`, or their names. Digits may be grouped with `,` or `_`.
///
/// # Errors
///
/// If the text is not of this form, or the quota is not [valid](Quota::validate).
///
/// ```
/// use tower_throttle::Quota;
///
/// let quota: Quota = "10/s, burst 20".parse()?;
/// assert_eq!(quota, Quota::per_second(10).burst(20));
/// assert_eq!(quota.to_string(), "10 a second, burst 20");
/// assert!("0/s".parse::<Quota>().is_err());
/// # Ok::<(), tower_throttle::ConfigError>(())
/// ```
impl FromStr for Quota {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let quota = read_quota(text).ok_or(ConfigError::new(
            "quota",
            "must read like \"10/s\", \"5000/h\", \"5 in 3 s\", \"10/s, burst 20\" or \"50 in any 10 s\"",
        ))?;
        quota.validate()?;
        Ok(quota)
    }
}

fn read_quota(text: &str) -> Option<Quota> {
    let mut tokens = Tokens { rest: text }.peekable();
    let at_most = takes(&mut tokens, "at");
    if at_most && !takes(&mut tokens, "most") {
        return None;
    }
    let amount = number(&mut tokens)?;
    match tokens.next()? {
        "/" | "a" | "an" | "per" | "in" | "each" | "every" => {}
        _ => return None,
    }
    let strict = takes(&mut tokens, "any");
    let period = length(&mut tokens)?;
    let mut quota = match (strict, at_most) {
        (true, _) => Quota::at_most(amount, period),
        (false, false) => Quota::new(amount, period),
        (false, true) => return None,
    };
    while let Some(option) = tokens.next() {
        let value = number(&mut tokens)?;
        quota = match option {
            "burst" if !strict => quota.burst(value),
            "initial" if !strict => quota.initial(value),
            _ => return None,
        };
    }
    Some(quota)
}

#[cfg(feature = "serde")]
fn read_length(text: &str) -> Option<Duration> {
    let mut tokens = Tokens { rest: text }.peekable();
    let length = length(&mut tokens)?;
    tokens.next().is_none().then_some(length)
}

/// So many of a unit, or one.
fn length<'a>(tokens: &mut Peekable<Tokens<'a>>) -> Option<Duration> {
    let counted =
        (tokens.peek()).is_some_and(|token| token.starts_with(|c: char| c.is_ascii_digit()));
    let count = if counted { digits(tokens.next()?)? } else { 1 };
    let word = tokens.next()?;
    let unit = (UNITS.iter()).find(|unit| unit.symbol == word || unit.names.contains(&word))?;
    let nanos = count.checked_mul(unit.nanos)?;
    let seconds = u64::try_from(nanos / 1_000_000_000).ok()?;
    Some(Duration::new(seconds, (nanos % 1_000_000_000) as u32))
}

fn number<'a>(tokens: &mut Peekable<Tokens<'a>>) -> Option<u32> {
    u32::try_from(digits(tokens.next()?)?).ok()
}

fn digits(token: &str) -> Option<u128> {
    token.replace([',', '_'], "").parse().ok()
}

fn takes<'a>(tokens: &mut Peekable<Tokens<'a>>, word: &str) -> bool {
    tokens.next_if(|token| *token == word).is_some()
}

/// Numbers, words and other signs. Commas between them mean nothing.
struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = (self.rest).trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        let first = text.chars().next()?;
        let length = if first.is_ascii_digit() {
            let number = |c: char| c.is_ascii_digit() || c == ',' || c == '_';
            let run = text.find(|c| !number(c)).unwrap_or(text.len());
            text[..run].trim_end_matches([',', '_']).len()
        } else if first.is_alphabetic() {
            text.find(|c: char| !c.is_alphabetic())
                .unwrap_or(text.len())
        } else {
            first.len_utf8()
        };
        let (token, rest) = text.split_at(length);
        self.rest = rest;
        Some(token)
    }
}

/// The largest unit of which it is a whole number.
fn in_units(length: Duration) -> (u128, &'static Unit) {
    let nanos = length.as_nanos();
    let unit = (UNITS.iter())
        .find(|unit| nanos > 0 && nanos.is_multiple_of(unit.nanos))
        .unwrap_or(&UNITS[3]);
    (nanos / unit.nanos, unit)
}

/// With a comma between thousands.
fn grouped(number: u32) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Quotas and lengths of time in configuration files and records.
#[cfg(feature = "serde")]
mod serde_forms {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    use super::{Duration, Quota, in_units, read_length};

    /// Text as [`Display`](std::fmt::Display) writes it.
    impl Serialize for Quota {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(self)
        }
    }

    /// Text as [`FromStr`](std::str::FromStr) reads it, or a map of `amount`, `period` (such as `"10 s"`) and, if wanted, `burst`,
    /// `initial` and `strict` (as [`Quota::at_most`]). It is validated.
    impl<'de> Deserialize<'de> for Quota {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let quota = match Form::deserialize(deserializer)? {
                Form::Text(text) => return text.parse().map_err(D::Error::custom),
                Form::Fields(fields) => fields.quota(),
            };
            quota.validate().map_err(D::Error::custom)?;
            Ok(quota)
        }
    }

    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "a quota reads like \"10/s, burst 20\" or {amount, period, burst}"
    )]
    enum Form {
        Text(String),
        Fields(Fields),
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Fields {
        amount: u32,
        period: Length,
        burst: Option<u32>,
        initial: Option<u32>,
        #[serde(default)]
        strict: bool,
    }

    impl Fields {
        fn quota(self) -> Quota {
            if self.strict {
                return Quota::at_most(self.amount, self.period.0);
            }
            let quota = Quota::new(self.amount, self.period.0).burst(self.burst.unwrap_or(1));
            match self.initial {
                Some(initial) => quota.initial(initial),
                None => quota,
            }
        }
    }

    /// A length of time as people write it.
    pub(super) struct Length(pub(super) Duration);

    impl Serialize for Length {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let (count, unit) = in_units(self.0);
            serializer.collect_str(&format_args!("{count} {}", unit.symbol))
        }
    }

    impl<'de> Deserialize<'de> for Length {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            #[derive(Deserialize)]
            #[serde(untagged, expecting = "a length of time reads like \"90 s\"")]
            enum Form {
                Text(String),
                Exact(Duration),
            }
            match Form::deserialize(deserializer)? {
                Form::Exact(length) => Ok(Self(length)),
                Form::Text(text) => read_length(&text)
                    .map(Self)
                    .ok_or_else(|| D::Error::custom("a length of time reads like \"90 s\"")),
            }
        }
    }
}

/// For `#[serde(with)]`: a length of time as people write it.
#[cfg(feature = "serde")]
pub(super) mod length_form {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::serde_forms::Length;

    pub(in crate::engine) fn serialize<S: Serializer>(
        length: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        Length(*length).serialize(serializer)
    }

    pub(in crate::engine) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        Length::deserialize(deserializer).map(|length| length.0)
    }
}

/// The same where there may be none.
#[cfg(feature = "serde")]
pub(super) mod optional_length_form {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::serde_forms::Length;

    pub(in crate::engine) fn serialize<S: Serializer>(
        length: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        length.map(Length).serialize(serializer)
    }

    pub(in crate::engine) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        let length: Option<Length> = Option::deserialize(deserializer)?;
        Ok(length.map(|length| length.0))
    }
}
