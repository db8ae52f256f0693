//! Values that hold a whole set of numbers: `{"limit":1000,"remaining":0}`, `total=100; remaining=99`,
//! `user-hour-lim:3600;user-hour-rem:3598;`.

/// Pairs of one value that are looked at.
const MAX_PAIRS: usize = 16;

/// The pairs of key and value in `text`, values without their quotes. Never fails: what is no pair is passed over.
pub(super) fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let json = text.trim_start().starts_with(['{', '[']);
    let mut rest = text;
    std::iter::from_fn(move || {
        if json {
            json_pair(&mut rest)
        } else {
            plain_pair(&mut rest)
        }
    })
    .take(MAX_PAIRS)
}

/// The next `"key": scalar`, at whatever depth: the objects that servers send nest only to group.
fn json_pair<'a>(rest: &mut &'a str) -> Option<(&'a str, &'a str)> {
    loop {
        let (_, tail) = rest.split_once('"')?;
        let (key, tail) = tail.split_once('"')?;
        *rest = tail;
        let Some(tail) = tail.trim_start().strip_prefix(':') else {
            continue;
        };
        let tail = tail.trim_start();
        if let Some(text) = tail.strip_prefix('"') {
            let (value, tail) = text.split_once('"')?;
            *rest = tail;
            return Some((key, value));
        }
        let end = tail.find([',', '}', ']']).unwrap_or(tail.len());
        let (value, tail) = tail.split_at_checked(end)?;
        let value = value.trim_end();
        if !value.is_empty() && !value.contains(['{', '[']) {
            *rest = tail;
            return Some((key, value));
        }
    }
}

fn plain_pair<'a>(rest: &mut &'a str) -> Option<(&'a str, &'a str)> {
    loop {
        if rest.is_empty() {
            return None;
        }
        let (item, tail) = rest.split_once([';', ',']).unwrap_or((*rest, ""));
        *rest = tail;
        if let Some((key, value)) = item.split_once(['=', ':']) {
            return Some((key.trim(), value.trim().trim_matches('"')));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json() {
        let text =
            r#"{"name":"General, all","period": 60,"limit":1000 ,"until":"2025-02-22T04:22:00Z"}"#;
        let found: Vec<_> = pairs(text).collect();
        assert_eq!(
            found,
            [
                ("name", "General, all"),
                ("period", "60"),
                ("limit", "1000"),
                ("until", "2025-02-22T04:22:00Z")
            ]
        );
        let nested: Vec<_> = pairs(r#"{"17":[{"type":"ads","call_count":95}]}"#).collect();
        assert_eq!(nested, [("type", "ads"), ("call_count", "95")]);
    }

    #[test]
    fn plain() {
        let found: Vec<_> = pairs("total=100; remaining=99; resets=41").collect();
        assert_eq!(
            found,
            [("total", "100"), ("remaining", "99"), ("resets", "41")]
        );
        let found: Vec<_> =
            pairs("user-hour-lim:3600;user-hour-rem:3598;, user-minute-lim:50;").collect();
        assert_eq!(
            found,
            [
                ("user-hour-lim", "3600"),
                ("user-hour-rem", "3598"),
                ("user-minute-lim", "50")
            ]
        );
    }

    #[test]
    fn broken_text_ends() {
        for text in [
            "{",
            "{\"",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":{",
            "{\"a\":\"b",
            ";",
            ",,,",
            "=",
            ":",
        ] {
            assert!(pairs(text).count() <= 1, "{text}");
        }
    }
}
