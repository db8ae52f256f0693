//! Calendar dates as servers write them.
//!
//! RFC 9110 section 5.6.7 obliges a recipient to read IMF-fixdate and the two obsolete forms. Real servers also send a
//! wrong weekday, `UTC` for `GMT`, a numeric offset, a one-digit day, the text of a JavaScript `Date`, and ISO 8601. All
//! of them say plainly which instant is meant. Any other form is refused, and so is a date and time without a zone: only
//! asctime has none, and is UTC by the standard.

use std::ops::RangeInclusive;
use std::time::{Duration, SystemTime};

use super::number::billionths;

/// An instant on the UTC time line, in nanoseconds since 1970; can lie before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment(i128);

/// Longer texts are no dates; the longest honest one ends with the name of a time zone.
pub(super) const MAX_DATE: usize = 96;

const BILLION: i128 = 1_000_000_000;

impl Moment {
    /// `nanos` after the start of 1970.
    pub(super) fn since_epoch(since: Duration) -> Self {
        Self(nanos(since))
    }

    /// From this instant until `other`; zero if that is past.
    pub(super) fn until(self, other: Self) -> Duration {
        let nanos = other.0.saturating_sub(self.0).max(0);
        let secs = u64::try_from(nanos / BILLION).unwrap_or(u64::MAX);
        // The remainder of a division by a billion always fits.
        Duration::new(secs, u32::try_from(nanos % BILLION).unwrap_or_default())
    }

    fn from_civil(date: Civil, offset_minutes: i64) -> Option<Self> {
        let days = date.days()?;
        let minutes = date.hour * 60 + date.minute - offset_minutes;
        // A leap second is the last of a day (RFC 9110 section 5.6.7).
        if date.second == 60 && minutes.rem_euclid(24 * 60) != 24 * 60 - 1 {
            return None;
        }
        let secs = days * 86_400 + minutes * 60 + date.second;
        Some(Self(
            i128::from(secs) * BILLION + i128::from(date.billionths),
        ))
    }
}

impl From<SystemTime> for Moment {
    fn from(time: SystemTime) -> Self {
        match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(after) => Self(nanos(after)),
            Err(before) => Self(-nanos(before.duration())),
        }
    }
}

/// Reads an HTTP-date in any of its forms, RFC 5322's, or the text of a JavaScript `Date`.
///
/// `now` serves only to place two-digit years (RFC 9110: more than 50 years ahead means the century before).
pub(super) fn http_date(text: &[u8], now: &dyn Fn() -> SystemTime) -> Option<Moment> {
    if let Some(moment) = imf_fixdate(text) {
        return Some(moment);
    }
    if text.len() > MAX_DATE {
        return None;
    }
    let (weekday, text) = weekday(text);
    let mut words: [&[u8]; 5] = [b""; 5];
    let mut count = 0;
    for word in without_comment(text)?.split(|&byte| matches!(byte, b' ' | b'\t')) {
        if !word.is_empty() {
            *words.get_mut(count)? = word;
            count += 1;
        }
    }
    let (day, month, year, clock, offset) = match (weekday, words.get(..count)?) {
        // RFC 5322 section 3.3, of which IMF-fixdate is a part: the weekday may be left out.
        (Weekday::None | Weekday::Comma, &[day, month, year, clock, offset]) if day.len() <= 2 => {
            (day, month, full_year(year)?, clock, zone(offset)?)
        }
        // RFC 850, and the Netscape form of it with the whole year.
        (Weekday::Comma, &[date, clock, offset]) => {
            let mut parts = date.split(|&byte| byte == b'-');
            let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
            if parts.next().is_some() || day.len() != 2 {
                return None;
            }
            let year = match year {
                &[_, _] => short_year(year, now)?,
                _ => full_year(year)?,
            };
            (day, month, year, clock, zone(offset)?)
        }
        // asctime.
        (Weekday::Blank, &[month, day, clock, year]) => (day, month, full_year(year)?, clock, 0),
        // The same as `date` of POSIX and Java's `Date` print it.
        (Weekday::Blank, &[month, day, clock, offset, year]) if clock.contains(&b':') => {
            (day, month, full_year(year)?, clock, zone(offset)?)
        }
        // JavaScript.
        (Weekday::Blank, &[month, day, year, clock, offset]) => {
            (day, month, full_year(year)?, clock, zone(offset)?)
        }
        _ => return None,
    };
    let mut date = Civil {
        day: digits(day, 1..=2)?,
        month: month_number(month)?,
        year,
        ..Civil::default()
    };
    // Seconds may be missing or have a fraction in ISO 8601 only.
    if clock.len() != 8 {
        return None;
    }
    date.clock(clock)?;
    Moment::from_civil(date, offset)
}

/// Reads an ISO 8601 or RFC 3339 date and time. Seconds may be missing and the fraction may have any length; the zone may
/// not be missing.
pub(super) fn iso_8601(text: &[u8]) -> Option<Moment> {
    let (date, rest) = text.split_at_checked(10)?;
    let [y @ .., b'-', m1, m2, b'-', d1, d2] = date else {
        return None;
    };
    let (separator, rest) = rest.split_first()?;
    if !matches!(separator, b'T' | b't' | b' ') {
        return None;
    }
    let end = rest
        .iter()
        .position(|byte| !matches!(byte, b'0'..=b'9' | b':' | b'.'))?;
    let (clock, zone_text) = rest.split_at_checked(end)?;
    let zone_text = zone_text.trim_ascii();
    let mut civil = Civil {
        year: full_year(y)?,
        month: digits(&[*m1, *m2], 2..=2)?,
        day: digits(&[*d1, *d2], 2..=2)?,
        ..Civil::default()
    };
    civil.clock(clock)?;
    Moment::from_civil(civil, zone(zone_text)?)
}

/// `Tue, 05 Mar 2024 10:15:00 GMT`, as nearly every server writes it. The strict parser is not asked about the other forms: it places
/// two-digit years by another rule, and it refuses a wrong weekday, which harms nobody.
fn imf_fixdate(text: &[u8]) -> Option<Moment> {
    let &[_, _, _, b',', .., b' ', b'G', b'M', b'T'] = text else {
        return None;
    };
    let text = std::str::from_utf8(text).ok()?;
    httpdate::parse_http_date(text).ok().map(Moment::from)
}

/// How a date begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weekday {
    None,
    /// Followed by a comma.
    Comma,
    Blank,
}

/// The weekday in front, short or in full, and what follows it. Whether it is the right one harms nobody.
fn weekday(text: &[u8]) -> (Weekday, &[u8]) {
    const NAMES: [&[u8]; 7] = [
        b"monday",
        b"tuesday",
        b"wednesday",
        b"thursday",
        b"friday",
        b"saturday",
        b"sunday",
    ];
    let end = text
        .iter()
        .position(|byte| !byte.is_ascii_alphabetic())
        .unwrap_or_default();
    let (word, rest) = text.split_at_checked(end).unwrap_or_default();
    let is = |name: &&[u8]| {
        word.eq_ignore_ascii_case(name)
            || name
                .get(..3)
                .is_some_and(|short| word.eq_ignore_ascii_case(short))
    };
    match rest {
        _ if !NAMES.iter().any(is) => (Weekday::None, text),
        [b',', rest @ ..] => (Weekday::Comma, rest),
        [b' ', rest @ ..] => (Weekday::Blank, rest),
        _ => (Weekday::None, text),
    }
}

/// JavaScript ends its dates with the name of the zone in brackets.
fn without_comment(text: &[u8]) -> Option<&[u8]> {
    match text.iter().position(|&byte| byte == b'(') {
        Some(start) if text.ends_with(b")") => text.get(..start),
        Some(_) => None,
        None => Some(text),
    }
}

/// The three-letter name of a month.
fn month_number(word: &[u8]) -> Option<i64> {
    let &[a, b, c] = word else { return None };
    Some(match &[a, b, c].map(|letter| letter.to_ascii_lowercase()) {
        b"jan" => 1,
        b"feb" => 2,
        b"mar" => 3,
        b"apr" => 4,
        b"may" => 5,
        b"jun" => 6,
        b"jul" => 7,
        b"aug" => 8,
        b"sep" => 9,
        b"oct" => 10,
        b"nov" => 11,
        b"dec" => 12,
        _ => return None,
    })
}

#[derive(Debug, Clone, Copy, Default)]
struct Civil {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    billionths: u32,
}

impl Civil {
    /// Days since 1970-01-01, or `None` if there is no such day or time of day.
    fn days(&self) -> Option<i64> {
        let leap = self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0);
        let length = match self.month {
            2 if leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => return None,
        };
        let in_range = (1..=length).contains(&self.day)
            && (0..24).contains(&self.hour)
            && (0..60).contains(&self.minute)
            // A leap second is written as 60.
            && (0..=60).contains(&self.second);
        if !in_range {
            return None;
        }
        // A year counted from March ends with the leap day, which makes the lengths of the months before it a straight
        // line: 153 days in five months.
        let (year, month) = if self.month > 2 {
            (self.year, self.month - 3)
        } else {
            (self.year - 1, self.month + 9)
        };
        let day_of_year = (153 * month + 2) / 5 + self.day - 1;
        let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        const MARCH_OF_YEAR_0: i64 = 719_468;
        Some(year * 365 + leap_days + day_of_year - MARCH_OF_YEAR_0)
    }

    /// `HH:MM`, `HH:MM:SS`, or `HH:MM:SS.fraction`.
    fn clock(&mut self, text: &[u8]) -> Option<()> {
        let mut parts = text.split(|&byte| byte == b':');
        self.hour = digits(parts.next()?, 2..=2)?;
        self.minute = digits(parts.next()?, 2..=2)?;
        let seconds = parts.next().unwrap_or(b"00");
        let (whole, fraction) = match seconds.iter().position(|&byte| byte == b'.') {
            Some(dot) => (seconds.get(..dot)?, seconds.get(dot + 1..)?),
            None => (seconds, b"0".as_slice()),
        };
        self.second = digits(whole, 2..=2)?;
        self.billionths = billionths(fraction)?;
        parts.next().is_none().then_some(())
    }
}

fn nanos(duration: Duration) -> i128 {
    i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX)
}

/// A number of so many digits.
fn digits(text: &[u8], length: RangeInclusive<usize>) -> Option<i64> {
    if !length.contains(&text.len()) || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(
        text.iter()
            .fold(0, |value, byte| value * 10 + i64::from(byte - b'0')),
    )
}

fn full_year(text: &[u8]) -> Option<i64> {
    digits(text, 4..=4)
}

/// The year of an RFC 850 date.
fn short_year(text: &[u8], now: &dyn Fn() -> SystemTime) -> Option<i64> {
    let short = digits(text, 2..=2)?;
    let Moment(nanos) = now().into();
    let this_year = 1970 + i64::try_from(nanos / BILLION / 31_556_952).ok()?;
    let year = this_year - this_year.rem_euclid(100) + short;
    Some(if year > this_year + 50 {
        year - 100
    } else {
        year
    })
}

/// The offset of a zone from UTC in minutes: `GMT`, `UTC`, `UT`, `Z`, `+01:00`, `-0700`, `+02`, `GMT+0100`.
fn zone(text: &[u8]) -> Option<i64> {
    let rest = match text {
        [b'Z' | b'z'] => return Some(0),
        [a, b, c, rest @ ..] if [a, b, c].map(u8::to_ascii_uppercase) == *b"GMT" => rest,
        [a, b, c, rest @ ..] if [a, b, c].map(u8::to_ascii_uppercase) == *b"UTC" => rest,
        [b'U' | b'u', b'T' | b't'] => return Some(0),
        [b'+' | b'-', ..] => text,
        _ => return None,
    };
    let (sign, clock) = match rest {
        [] => return Some(0),
        [b'+', clock @ ..] => (1, clock),
        [b'-', clock @ ..] => (-1, clock),
        _ => return None,
    };
    let (hours, minutes) = match clock {
        [_, _] => (clock, b"00".as_slice()),
        [_, _, b':', minutes @ ..] => (clock.get(..2)?, minutes),
        [_, _, minutes @ ..] => (clock.get(..2)?, minutes),
        _ => return None,
    };
    let (hours, minutes) = (digits(hours, 2..=2)?, digits(minutes, 2..=2)?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(secs)
    }

    fn http(text: &str) -> Option<Moment> {
        http_date(text.as_bytes(), &|| at(1_593_120_492))
    }

    fn iso(text: &str) -> Option<Moment> {
        iso_8601(text.as_bytes())
    }

    /// C17: the three forms of RFC 9110 name one instant.
    #[test]
    fn three_forms() {
        let expected = Some(Moment::from(at(1_593_120_612)));
        assert_eq!(http("Thu, 25 Jun 2020 21:30:12 GMT"), expected);
        assert_eq!(http("Thursday, 25-Jun-20 21:30:12 GMT"), expected);
        assert_eq!(http("Thu Jun 25 21:30:12 2020"), expected);
    }

    #[test]
    fn lenient_forms() {
        let expected = Some(Moment::from(at(1_593_120_612)));
        assert_eq!(
            http("Mon, 25 Jun 2020 21:30:12 GMT"),
            expected,
            "wrong weekday"
        );
        assert_eq!(http("Thu, 25 Jun 2020 21:30:12 UTC"), expected);
        assert_eq!(http("Thu, 25 Jun 2020 23:30:12 +0200"), expected);
        assert_eq!(http("25 Jun 2020 21:30:12 GMT"), expected);
        assert_eq!(
            http("Thu Jun 25 2020 22:30:12 GMT+0100 (Central European Standard Time)"),
            expected
        );
        assert_eq!(
            http("Mon, 3 Jun 2019 11:00:00 GMT"),
            http("Mon Jun  3 11:00:00 2019")
        );
    }

    #[test]
    fn no_such_date() {
        for text in [
            "Thu, 31 Feb 2020 00:00:00 GMT",
            "Thu, 00 Jan 2020 00:00:00 GMT",
            "Thu, 01 Jan 2020 24:00:00 GMT",
            "Thu, 01 Jan 2020 00:61:00 GMT",
            "Thu, 01 Jan 2020 00:00:00 EST",
            "Thu, 01 Jan 2020",
            "Thu; 01 Jan 2020 00:00:00 GMT",
            "Thu, Jan 2020 00:00:00 GMT",
            "never",
            "",
        ] {
            assert_eq!(http(text), None, "{text}");
        }
    }

    #[test]
    fn two_digit_years_turn_over_fifty_years_ahead() {
        assert!(http("Sunday, 06-Nov-94 08:49:37 GMT") < http("Thu Jun 25 21:30:12 2020"));
        assert_eq!(
            http("Wednesday, 06-Nov-69 08:49:37 GMT"),
            http("Wed, 06 Nov 2069 08:49:37 GMT")
        );
        assert_eq!(
            http("Friday, 06-Nov-71 08:49:37 GMT"),
            http("Sat, 06 Nov 1971 08:49:37 GMT")
        );
    }

    #[test]
    fn iso_forms() {
        let expected = iso("2026-01-01T00:00:30Z");
        assert_eq!(expected, Some(Moment::from(at(1_767_225_630))));
        assert_eq!(iso("2026-01-01T01:00:30+01:00"), expected);
        assert_eq!(iso("2026-01-01T01:00:30+0100"), expected);
        assert_eq!(iso("2026-01-01T00:00:30.0000000Z"), expected);
        assert_eq!(iso("2026-01-01 00:00:30 UTC"), expected);
        assert_eq!(iso("2024-12-10T15:20Z"), iso("2024-12-10T15:20:00Z"));
        assert_eq!(
            iso("2020-05-04T12:23:41.6181792Z"),
            Some(Moment::from(
                at(1_588_595_021) + Duration::from_nanos(618_179_200)
            ))
        );
    }

    #[test]
    fn a_date_without_a_zone_cannot_be_placed() {
        for text in [
            "2024-01-01 00:00:41",
            "2024-01-01T00:00:41",
            "2024-01-01",
            "2024-13-01T00:00:00Z",
        ] {
            assert_eq!(iso(text), None, "{text}");
        }
        assert_eq!(http("24.12.2030 00:00:00"), None);
    }

    #[test]
    fn agrees_with_a_strict_parser_over_many_centuries() {
        for secs in (0..253_402_300_799u64).step_by(86_400 * 37 + 3_671) {
            let text = httpdate::fmt_http_date(at(secs));
            assert_eq!(
                http_date(text.as_bytes(), &|| at(0)),
                Some(Moment::from(at(secs))),
                "{text}"
            );
        }
    }
}
