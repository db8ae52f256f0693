//! Telling the forms of one value apart.
//!
//! A reset under one field name may be seconds from now, an epoch in seconds, milli-, micro- or nanoseconds, a Go
//! duration, ISO 8601, or an HTTP-date. The form is found from the text alone; what size cannot tell (milliseconds from
//! now look like seconds) is left to a [`Dialect`](super::Dialect).

use std::cell::OnceCell;
use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::DATE;

use super::date::{MAX_DATE, Moment, http_date, iso_8601};
use super::duration::go_duration;
use super::number::Decimal;
use super::words::Role;
use super::{Fault, MAX_WINDOW};

/// How a time is written in a field, where a [`Dialect`](super::Dialect) knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum TimeForm {
    /// Found from the value: a number below 1e9 is seconds from now, a larger one an epoch in the unit its size suggests;
    /// dates and durations speak for themselves.
    #[default]
    Auto,
    /// A number is seconds from now, however large.
    Seconds,
    /// A number is milliseconds from now, however large.
    Millis,
}

/// Values longer than this are not looked at; the longest honest one, a structured field with a handful of policies, has
/// a few hundred bytes.
pub(super) const MAX_VALUE: usize = 1024;

/// The instant from which absolute times are measured, found when the first of them is met.
pub(super) struct Clock<'a> {
    /// Read only if a value needs it: most responses have none.
    now: &'a dyn Fn() -> SystemTime,
    headers: &'a HeaderMap,
    zero: OnceCell<Moment>,
}

/// The smallest number taken for an epoch; it is 2001 as seconds, and 31 years as a delay.
const EPOCH_SECONDS: u64 = 1_000_000_000;

impl<'a> Clock<'a> {
    pub(super) fn new(headers: &'a HeaderMap, now: &'a dyn Fn() -> SystemTime) -> Self {
        Self {
            now,
            headers,
            zero: OnceCell::new(),
        }
    }

    /// Reads a budget's reset as a delay.
    pub(super) fn reset(&self, text: &[u8], form: TimeForm) -> Result<Duration, Fault> {
        believable(match self.when(text, form)? {
            When::Delta(delta) => delta,
            When::At(at) | When::Epoch { at, .. } => self.zero().until(at),
        })
    }

    /// Reads an explicit hold as a delay. A number that is no believable epoch is taken at its word, which is over-long.
    pub(super) fn hold(&self, text: &[u8], form: TimeForm) -> Result<Duration, Fault> {
        Ok(match self.when(text, form)? {
            When::Delta(delta) => delta,
            When::At(at) => self.zero().until(at),
            When::Epoch { at, taken } => {
                let wait = self.zero().until(at);
                if wait > MAX_WINDOW || at.until(self.zero()) > MAX_WINDOW {
                    taken
                } else {
                    wait
                }
            }
        })
    }

    /// The response's `Date`, which is the clock its absolute values were made with, else the time of receipt
    /// (RFC 9110 section 6.6.1).
    fn zero(&self) -> Moment {
        *self.zero.get_or_init(|| {
            let mut dates = self.headers.get_all(DATE).iter();
            let date = dates.find_map(|date| http_date(trim(date.as_bytes()), self.now));
            date.unwrap_or_else(|| (self.now)().into())
        })
    }

    fn when(&self, text: &[u8], form: TimeForm) -> Result<When, Fault> {
        let text = trim(text);
        match text {
            [] => Err(Fault::Empty),
            _ if text.len() > MAX_VALUE => Err(Fault::TooLong),
            _ if text.len() > MAX_DATE => match Decimal::parse(text) {
                Err(Fault::NotACount) => Err(Fault::NotATime),
                number => number.map(|number| numeric(number, form)),
            },
            [b'-', rest @ ..] if Decimal::parse(rest).is_ok() || go_duration(rest).is_some() => {
                Err(Fault::Negative)
            }
            [b'0'..=b'9', ..] => match Decimal::parse(text) {
                Ok(number) => Ok(numeric(number, form)),
                Err(_) => go_duration(text)
                    .map(When::Delta)
                    .or_else(|| self.calendar(text))
                    .ok_or(Fault::NotATime),
            },
            _ => self.calendar(text).ok_or(Fault::NotATime),
        }
    }

    fn calendar(&self, text: &[u8]) -> Option<When> {
        iso_8601(text)
            .or_else(|| http_date(text, self.now))
            .map(When::At)
    }
}

/// A reset or the length of a window, if there can be such a one.
pub(super) fn believable(time: Duration) -> Result<Duration, Fault> {
    if time > MAX_WINDOW {
        Err(Fault::Implausible)
    } else {
        Ok(time)
    }
}

/// Reads one count: whole, or with a fraction that is cut. `Ok(None)` is the sentinel -1, "unknown".
fn count(text: &[u8]) -> Result<Option<Decimal>, Fault> {
    match trim(text) {
        b"-1" => Ok(None),
        text if text.len() > MAX_VALUE => Err(Fault::TooLong),
        text => Decimal::parse(text).map(Some),
    }
}

/// Reads one count for its role.
pub(super) fn read_count(text: &[u8], role: Role) -> Result<Option<u64>, Fault> {
    match count(text) {
        Ok(Some(number)) if role == Role::Limit && number.whole == 0 && number.billionths > 0 => {
            // A limit below one is a rate under another name; cut to zero it would mean "never".
            Err(Fault::NotACount)
        }
        Ok(number) => Ok(number.map(|number| number.whole)),
        // A counter that was overdrawn.
        Err(Fault::Negative) if role == Role::Remaining => Ok(Some(0)),
        Err(fault) => Err(fault),
    }
}

/// Blanks round a value and one pair of double quotes.
pub(super) fn trim(text: &[u8]) -> &[u8] {
    match text.trim_ascii() {
        [b'"', inner @ .., b'"'] => inner.trim_ascii(),
        text => text,
    }
}

/// The members of a value that two lines were joined into, without splitting a date at the comma after its weekday.
pub(super) fn joined(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let mut commas = text
            .iter()
            .enumerate()
            .filter(|&(_, &byte)| byte == b',')
            .map(|(at, _)| at);
        let first = commas.next();
        let weekday = |at| {
            text.get(..at)
                .is_some_and(|word| word.trim_ascii().iter().all(u8::is_ascii_alphabetic))
        };
        let end = match first {
            Some(at) if at > 0 && weekday(at) => commas.next(),
            other => other,
        };
        let (item, tail) = match end {
            Some(at) => (text.get(..at)?, text.get(at + 1..)),
            None => (text, None),
        };
        rest = tail;
        Some(item)
    })
}

/// The times in a value that lines were joined into, at most so many. `None` if it is not that: what stands beside something
/// that is no time is a part of that, as in `January 5, 2099`.
pub(super) fn joined_times<'a>(
    text: &'a [u8],
    most: usize,
    read: impl Fn(&'a [u8]) -> Result<Duration, Fault> + Copy + 'a,
) -> Option<impl Iterator<Item = Result<Duration, Fault>>> {
    let times = move || joined(text).take(most).map(read);
    let is_joined = !has_thousands(text) && !times().any(|time| time == Err(Fault::NotATime));
    is_joined.then(times)
}

/// `1,000` is one number in the grammar of people and two in that of joined lines; a joining proxy writes a blank.
fn has_thousands(text: &[u8]) -> bool {
    let mut groups = text.split(|&byte| byte == b',');
    let number = |group: &[u8]| group.iter().all(u8::is_ascii_digit);
    groups
        .next()
        .is_some_and(|first| (1..=3).contains(&first.len()) && number(first))
        && groups.next().is_some_and(|group| {
            group.get(..3).is_some_and(number) && !group.get(3).is_some_and(u8::is_ascii_digit)
        })
}

/// A time as sent, before it is measured against the response's `Date`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// So long from now.
    Delta(Duration),
    /// An instant written as a calendar date.
    At(Moment),
    /// A number too large for a delay, so probably an epoch; `taken` is its value as seconds.
    Epoch { at: Moment, taken: Duration },
}

fn numeric(number: Decimal, form: TimeForm) -> When {
    let taken = number.duration(1);
    let per_second = match (form, number.whole) {
        (TimeForm::Millis, _) => return When::Delta(number.duration(1_000)),
        (TimeForm::Seconds, _) | (TimeForm::Auto, 0..EPOCH_SECONDS) => return When::Delta(taken),
        // Cut midway between the sizes that epochs of this century have in each unit.
        (_, ..100_000_000_000) => 1,
        (_, ..100_000_000_000_000) => 1_000,
        (_, ..100_000_000_000_000_000) => 1_000_000,
        _ => 1_000_000_000,
    };
    When::Epoch {
        at: Moment::since_epoch(number.duration(per_second)),
        taken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> SystemTime {
        // Mon, 01 Jul 2013 17:27:06 GMT
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_372_699_626)
    }

    fn reset(text: &str) -> Result<Duration, Fault> {
        Clock::new(&HeaderMap::new(), &now).reset(text.as_bytes(), TimeForm::Auto)
    }

    /// C19: one field name, several units.
    #[test]
    fn size_tells_the_unit() {
        let expected = Ok(Duration::from_secs(1_247));
        for text in [
            "1247",
            "1372700873",
            "1372700873000",
            "1372700873000000",
            "1372700873000000000",
        ] {
            assert_eq!(reset(text), expected, "{text}");
        }
        assert_eq!(reset("1372699625"), Ok(Duration::ZERO), "a second ago");
        assert_eq!(reset("0"), Ok(Duration::ZERO), "no delay, not 1970");
    }

    /// In whatever form and unit: `150933900` is what the documentation of a public API shows.
    #[test]
    fn a_time_years_ahead_is_no_reset_but_a_long_hold() {
        let headers = HeaderMap::new();
        let clock = Clock::new(&headers, &now);
        for form in [TimeForm::Auto, TimeForm::Seconds, TimeForm::Millis] {
            for text in [
                "99999999999999999999",
                "9601h",
                "401d",
                "2014-08-06T17:27:06Z",
                "Fri, 31 Dec 9999 23:59:59 GMT",
            ] {
                let reset = clock.reset(text.as_bytes(), form);
                assert_eq!(reset, Err(Fault::Implausible), "{text}");
                let hold = clock.hold(text.as_bytes(), form).unwrap();
                assert!(hold > MAX_WINDOW, "{text}");
            }
        }
        for text in ["34560001", "150933900", "999999999", "2538078577"] {
            assert_eq!(reset(text), Err(Fault::Implausible), "{text}");
            let hold = clock.hold(text.as_bytes(), TimeForm::Auto).unwrap();
            assert!(hold > MAX_WINDOW, "{text}");
        }
        for text in ["34560000", "400d", "2014-08-05T17:27:06Z"] {
            assert_eq!(reset(text), Ok(MAX_WINDOW), "{text}");
        }
    }

    #[test]
    fn a_number_from_years_ago_is_a_past_reset_but_a_long_hold() {
        let headers = HeaderMap::new();
        let clock = Clock::new(&headers, &now);
        let (text, secs) = (b"1000000000", Duration::from_secs(1_000_000_000));
        assert_eq!(clock.reset(text, TimeForm::Auto), Ok(Duration::ZERO));
        assert_eq!(clock.hold(text, TimeForm::Auto), Ok(secs));
        assert_eq!(
            clock.hold(b"1372699000", TimeForm::Auto),
            Ok(Duration::ZERO),
            "minutes ago"
        );
    }

    #[test]
    fn a_known_form_is_not_guessed() {
        let headers = HeaderMap::new();
        let clock = Clock::new(&headers, &now);
        assert_eq!(
            clock.reset(b"600000", TimeForm::Millis),
            Ok(Duration::from_secs(600))
        );
        assert_eq!(
            clock.hold(b"1372699696", TimeForm::Seconds),
            Ok(Duration::from_secs(1_372_699_696))
        );
        assert_eq!(
            clock.reset(b"2013-07-01T17:27:36Z", TimeForm::Millis),
            Ok(Duration::from_secs(30))
        );
    }

    #[test]
    fn absolute_times_are_measured_against_the_first_readable_date() {
        let mut headers = HeaderMap::new();
        headers.append(DATE, "yesterday".parse().unwrap());
        headers.append(DATE, "Mon, 01 Jul 2013 17:28:06 GMT".parse().unwrap());
        let clock = Clock::new(&headers, &now);
        assert_eq!(
            clock.reset(b"1372699696", TimeForm::Auto),
            Ok(Duration::from_secs(10))
        );
    }

    #[test]
    fn faults() {
        assert_eq!(reset(" "), Err(Fault::Empty));
        assert_eq!(reset("\"\""), Err(Fault::Empty));
        assert_eq!(reset("-5"), Err(Fault::Negative));
        assert_eq!(reset("-1s"), Err(Fault::Negative));
        assert_eq!(reset("24.12.2030 00:00:00"), Err(Fault::NotATime));
        assert_eq!(reset("soon"), Err(Fault::NotATime));
        assert_eq!(reset(&"9".repeat(MAX_VALUE + 1)), Err(Fault::TooLong));
    }

    #[test]
    fn joined_values() {
        let items = |text: &'static str| {
            joined(text.as_bytes())
                .map(|item| std::str::from_utf8(item).unwrap())
                .collect()
        };
        let parts: Vec<_> = items("Mon, 03 Jun 2019 11:00:30 GMT, Mon, 03 Jun 2019 11:00:30 GMT");
        assert_eq!(
            parts,
            [
                "Mon, 03 Jun 2019 11:00:30 GMT",
                " Mon, 03 Jun 2019 11:00:30 GMT"
            ]
        );
        let parts: Vec<_> = items("5, 10");
        assert_eq!(parts, ["5", " 10"]);
        let parts: Vec<_> = items(",");
        assert_eq!(parts, ["", ""]);
    }

    #[test]
    fn counts() {
        let whole = |text: &str| count(text.as_bytes()).map(|count| count.map(|count| count.whole));
        assert_eq!(whole("988.0"), Ok(Some(988)));
        assert_eq!(whole("\"5000\""), Ok(Some(5000)));
        assert_eq!(whole("-1"), Ok(None));
        assert_eq!(whole("-5"), Err(Fault::Negative));
        assert_eq!(whole("unlimited"), Err(Fault::NotACount));
        assert_eq!(whole("99999999999999999999999"), Ok(Some(u64::MAX)));
    }
}
