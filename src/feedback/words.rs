//! The vocabulary of rate field names.

use super::duration::{WindowWord, number_of, per_window, window_word};
use super::value::TimeForm;

/// What a field gives about a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Nothing after the marker: a limit, or a whole set of values in one.
    Bare,
    Limit,
    Remaining,
    Used,
    /// A time of any form.
    Reset,
    /// A second, absolute spelling of the reset beside [`Role::Reset`].
    ResetAt,
    /// A time from now, which needs no clock.
    ResetAfter,
    Window,
    Hold,
    /// The name of the budget, and how well it names it: lower is better.
    Name(u8),
    /// `true` if the limit covers everything.
    Global,
    /// A list of policies without state.
    Policy,
    /// Words that give no role.
    Other,
}

/// A role found among the words after a marker.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found<'a> {
    pub(super) role: Role,
    pub(super) index: usize,
    /// What stands beside the role in its own word: `daily` in `dailylimit`, `perhour` in `limitperhour`.
    pub(super) glued: &'a str,
    /// How many words after the role belong to it.
    pub(super) qualifiers: usize,
    pub(super) form: TimeForm,
}

/// What a name without a role word can still be.
#[derive(Debug, Clone, Copy)]
pub(super) enum Unnamed {
    Role(Role),
    /// A window, whose limit it is (`-daily`, `-requests-per-minute`).
    Window,
}

/// The word or words that make a name a rate field.
#[derive(Debug, Clone, Copy)]
pub(super) struct Marker<'a> {
    /// What is glued to its front: `media` in `mediaratelimit`.
    pub(super) front: &'a str,
    /// What is glued to its back: `bysize` in `ratelimitbysize`.
    pub(super) back: &'a str,
    /// How many words it takes.
    pub(super) width: usize,
}

/// The marker at `word`, if there is one.
pub(super) fn marker<'a>(word: &'a str, next: Option<&str>) -> Option<Marker<'a>> {
    let whole = Marker {
        front: "",
        back: "",
        width: 1,
    };
    match word {
        "ratelimit" | "requestlimit" | "floodcontrol" => Some(whole),
        "rate" if next == Some("limit") => Some(Marker { width: 2, ..whole }),
        // Answers of yes or no, and lists in a form of their own.
        "ratelimited" | "ratelimits" => None,
        _ if word.len() < 10 => None,
        _ => match word.strip_suffix("ratelimit") {
            Some(front) => Some(Marker { front, ..whole }),
            None => word
                .strip_prefix("ratelimit")
                .map(|back| Marker { back, ..whole }),
        },
    }
}

/// The family of the commonest names.
pub(super) const COMMON: &str = "x-ratelimit";

/// The role of the commonest names, and what they count.
pub(super) fn common(name: &str) -> Option<(Role, &str)> {
    let word = name.strip_prefix(COMMON)?.strip_prefix('-')?;
    let (role, rest) = if let Some(rest) = word.strip_prefix("remaining") {
        (Role::Remaining, rest)
    } else if let Some(rest) = word.strip_prefix("limit") {
        (Role::Limit, rest)
    } else {
        match word {
            "used" => return Some((Role::Used, "")),
            "resource" => return Some((Role::Name(2), "")),
            _ => (Role::Reset, word.strip_prefix("reset")?),
        }
    };
    match rest {
        "" => Some((role, "")),
        "-requests" => Some((role, "requests")),
        "-tokens" => Some((role, "tokens")),
        _ => None,
    }
}

/// Words before a marker that say whose or which requests are counted. Any other word there is a brand.
pub(super) fn is_scope(word: &str) -> bool {
    window_word(word, || None).is_some()
        || matches!(
            word,
            "app"
                | "application"
                | "user"
                | "client"
                | "ip"
                | "account"
                | "org"
                | "organization"
                | "tenant"
                | "team"
                | "project"
                | "key"
                | "method"
                | "endpoint"
                | "route"
                | "read"
                | "write"
                | "search"
                | "media"
                | "post"
                | "burst"
                | "sustained"
                | "global"
                | "request"
                | "requests"
                | "token"
                | "tokens"
                | "concurrent"
                | "concurrency"
        )
}

/// The role among `words`, the strongest word first: a reset is a reset even beside the word `limit`.
pub(super) fn role<'a>(words: &[&'a str]) -> Option<Found<'a>> {
    let mut limit = None;
    for (index, word) in words.iter().enumerate() {
        match whole(word).map(|role| (role, "")).or_else(|| glued(word)) {
            Some((Role::Limit, glued)) => {
                limit.get_or_insert((index, glued));
            }
            Some((role, glued)) => return Some(qualified(words, index, role, glued)),
            None => {}
        }
    }
    if let Some((index, glued)) = limit {
        return Some(qualified(words, index, Role::Limit, glued));
    }
    // `burst-capacity` is how deep a token bucket is, which is its limit.
    if let ["burst", "capacity"] = words {
        return Some(Found {
            role: Role::Limit,
            index: 0,
            glued: "",
            qualifiers: 1,
            form: TimeForm::Auto,
        });
    }
    // `requests-left-per-day` ends like `requests-left`.
    let words = without_window(words).unwrap_or(words);
    let index = words.len().checked_sub(1)?;
    let role = weak(words.last()?)?;
    Some(Found {
        role,
        index,
        glued: "",
        qualifiers: 0,
        form: TimeForm::Auto,
    })
}

/// What `words` without a role say.
pub(super) fn unnamed(words: &[&str]) -> Option<Unnamed> {
    let role = match words {
        ["after"] => Role::Hold,
        ["global"] => Role::Global,
        ["policy"] => Role::Policy,
        ["name"] => Role::Name(0),
        ["bucket"] => Role::Name(1),
        ["resource"] => Role::Name(2),
        ["category"] => Role::Name(3),
        ["class"] => Role::Name(4),
        ["zone"] => Role::Name(5),
        ["action"] => Role::Name(6),
        ["key"] => Role::Name(7),
        ["by"] => Role::Name(8),
        ["type"] => Role::Name(9),
        ["scope"] => Role::Name(SCOPE_RANK),
        [word] if window_word(word, || None).is_some() => {
            return Some(Unnamed::Window);
        }
        // `requests-per-minute`: so many in a window is a limit.
        _ if without_window(words).is_some() => return Some(Unnamed::Window),
        _ => return None,
    };
    Some(Unnamed::Role(role))
}

/// The words before a window that is written out at the end, as `per-minute`, `per-10-seconds` or `perminute`.
fn without_window<'w, 'a>(words: &'w [&'a str]) -> Option<&'w [&'a str]> {
    let (window, before) = words.split_last()?;
    let is_window = |count| window_word(window, || count).is_some();
    match before {
        _ if per_window(window).is_some() && is_window(None) => Some(before),
        [before @ .., "per"] if is_window(None) => Some(before),
        [before @ .., "per", count] if is_window(Some(number_of(count)?)) => Some(before),
        _ => None,
    }
}

/// The rank of `-scope`, which also says whom a refusal concerns.
pub(super) const SCOPE_RANK: u8 = 10;

/// Words that neither name nor tell apart: what is left of `limit` beside another role, and small words.
pub(super) fn is_filler(word: &str) -> bool {
    matches!(word, "limit" | "per" | "this")
}

/// Ordinary words that can make a rate field of a name without a marker.
pub(super) fn is_plain(word: &str) -> bool {
    matches!(word, "limit" | "remaining" | "reset")
}

/// One spelling for words that name the same window in two fields of one set.
pub(super) fn canonical(word: &str) -> &str {
    match word {
        "secon" => "second",
        "today" => "day",
        _ => word,
    }
}

/// The window whose name the word ends in: `day`, `appmin`.
pub(super) fn ending_window(word: &str) -> Option<WindowWord> {
    const ENDS: [&str; 8] = [
        "second", "sec", "minute", "min", "hour", "day", "daily", "month",
    ];
    let end = ENDS.into_iter().find(|end| word.ends_with(end))?;
    window_word(end, || None)
}

fn whole(word: &str) -> Option<Role> {
    Some(match word {
        "limit" => Role::Limit,
        "remaining" => Role::Remaining,
        "used" | "usage" | "observed" | "consumed" => Role::Used,
        "reset" | "resets" | "next" => Role::Reset,
        "resetat" | "resettime" | "resettimestamp" | "resetdate" | "until" => Role::ResetAt,
        "resetafter" | "resetin" => Role::ResetAfter,
        "period" | "window" | "interval" | "renewalperiod" => Role::Window,
        "retry" | "retryafter" => Role::Hold,
        _ => return None,
    })
}

/// The role's value is a time.
pub(super) fn is_time(role: Role) -> bool {
    matches!(
        role,
        Role::Reset | Role::ResetAt | Role::ResetAfter | Role::Window | Role::Hold
    )
}

/// A role at the end of a longer word, or before a window: `limitperhour`.
fn glued(word: &str) -> Option<(Role, &str)> {
    let (front, role) = if let Some(front) = word.strip_suffix("limit") {
        (front, Role::Limit)
    } else if let Some(front) = word.strip_suffix("remaining") {
        (front, Role::Remaining)
    } else {
        match word.strip_suffix("reset") {
            Some(front) => (front, Role::Reset),
            None => return before_window(word),
        }
    };
    // `nearlimit` and `overlimit` are answers of yes or no.
    (!matches!(front, "" | "near" | "over")).then_some((role, front))
}

fn before_window(word: &str) -> Option<(Role, &str)> {
    let (front, _) = per_window(word)?;
    let (role, rest) = (whole(front)?, word.get(front.len()..)?);
    window_word(word, || None).map(|_| (role, rest))
}

/// Words that are a role only in the last place, since they also name things.
fn weak(word: &str) -> Option<Role> {
    Some(match word {
        "max" | "maximum" | "total" | "quota" | "lim" => Role::Limit,
        "rem" | "remain" | "left" | "available" => Role::Remaining,
        _ => return None,
    })
}

/// Takes the words after a role that belong to it.
fn qualified<'a>(words: &[&'a str], index: usize, role: Role, glued: &'a str) -> Found<'a> {
    let mut found = Found {
        role,
        index,
        glued,
        qualifiers: 0,
        form: TimeForm::Auto,
    };
    let timed = is_time(role);
    for word in words.iter().skip(index + 1) {
        match *word {
            "after" | "in" if role == Role::Reset => found.role = Role::ResetAfter,
            "at" | "time" | "timestamp" | "date" | "epoch" | "utc" if role == Role::Reset => {
                found.role = Role::ResetAt
            }
            "after" | "in" if role == Role::Hold => {}
            "ms" | "milliseconds" | "millis" if timed => found.form = TimeForm::Millis,
            "s" | "sec" | "secs" | "seconds" | "size" if timed => {}
            _ => break,
        }
        found.qualifiers += 1;
    }
    found
}
