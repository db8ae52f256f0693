//! Calendar time as RFC 3339 writes it, in UTC with nanoseconds.

use std::{
    fmt,
    time::{SystemTime, UNIX_EPOCH},
};

use serde::{Serialize, Serializer};

const DAY: i64 = 86_400;
/// The first and last second that four digits of a year can name.
const FIRST: i64 = -62_167_219_200;
const LAST: i64 = 253_402_300_799;

/// A time of the day's clock, which may have been set at any moment: it says when, never in what order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wall {
    secs: i64,
    nanos: u32,
}

impl Wall {
    /// The day, as the text begins with it.
    pub(super) fn day(self) -> String {
        let mut text = self.to_string();
        text.truncate("2026-01-01".len());
        text
    }
}

impl From<SystemTime> for Wall {
    fn from(time: SystemTime) -> Self {
        let (secs, nanos) = match time.duration_since(UNIX_EPOCH) {
            Ok(after) => (
                i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
                after.subsec_nanos(),
            ),
            Err(error) => {
                let before = error.duration();
                let secs = i64::try_from(before.as_secs()).map_or(i64::MIN, |secs| -secs);
                match before.subsec_nanos() {
                    0 => (secs, 0),
                    nanos => (secs.saturating_sub(1), 1_000_000_000 - nanos),
                }
            }
        };
        Self {
            secs: secs.clamp(FIRST, LAST),
            nanos,
        }
    }
}

impl fmt::Display for Wall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil(self.secs.div_euclid(DAY));
        let second = self.secs.rem_euclid(DAY);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:09}Z",
            second / 3600,
            second / 60 % 60,
            second % 60,
            self.nanos
        )
    }
}

impl Serialize for Wall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Year, month and day of a day counted from 1970, in years that begin with March, so that the leap day is the last.
fn civil(days: i64) -> (i64, i64, i64) {
    // Days since the first of March of the year 0; 400 years have 146,097.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use super::Wall;

    #[test]
    fn days_are_those_of_httpdate() {
        // httpdate knows 1970 to 9999.
        for day in (0..2_932_896).step_by(7) {
            let time = UNIX_EPOCH + Duration::new(day * 86_400 + day % 86_400, 7);
            let text = Wall::from(time).to_string();
            let date = httpdate::fmt_http_date(time);
            let months = "JanFebMarAprMayJunJulAugSepOctNovDec";
            let month = months.find(&date[8..11]).unwrap() / 3 + 1;
            let right = format!(
                "{}-{month:02}-{}T{}.000000007Z",
                &date[12..16],
                &date[5..7],
                &date[17..25]
            );
            assert_eq!(text, right);
        }
    }

    #[test]
    fn any_time_has_a_text() {
        let text = |time: SystemTime| Wall::from(time).to_string();
        assert_eq!(
            text(UNIX_EPOCH - Duration::from_nanos(1)),
            "1969-12-31T23:59:59.999999999Z"
        );
        let long = Duration::from_secs(1 << 60);
        if let Some(far) = UNIX_EPOCH.checked_add(long) {
            assert_eq!(text(far), "9999-12-31T23:59:59.000000000Z");
        }
        if let Some(far) = UNIX_EPOCH.checked_sub(long) {
            assert_eq!(text(far), "0000-01-01T00:00:00.000000000Z");
        }
        assert_eq!(Wall::from(UNIX_EPOCH).day(), "1970-01-01");
    }
}
