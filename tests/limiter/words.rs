//! Quotas and lengths of time as people write them.

use std::time::Duration;

use tower_throttle::{Quota, Spend, engine::Backoff};

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn a_quota_reads_as_people_say_it() {
    for (quota, words) in [
        (Quota::from_rate(60.0).unwrap(), "60 a second"),
        (Quota::per_day(10_000), "10,000 a day"),
        (Quota::new(5, secs(3)), "5 in 3 s"),
        (Quota::from_rate(5.0 / 3.0).unwrap(), "5 in 3 s"),
        (Quota::from_rate(0.1).unwrap(), "1 in 10 s"),
        (Quota::from_rate(0.7).unwrap(), "7 in 10 s"),
        (Quota::per_hour(1), "1 an hour"),
        (
            Quota::per_minute(1_234_567).burst(1_000),
            "1,234,567 a minute, burst 1,000",
        ),
        (Quota::new(1_000, secs(600)), "1,000 in 10 min"),
        (Quota::new(3, Duration::from_millis(1_500)), "3 in 1500 ms"),
        (Quota::new(1, Duration::from_nanos(1)), "1 in 1 ns"),
        (
            Quota::new(1, Duration::MAX),
            "1 in 18446744073709551615999999999 ns",
        ),
        (
            Quota::per_second(2).burst(10).initial(0),
            "2 a second, burst 10, initial 0",
        ),
        (
            Quota::at_most(50_000, secs(86_400)),
            "at most 50,000 in any day",
        ),
        (Quota::at_most(5, secs(10)), "at most 5 in any 10 s"),
        (Quota::new(0, Duration::ZERO), "0 in 0 s"),
    ] {
        assert_eq!(quota.to_string(), words);
    }
}

#[test]
fn a_rate_becomes_the_simplest_fraction_that_is_not_above_it() {
    for rate in [
        60.0,
        59.9,
        0.7,
        1.0 / 3.0,
        1e-3,
        1.2345e-4,
        9.87654321e-7,
        3.3e-9,
        1e-12,
        0.999_999_9,
        1e6,
        1_234.567_89,
        16.666_666_7,
        4_294_967_295.0,
        4_294_967_294.5,
        f64::MIN_POSITIVE,
        5e-324,
        2.5,
        1e-10,
        std::f64::consts::PI,
    ] {
        let quota = Quota::from_rate(rate).unwrap();
        quota.validate().unwrap();
        let read = quota.rate();
        assert!(
            read <= rate * (1.0 + 1e-15) || read < 3e-10,
            "{rate}: {quota}"
        );
        assert!(read >= rate * (1.0 - 2e-6), "{rate}: {quota}");
    }
    // Of several whole numbers within a millionth, the nearest.
    for whole in [1_234_567, 1_234_567_891, u32::MAX] {
        let quota = Quota::from_rate(f64::from(whole)).unwrap();
        assert_eq!(quota, Quota::per_second(whole));
    }
    // Within a millionth there is nothing simpler.
    assert_eq!(
        Quota::from_rate(1_234.5).unwrap(),
        Quota::new(2_469, secs(2))
    );
    assert_eq!(
        Quota::from_rate(1e-6).unwrap(),
        Quota::new(1, secs(1_000_000))
    );
}

#[test]
fn what_is_written_can_be_read_again() {
    for quota in [
        Quota::per_second(10),
        Quota::per_second(10).burst(20),
        Quota::per_day(1_000_000).burst(7).initial(3),
        Quota::new(7, Duration::from_nanos(123_456_789)),
        Quota::new(u32::MAX, Duration::from_nanos(1 << 62)).burst(u32::MAX),
        Quota::at_most(1, Duration::from_micros(3)),
        Quota::per_hour(5).burst(2).initial(2),
    ] {
        let read: Quota = quota.to_string().parse().unwrap();
        assert_eq!(read.to_string(), quota.to_string());
        assert_eq!(
            (read.amount(), read.period()),
            (quota.amount(), quota.period())
        );
        assert_eq!(
            (read.burst_size(), read.initial_size()),
            (quota.burst_size(), quota.initial_size())
        );
        assert_eq!(read.is_strict(), quota.is_strict());
    }
}

#[test]
fn quotas_are_read_in_the_forms_people_use() {
    for (text, quota) in [
        ("10/s", Quota::per_second(10)),
        ("5000/h", Quota::per_hour(5_000)),
        ("5,000 / hour", Quota::per_hour(5_000)),
        ("5_000/hour", Quota::per_hour(5_000)),
        ("5/3s", Quota::new(5, secs(3))),
        ("5 in 3 s", Quota::new(5, secs(3))),
        ("10/s burst 20", Quota::per_second(10).burst(20)),
        (
            "10/s, burst 20, initial 0",
            Quota::per_second(10).burst(20).initial(0),
        ),
        ("15 per minute", Quota::per_minute(15)),
        ("15/min", Quota::per_minute(15)),
        ("1000 a day", Quota::per_day(1_000)),
        ("3 every 250 ms", Quota::new(3, Duration::from_millis(250))),
        ("50 in any 10 s", Quota::at_most(50, secs(10))),
    ] {
        assert_eq!(text.parse::<Quota>().unwrap(), quota, "{text}");
    }
}

#[test]
fn what_is_no_quota_is_an_error_that_shows_how_one_reads() {
    for text in [
        "",
        "10",
        "s",
        "/s",
        "10/",
        "10/x",
        "-1/s",
        "+1/s",
        "1.5/s",
        "1e3/s",
        "10/s/s",
        "10 s",
        "ten a second",
        "10/s burst",
        "10/s burst x",
        "10/s 20",
        "at most 5 a day",
        "at 5 in any day",
        "5 in any day burst 3",
        "10/s;burst=3",
        "99999999999/s",
        "1/99999999999999999999s",
        "١/s",
        "10/s, speed 4",
    ] {
        let error = text.parse::<Quota>().unwrap_err();
        assert!(error.to_string().contains("\"10/s\""), "{text}: {error}");
    }
    for (text, field) in [
        ("0/s", "amount"),
        ("1/0s", "period"),
        ("1/600000000000d", "period"),
        ("1/s burst 0", "burst"),
        ("1/s initial 2", "initial"),
    ] {
        assert_eq!(text.parse::<Quota>().unwrap_err().field(), field, "{text}");
    }
}

#[cfg(feature = "serde")]
#[test]
fn a_configuration_file_says_quotas_as_people_do_and_is_validated() {
    fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }
    assert_eq!(
        read(r#""10/s, burst 20""#),
        Ok(Quota::per_second(10).burst(20))
    );
    for text in [
        r#"{"amount": 5, "period": "3 s", "burst": 2, "initial": 1}"#,
        r#"{"amount": 5, "period": {"secs": 3, "nanos": 0}, "burst": 2, "initial": 1}"#,
    ] {
        assert_eq!(
            read(text),
            Ok(Quota::new(5, secs(3)).burst(2).initial(1)),
            "{text}"
        );
    }
    for (text, about) in [
        (r#""0/s""#, "amount"),
        (r#"{"amount": 0, "period": "1 s"}"#, "amount"),
        (r#"{"amount": 1, "period": "0 s"}"#, "period"),
        (r#"{"amount": 1, "period": "1 s", "burst": 0}"#, "burst"),
        (r#"{"amount": 1, "period": "soon"}"#, "quota"),
        (r#"{"amount": 1, "period": "1 s", "bust": 3}"#, "quota"),
        ("17", "quota"),
    ] {
        let error = read::<Quota>(text).unwrap_err();
        assert!(error.contains(about), "{text}: {error}");
    }
    assert_eq!(
        read(r#"{"Horizon": "5 min"}"#),
        Ok(Spend::Horizon(secs(300)))
    );
    let backoff = Backoff {
        base: None,
        cap: secs(60),
    };
    assert_eq!(read(r#"{"cap": "60 s"}"#), Ok(backoff));
    assert_eq!(
        serde_json::to_string(&backoff).unwrap(),
        r#"{"base":null,"cap":"1 min"}"#
    );
    let quota = Quota::new(7, Duration::from_nanos(12_345))
        .burst(3)
        .initial(0);
    assert_eq!(read(&serde_json::to_string(&quota).unwrap()), Ok(quota));
}
