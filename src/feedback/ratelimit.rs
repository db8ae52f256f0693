//! The IETF fields `RateLimit` and `RateLimit-Policy`.
//!
//! From draft-ietf-httpapi-ratelimit-headers-07 on they are structured fields (RFC 9651): a dictionary in draft 07, lists
//! of named items in drafts 08 to 10. A syntax fault voids the whole field, over all of its lines (RFC 9651 section 4.2);
//! an item without its name or number is dropped alone. `RateLimit-Limit: 10, 10;w=1` of the drafts up to 03, and its
//! many `X-` spellings, have the same syntax.

use std::borrow::Cow;
use std::convert::Infallible;
use std::time::Duration;

use sfv::visitor::{
    DictionaryVisitor, EntryVisitor, Ignored, InnerListVisitor, ItemVisitor, ListVisitor,
    ParameterVisitor,
};
use sfv::{BareItemFromInput, KeyRef, Parser};

use super::value::{MAX_VALUE, believable};
use super::{Budget, Fault, Unit};

/// Members of one field that are looked at.
const MAX_MEMBERS: usize = 24;

/// One member of a list: a name or a number, with the parameters that the drafts define.
///
/// The keys stand here and nowhere else, since the names of `r` and `t` are still being discussed for draft 11.
#[derive(Debug, Clone, Default)]
pub(super) struct Member<'a> {
    /// The item itself as a string (draft 08 on), which names the policy.
    pub(super) name: Option<Cow<'a, str>>,
    /// The item itself as a number (up to draft 07), which is the quota.
    pub(super) number: Option<u64>,
    /// `q`: the quota.
    pub(super) quota: Number,
    /// `r`: what is left.
    pub(super) remaining: Number,
    /// `t`: seconds until more comes.
    pub(super) reset: Number,
    /// `w`, in early drafts also `window`: the window in seconds.
    pub(super) window: Option<Duration>,
    /// What is wrong with the window.
    pub(super) fault: Option<Fault>,
    /// `qu`: the unit of the quota.
    pub(super) unit: Unit,
    /// `pk`: the partition key.
    pub(super) partition: Option<Vec<u8>>,
}

/// A number that a member may have to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Number {
    #[default]
    Absent,
    Bad,
    Is(u64),
}

/// The state of a `RateLimit` dictionary (draft 07).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct State {
    pub(super) limit: Number,
    pub(super) remaining: Number,
    pub(super) reset: Number,
}

/// A structured field gathered from all of its lines.
#[derive(Debug, Default)]
pub(super) struct Field<'a> {
    members: Vec<Member<'a>>,
    pub(super) state: Option<State>,
    pub(super) fault: Option<Fault>,
    seen: bool,
    bytes: usize,
}

impl<'a> Field<'a> {
    /// Takes one line.
    pub(super) fn read(&mut self, line: &'a [u8]) {
        self.bytes = self.bytes.saturating_add(line.len());
        if self.bytes > MAX_VALUE {
            self.fault = Some(Fault::TooLong);
        }
        if self.fault.is_some() {
            return;
        }
        // The first line tells the draft, and all lines are one value.
        let dictionary = self.state.is_some() || (!self.seen && is_dictionary(line));
        self.seen = true;
        let parsed = if dictionary {
            let state = self.state.get_or_insert_default();
            Parser::new(line).parse_dictionary_with_visitor(Members(state))
        } else {
            Parser::new(line).parse_list_with_visitor(Members(&mut self.members))
        };
        if parsed.is_err() {
            self.fault = Some(Fault::Syntax);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The members of the whole field; none if any line has a fault.
    pub(super) fn take(&mut self) -> Vec<Member<'a>> {
        let members = std::mem::take(&mut self.members);
        if self.fault.is_some() {
            Vec::new()
        } else {
            members
        }
    }
}

/// Reads a list in the syntax of `RateLimit-Policy` from any field.
pub(super) fn list(line: &[u8]) -> Option<Vec<Member<'_>>> {
    let mut members = Vec::new();
    if line.len() > MAX_VALUE {
        return None;
    }
    Parser::new(line)
        .parse_list_with_visitor(Members(&mut members))
        .ok()
        .map(|()| members)
}

/// Joins the named members of both fields on name and partition key: each policy and each state becomes one budget.
/// Where a server puts the key into one of the fields only, two budgets remain for the search for twins.
/// Members that lack what they must have are reported to `malformed`.
pub(super) fn named_budgets(
    policies: Vec<Member<'_>>,
    states: Vec<Member<'_>>,
    mut malformed: impl FnMut(&'static str, Fault),
) -> Vec<Budget> {
    let mut budgets = Vec::with_capacity(policies.len() + states.len());
    for policy in policies {
        if let Some(fault) = policy.fault {
            malformed(POLICY, fault);
        }
        match (policy.name, policy.quota) {
            (Some(name), Number::Is(quota)) => budgets.push(Budget {
                name: Some(super::malformed::clip(&name).into()),
                partition: policy.partition.map(Vec::into_boxed_slice),
                limit: Some(quota),
                window: policy.window,
                unit: policy.unit,
                ..Budget::default()
            }),
            _ => malformed(POLICY, Fault::Incomplete),
        }
    }
    let of_policies = budgets.len();
    for state in states {
        let (Some(name), Number::Is(remaining)) = (state.name, state.remaining) else {
            malformed(STATE, Fault::Incomplete);
            continue;
        };
        let name = super::malformed::clip(&name);
        let reset = state.reset.time().unwrap_or_else(|fault| {
            malformed(STATE, fault);
            None
        });
        let partition = state.partition.as_deref();
        let known = budgets.iter_mut().take(of_policies);
        let mut fits = known
            .filter(|budget| budget.name.as_deref() == Some(name) && budget.remaining.is_none());
        match fits.find(|budget| budget.partition.as_deref() == partition) {
            Some(budget) => {
                budget.remaining = Some(remaining);
                budget.reset = reset;
            }
            None => budgets.push(Budget {
                name: Some(name.into()),
                partition: state.partition.map(Vec::into_boxed_slice),
                remaining: Some(remaining),
                reset,
                ..Budget::default()
            }),
        }
    }
    budgets
}

pub(super) const STATE: &str = "ratelimit";
pub(super) const POLICY: &str = "ratelimit-policy";

impl Number {
    pub(super) fn known(self) -> Option<u64> {
        if let Self::Is(number) = self {
            Some(number)
        } else {
            None
        }
    }

    /// The number as a time in seconds.
    pub(super) fn time(self) -> Result<Option<Duration>, Fault> {
        match self {
            Self::Is(seconds) => believable(Duration::from_secs(seconds)).map(Some),
            Self::Absent => Ok(None),
            Self::Bad => Err(Fault::Incomplete),
        }
    }

    fn of(item: &BareItemFromInput<'_>) -> Self {
        let integer = item
            .as_integer()
            .map(i64::from)
            .and_then(|number| u64::try_from(number).ok());
        integer.map_or(Self::Bad, Self::Is)
    }
}

/// Draft 07 writes `key=value` where later drafts write a string.
fn is_dictionary(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let key = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'*');
    line.first().is_some_and(u8::is_ascii_lowercase)
        && line.iter().find(|byte| !key(byte)) == Some(&b'=')
}

/// Collects into `T` while the field is parsed.
struct Members<'t, T>(&'t mut T);

/// One member under construction.
struct Parameters<'t, T>(&'t mut T);

impl<'de> ListVisitor<'de> for Members<'_, Vec<Member<'de>>> {
    type Out = ();
    type Error = Infallible;

    fn entry(&mut self) -> Result<impl EntryVisitor<'de>, Self::Error> {
        // Members beyond the bound are still checked for syntax, then dropped.
        Ok(if self.0.len() < MAX_MEMBERS {
            self.0.push(Member::default());
            self.0.last_mut().map(Parameters)
        } else {
            None
        })
    }

    fn finish(self) -> Result<Self::Out, Self::Error> {
        Ok(())
    }
}

impl<'de> EntryVisitor<'de> for Parameters<'_, Member<'de>> {
    type Error = Infallible;

    fn item(self) -> Result<impl ItemVisitor<'de>, Self::Error> {
        Ok(self)
    }

    fn inner_list(self) -> Result<impl InnerListVisitor<'de>, Self::Error> {
        Ok(Ignored)
    }
}

impl<'de> ItemVisitor<'de> for Parameters<'_, Member<'de>> {
    type Out = ();
    type Error = Infallible;

    fn bare_item(
        self,
        item: BareItemFromInput<'de>,
    ) -> Result<impl ParameterVisitor<'de, Out = Self::Out>, Self::Error> {
        self.0.number = match &item {
            BareItemFromInput::Decimal(number) => {
                u64::try_from(i64::from(number.as_integer_scaled_1000()) / 1000).ok()
            }
            other => Number::of(other).known(),
        };
        self.0.name = text(item);
        Ok(self)
    }
}

impl<'de> ParameterVisitor<'de> for Parameters<'_, Member<'de>> {
    type Out = ();
    type Error = Infallible;

    fn parameter(
        &mut self,
        key: &'de KeyRef,
        value: BareItemFromInput<'de>,
    ) -> Result<(), Self::Error> {
        match key.as_str() {
            "q" => self.0.quota = Number::of(&value),
            "r" => self.0.remaining = Number::of(&value),
            "t" => self.0.reset = Number::of(&value),
            "w" | "window" => {
                // A window of zero is forbidden and says nothing.
                let seconds = Number::of(&value).known().filter(|&seconds| seconds > 0);
                let window = seconds.map(|seconds| believable(Duration::from_secs(seconds)));
                (self.0.window, self.0.fault) = match window.transpose() {
                    Ok(window) => (window, None),
                    Err(fault) => (None, Some(fault)),
                };
            }
            "qu" => {
                self.0.unit = match text(value).as_deref() {
                    Some("requests") => Unit::Requests,
                    Some("content-bytes") => Unit::Bytes,
                    Some("concurrent-requests") => Unit::Concurrency,
                    _ => Unit::Other,
                }
            }
            "pk" => {
                if let BareItemFromInput::ByteSequence(key) = value {
                    self.0.partition = Some(key);
                }
            }
            "name" if self.0.name.is_none() => self.0.name = text(value),
            _ => {}
        }
        Ok(())
    }

    fn finish(self) -> Result<Self::Out, Self::Error> {
        Ok(())
    }
}

impl<'de> DictionaryVisitor<'de> for Members<'_, State> {
    type Out = ();
    type Error = Infallible;

    fn entry(&mut self, key: &'de KeyRef) -> Result<impl EntryVisitor<'de>, Self::Error> {
        Ok(match key.as_str() {
            "limit" => Some(Parameters(&mut self.0.limit)),
            "remaining" => Some(Parameters(&mut self.0.remaining)),
            "reset" => Some(Parameters(&mut self.0.reset)),
            _ => None,
        })
    }

    fn finish(self) -> Result<Self::Out, Self::Error> {
        Ok(())
    }
}

impl<'de> EntryVisitor<'de> for Parameters<'_, Number> {
    type Error = Infallible;

    fn item(self) -> Result<impl ItemVisitor<'de>, Self::Error> {
        Ok(self)
    }

    fn inner_list(self) -> Result<impl InnerListVisitor<'de>, Self::Error> {
        *self.0 = Number::Bad;
        Ok(Ignored)
    }
}

impl<'de> ItemVisitor<'de> for Parameters<'_, Number> {
    type Out = ();
    type Error = Infallible;

    fn bare_item(
        self,
        item: BareItemFromInput<'de>,
    ) -> Result<impl ParameterVisitor<'de, Out = Self::Out>, Self::Error> {
        // The last of a repeated key counts (RFC 9651 section 3.2).
        *self.0 = Number::of(&item);
        Ok(Ignored)
    }
}

fn text(item: BareItemFromInput<'_>) -> Option<Cow<'_, str>> {
    match item {
        BareItemFromInput::String(Cow::Borrowed(text)) => Some(Cow::Borrowed(text.as_str())),
        BareItemFromInput::String(Cow::Owned(text)) => Some(Cow::Owned(text.into())),
        _ => None,
    }
}
