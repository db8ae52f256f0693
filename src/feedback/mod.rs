//! stub
use std::time::{Duration, SystemTime};
/// .
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Feedback {
    /// .
    pub refused: bool,
    /// .
    pub hold: Option<Hold>,
    /// .
    pub budgets: Vec<Budget>,
    /// .
    pub malformed: Vec<Malformed>,
    /// .
    pub malformed_count: u32,
}
/// .
#[derive(Debug, Clone, PartialEq)]
pub struct Hold {
    /// .
    pub wait: Duration,
    /// .
    pub field: &'static str,
}
/// .
#[derive(Debug, Clone, PartialEq)]
pub struct Budget {
    /// .
    pub name: Option<Box<str>>,
    /// .
    pub limit: Option<u64>,
    /// .
    pub remaining: Option<u64>,
    /// .
    pub reset: Option<Duration>,
    /// .
    pub window: Option<Duration>,
    /// .
    pub unit: Unit,
}
/// .
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unit {
    /// .
    Requests,
}
/// .
#[derive(Debug, Clone, PartialEq)]
pub struct Malformed {
    /// .
    pub field: Box<str>,
    /// .
    pub why: u8,
}
/// .
pub fn read(_: http::StatusCode, _: &http::HeaderMap, _: SystemTime) -> Feedback {
    Feedback::default()
}
impl Feedback {
    /// .
    pub fn reset_on_refusal(&self) -> Option<Duration> {
        None
    }
}
