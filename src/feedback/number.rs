//! Plain decimal numbers, read without floating point so that no value can become NaN, infinite or negative.

use std::time::Duration;

use super::Fault;

/// `1*DIGIT [ "." 1*DIGIT ]`, never negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decimal {
    /// The whole part; `u64::MAX` if it did not fit.
    pub(super) whole: u64,
    /// The fraction in billionths, rounded up, so up to and including a billion.
    pub(super) billionths: u32,
}

const BILLION: u64 = 1_000_000_000;

impl Decimal {
    /// Reads `text`, which must be nothing but the number. A leading minus before a number is told apart from junk.
    pub(super) fn parse(text: &[u8]) -> Result<Self, Fault> {
        match text {
            [] => Err(Fault::Empty),
            [b'-', rest @ ..] if Self::unsigned(rest).is_some() => Err(Fault::Negative),
            _ => Self::unsigned(text).ok_or(Fault::NotACount),
        }
    }

    /// The number of seconds (with `per_second` 1), milliseconds (1000) and so on as a duration, rounded up.
    pub(super) fn duration(self, per_second: u64) -> Duration {
        if self.whole == u64::MAX {
            return Duration::MAX;
        }
        let unit = BILLION / per_second;
        let nanos = (self.whole % per_second) * unit
            + (u64::from(self.billionths) * unit).div_ceil(BILLION);
        Duration::from_secs(self.whole / per_second).saturating_add(Duration::from_nanos(nanos))
    }

    fn unsigned(text: &[u8]) -> Option<Self> {
        let digits = text
            .iter()
            .position(|byte| !byte.is_ascii_digit())
            .unwrap_or(text.len());
        let (integer, rest) = text.split_at_checked(digits)?;
        // Nineteen digits fit whatever they are, and no longer number is a count or a time.
        let short = |integer: &[u8]| {
            integer
                .iter()
                .fold(0, |whole, byte| whole * 10 + u64::from(byte - b'0'))
        };
        let whole = match integer.get(19..) {
            None => short(integer),
            Some(_) => match integer.iter().position(|&digit| digit != b'0') {
                Some(zeros) if integer.len() - zeros > 19 => u64::MAX,
                Some(zeros) => short(integer.get(zeros..)?),
                None => 0,
            },
        };
        match rest {
            _ if digits == 0 => None,
            [] => Some(Self {
                whole,
                billionths: 0,
            }),
            [b'.', fraction @ ..] => Some(Self {
                whole,
                billionths: billionths(fraction)?,
            }),
            _ => None,
        }
    }
}

/// A run of digits after a decimal point, in billionths, rounded up.
pub(super) fn billionths(fraction: &[u8]) -> Option<u32> {
    if fraction.is_empty() {
        return None;
    }
    let (mut value, mut scale, mut beyond) = (0u32, 1_000_000_000u32, false);
    for byte in fraction {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        scale /= 10;
        beyond |= scale == 0 && digit != 0;
        value += u32::from(digit) * scale;
    }
    Some(value + u32::from(beyond))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_up_and_saturates() {
        let secs = |text: &str| Decimal::parse(text.as_bytes()).unwrap().duration(1);
        assert_eq!(secs("0030"), Duration::from_secs(30));
        assert_eq!(secs("2.128"), Duration::from_millis(2128));
        assert_eq!(secs("0.0000000001"), Duration::from_nanos(1));
        assert_eq!(secs("1.9999999999"), Duration::from_secs(2));
        assert_eq!(secs("99999999999999999999"), Duration::MAX);
        assert_eq!(secs(&"9".repeat(310)), Duration::MAX);
    }

    #[test]
    fn scales_units() {
        let millis = |text: &str| Decimal::parse(text.as_bytes()).unwrap().duration(1000);
        assert_eq!(millis("1489"), Duration::from_millis(1489));
        assert_eq!(millis("0.0000001"), Duration::from_nanos(1));
        assert_eq!(
            millis("1844674407370955161").as_secs(),
            1_844_674_407_370_955
        );
    }

    #[test]
    fn refuses_other_forms() {
        for junk in [
            "+3", "1e3", "1.", ".5", "nan", "inf", "0x10", "1 2", "1,000", "--1", "-", "²",
        ] {
            assert_eq!(
                Decimal::parse(junk.as_bytes()),
                Err(Fault::NotACount),
                "{junk}"
            );
        }
        assert_eq!(Decimal::parse(b"-0.0"), Err(Fault::Negative));
        assert_eq!(Decimal::parse(b""), Err(Fault::Empty));
    }
}
