//! What only a server's documentation tells.
//!
//! Some answers cannot be read from names and values alone: KuCoin's reset of `1489` is milliseconds and nothing in it says
//! so, Shopify's `32/40` is used/limit, and Bybit's `Status` is what is left. A [`Dialect`] is a small value that says so,
//! field by field; everything that it does not name is still read by the general rules.

use std::borrow::Cow;
use std::time::Duration;

use http::StatusCode;

use super::{TimeForm, Unit};

/// What a server's documentation adds to the general rules.
///
/// There are ready ones, such as [`Dialect::shopify`], and writing one takes a few lines:
///
/// ```
/// use tower_throttle::feedback::{Dialect, Meaning, Reader, Rule, TimeForm};
/// use http::{HeaderMap, StatusCode};
/// # use std::time::{Duration, SystemTime};
///
/// let dialect = Dialect::new()
///     .rule(Rule::new("X-Calls-Left", Meaning::Remaining))
///     .rule(Rule::new("X-Calls-Back-In", Meaning::Reset(TimeForm::Millis)));
/// let reader = Reader::new().dialect(dialect);
///
/// let mut headers = HeaderMap::new();
/// headers.insert("x-calls-left", "0".parse()?);
/// headers.insert("x-calls-back-in", "1500".parse()?);
/// let feedback = reader.read(StatusCode::OK, &headers, SystemTime::now());
/// assert_eq!(feedback.wait(), Some(Duration::from_millis(1500)));
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dialect {
    rules: Vec<Rule>,
    refusals: Vec<StatusCode>,
    pub(super) refuses_when_spent: bool,
    pub(super) refusal_wait: Option<Duration>,
}

/// What one field, or a group of fields of one pattern, means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    field: Cow<'static, str>,
    pub(super) meaning: Meaning,
    pub(super) name: Option<Cow<'static, str>>,
    pub(super) unit: Option<Unit>,
    pub(super) windows: Cow<'static, [Duration]>,
    pub(super) grouped: bool,
}

/// The meaning of a field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Meaning {
    /// A count: the whole quota.
    Limit,
    /// A count: what is left.
    Remaining,
    /// A count: what is used.
    Used,
    /// When the quota comes back.
    Reset(TimeForm),
    /// The length of the window.
    Window(TimeForm),
    /// An explicit wait, as `Retry-After` is.
    Hold(TimeForm),
    /// Requests per second, with a fraction: `0.0167` is one a minute. Shown as a limit and its window.
    Rate,
    /// `32/40`: what is used of the limit.
    UsedOfLimit,
    /// `calls=18/5000; bursts=1/750(app=x)`: several of them with their names.
    NamedUsedOfLimit,
    /// `20:1,100:120`: limits, each with its window in seconds.
    LimitPerWindow,
    /// `21:1,36:120`: what is used in each window of seconds.
    UsedPerWindow,
    /// `60:error;default:organization, 2700::key`: waits in seconds, each for its categories; other parts are comments. Each
    /// is shown as a spent budget named by the categories, whatever the status.
    Holds,
    /// A JSON object of per cents used, `{"call_count":28,"total_time":25}`, nested or not.
    Percents,
    /// The value contains one of these texts when the response is a refusal.
    Refusal(&'static [&'static str]),
    /// Nothing: the field is not to be read by the general rules either.
    Ignore,
}

impl Dialect {
    /// The general rules and nothing else.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what a field means. The first rule that fits a field counts.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Every response of this status is a refusal for rate reasons, whatever else it carries.
    #[must_use]
    pub fn refuses(mut self, status: StatusCode) -> Self {
        self.refusals.push(status);
        self
    }

    /// A spent budget with its reset ahead means that this response is a refusal, whatever its status: for servers that
    /// refuse in the body of a 200, and name a reset only then and else the present.
    #[must_use]
    pub fn refuses_when_spent(mut self) -> Self {
        self.refuses_when_spent = true;
        self
    }

    /// How long to wait after a refusal that names no time, as documented. The hold's field is then [`Rule::DOCUMENTED`].
    #[must_use]
    pub fn refusal_wait(mut self, wait: Duration) -> Self {
        self.refusal_wait = Some(wait);
        self
    }

    /// The rule for a field, and the part of its name that stands in the place of a `*`.
    pub(super) fn rule_for<'a>(&'a self, field: &'a str) -> Option<(&'a Rule, &'a str)> {
        self.rules
            .iter()
            .find_map(|rule| rule.matches(field).map(|star| (rule, star)))
    }

    pub(super) fn is_refusal(&self, status: StatusCode) -> bool {
        self.refusals.contains(&status)
    }
}

impl Rule {
    /// Shown as the field of a wait that no field set (see [`Dialect::refusal_wait`]), or that was set by a field whose name
    /// became known only at run time.
    pub const DOCUMENTED: &'static str = "(documented)";

    /// Says what `field` means. Letter case does not matter. One `*` stands for any words, at least one character, and
    /// these name the budget unless [`named`](Self::named) says otherwise.
    ///
    /// The budget is the one that the field's name suggests by the general rules, so a rule for a reset joins the limit
    /// and remaining beside it. Fields with unknown names are joined by the name of their budget.
    pub fn new(field: impl Into<Cow<'static, str>>, meaning: Meaning) -> Self {
        Self {
            field: field.into(),
            meaning,
            name: None,
            unit: None,
            windows: Cow::Borrowed(&[]),
            grouped: false,
        }
    }

    /// Names the budget. A `*` between hyphens stands for what the `*` of the field stands for.
    #[must_use]
    pub fn named(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Says what is counted.
    #[must_use]
    pub fn unit(mut self, unit: Unit) -> Self {
        self.unit = Some(unit);
        self
    }

    /// The value lists one count for each of these windows, in this order.
    #[must_use]
    pub fn windows(mut self, windows: impl Into<Cow<'static, [Duration]>>) -> Self {
        self.windows = windows.into();
        self
    }

    /// Commas in the value group digits (`1,199.46`) and do not part values.
    #[must_use]
    pub fn grouped(mut self) -> Self {
        self.grouped = true;
        self
    }

    /// The field's name for display, where it is known at compile time.
    pub(super) fn static_field(&self) -> &'static str {
        match self.field {
            Cow::Borrowed(field) => field,
            Cow::Owned(_) => Self::DOCUMENTED,
        }
    }

    /// What the `*` stands for in `field`, empty without one; `None` if the rule is for another field.
    fn matches<'a>(&self, field: &'a str) -> Option<&'a str> {
        let Some((before, after)) = self.field.split_once('*') else {
            return self.field.eq_ignore_ascii_case(field).then_some("");
        };
        let star = field
            .len()
            .checked_sub(before.len() + after.len())
            .filter(|&star| star > 0)?;
        let (head, rest) = field.split_at_checked(before.len())?;
        let (star, tail) = rest.split_at_checked(star)?;
        (before.eq_ignore_ascii_case(head) && after.eq_ignore_ascii_case(tail)).then_some(star)
    }
}
