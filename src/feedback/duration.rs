//! Lengths of time written with units or words.

use std::time::Duration;

use super::number::Decimal;
use super::value::{TimeForm, believable};
use super::{Fault, MAX_WINDOW};

/// Reads a duration as Go prints it: `6m0s`, `20m52.666s`, `565.087221ms`, `7h12m0s`. Also takes `d` for days, which Go
/// does not print but other servers do. Each unit comes once, larger ones first. Rounded up.
pub(super) fn go_duration(text: &[u8]) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut last = Unit::Largest;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest
            .iter()
            .position(|byte| !matches!(byte, b'0'..=b'9' | b'.'))?;
        let (number, tail) = rest.split_at_checked(end)?;
        let number = Decimal::parse(number).ok()?;
        // Two-letter units first: `ms` is no `m` followed by `s`.
        let (unit, part, tail) = match tail {
            [b'm', b's', tail @ ..] => (Unit::Milli, number.duration(1_000), tail),
            // The micro sign and the Greek letter mu, both of which Go accepts.
            [b'u', b's', tail @ ..]
            | [0xC2, 0xB5, b's', tail @ ..]
            | [0xCE, 0xBC, b's', tail @ ..] => (Unit::Micro, number.duration(1_000_000), tail),
            [b'n', b's', tail @ ..] => (Unit::Nano, number.duration(1_000_000_000), tail),
            [b's', tail @ ..] => (Unit::Second, number.duration(1), tail),
            [b'm', tail @ ..] => (Unit::Minute, times(number, 60), tail),
            [b'h', tail @ ..] => (Unit::Hour, times(number, 3_600), tail),
            [b'd', tail @ ..] => (Unit::Day, times(number, 86_400), tail),
            _ => return None,
        };
        if unit >= last {
            return None;
        }
        last = unit;
        total = total.saturating_add(part);
        rest = tail;
    }
    (!text.is_empty()).then_some(total)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Unit {
    Nano,
    Micro,
    Milli,
    Second,
    Minute,
    Hour,
    Day,
    /// Before the first.
    Largest,
}

/// What a word says about the length of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WindowWord {
    /// So many seconds.
    Seconds(u64),
    /// A calendar month or year: a window, but without a fixed length.
    Calendar,
}

/// Reads one word of a field name or value: `minute`, `daily`, `perhour`, `24hour`, `10s`, `5h`.
///
/// A plural needs its number (`10-seconds`, given as `count`): without one it is more likely the thing counted, as in
/// `audio-seconds`. Before `per` there may be what is counted: `requestsperminute`.
pub(super) fn window_word(word: &str, count: impl FnOnce() -> Option<u64>) -> Option<WindowWord> {
    let glued = per_window(word);
    let word = glued.map_or(word, |(_, window)| window);
    let (number, unit) = match word.bytes().position(|byte| !byte.is_ascii_digit())? {
        0 => (None, word),
        digits => (Some(word.get(..digits)?.parse().ok()?), word.get(digits..)?),
    };
    let (seconds, plural) = match unit {
        // The truncated word is what a well-known shop platform sends.
        "second" | "sec" | "secondly" | "secon" => (1_u64, false),
        "minute" | "min" | "minutely" => (60, false),
        "hour" | "hourly" | "hr" => (3_600, false),
        "day" | "daily" | "today" => (86_400, false),
        "week" | "weekly" => (604_800, false),
        "month" | "monthly" | "year" | "yearly" => return Some(WindowWord::Calendar),
        "s" | "seconds" | "secs" => (1, true),
        "m" | "minutes" | "mins" => (60, true),
        "h" | "hours" | "hrs" => (3_600, true),
        "d" | "days" => (86_400, true),
        _ => return None,
    };
    // What stands before `per` is how many, not how long.
    let count = || count().filter(|_| glued.is_none());
    let count = match number.or_else(count) {
        Some(count) => count,
        None if plural => return None,
        None => 1,
    };
    let seconds = seconds.checked_mul(count)?;
    // A window that nobody has is no window: the word means something else.
    let is_window = seconds > 0 && seconds <= MAX_WINDOW.as_secs();
    is_window.then_some(WindowWord::Seconds(seconds))
}

/// Takes `perhour`, `requestsperminute` or `limitperday` apart: what stands before `per`, and the window after it.
pub(super) fn per_window(word: &str) -> Option<(&str, &str)> {
    // Asked of every word, most of which are short or have no such part.
    let at = match word.starts_with("per") {
        true => 0,
        false if word.len() < "reqperday".len() => return None,
        false => word
            .as_bytes()
            .windows(3)
            .rposition(|part| part == b"per")?,
    };
    let (counted, window) = (word.get(..at)?, word.get(at + 3..)?);
    // What is counted so stands in the plural; `superhour` is no window.
    let is_counted = counted.ends_with('s')
        || matches!(
            counted,
            "" | "limit" | "remaining" | "used" | "reset" | "request" | "req" | "call" | "token"
        );
    is_counted.then_some((counted, window))
}

/// `60`, `1s`, `minute`, `15 minutes`; `Ok(None)` is a window without a fixed length.
pub(super) fn window_length(text: &[u8], form: TimeForm) -> Result<Option<Duration>, Fault> {
    if let Ok(number) = Decimal::parse(text) {
        let per_second = if form == TimeForm::Millis { 1_000 } else { 1 };
        return believable(number.duration(per_second)).map(Some);
    }
    if let Some(window) = go_duration(text) {
        return believable(window).map(Some);
    }
    let words = std::str::from_utf8(text).map_err(|_| Fault::NotATime)?;
    let words = words.to_ascii_lowercase();
    let (count, word) = words.split_once(' ').unwrap_or(("1", &words));
    let count = number_of(count).ok_or(Fault::NotATime)?;
    match window_word(word, || Some(count)).ok_or(Fault::NotATime)? {
        WindowWord::Seconds(seconds) => Ok(Some(Duration::from_secs(seconds))),
        WindowWord::Calendar => Ok(None),
    }
}

/// Digits and nothing else: `parse` would take a plus, too.
pub(super) fn number_of(text: &str) -> Option<u64> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())?
}

fn times(number: Decimal, seconds: u32) -> Duration {
    number.duration(1).saturating_mul(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C20: no leading digits taken for the whole.
    #[test]
    fn go_durations() {
        let millis = |text: &str| go_duration(text.as_bytes()).map(|wait| wait.as_millis());
        assert_eq!(millis("6m0s"), Some(360_000));
        assert_eq!(millis("1m30s"), Some(90_000));
        assert_eq!(millis("500ms"), Some(500));
        assert_eq!(millis("17ms"), Some(17));
        assert_eq!(millis("1.5s"), Some(1_500));
        assert_eq!(millis("2m59.56s"), Some(179_560));
        assert_eq!(millis("23h47m36.648s"), Some(85_656_648));
        assert_eq!(
            go_duration("250µs".as_bytes()),
            Some(Duration::from_micros(250))
        );
        assert_eq!(
            go_duration(b"17.399999999s"),
            Some(Duration::new(17, 399_999_999))
        );
        assert_eq!(
            go_duration(b"99999999999999999999999h"),
            Some(Duration::MAX)
        );
    }

    #[test]
    fn not_durations() {
        for text in [
            "",
            "5",
            "m",
            "5 s",
            "3 seconds",
            "-1s",
            "5k",
            "1m5",
            "1,5s",
            "5S",
            "5s6m",
            "1m1m",
            "1.5.2s",
            "+5s",
        ] {
            assert_eq!(go_duration(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn window_words() {
        let seconds = |word, count| match window_word(word, || count) {
            Some(WindowWord::Seconds(seconds)) => Some(seconds),
            _ => None,
        };
        assert_eq!(seconds("perhour", None), Some(3_600));
        assert_eq!(seconds("24hour", None), Some(86_400));
        assert_eq!(seconds("1m", None), Some(60));
        assert_eq!(seconds("second", Some(10)), Some(10));
        assert_eq!(seconds("seconds", None), None);
        assert_eq!(seconds("5h", None), Some(18_000));
        assert_eq!(window_word("month", || None), Some(WindowWord::Calendar));
        assert_eq!(seconds("requestsperminute", None), Some(60));
        assert_eq!(seconds("callsper10seconds", None), Some(10));
        assert_eq!(seconds("perminute", Some(10)), Some(60));
        assert_eq!(seconds("34560000s", None), Some(34_560_000));
        assert_eq!(seconds("34560001s", None), None);
        assert_eq!(window_word("requests", || None), None);
        assert_eq!(window_word("99999999999999999999h", || None), None);
        assert_eq!(window_word("0minute", || None), None);
    }
}
