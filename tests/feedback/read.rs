//! Reading one response head.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use tower_throttle::feedback::{Budget, Fault, Feedback, Reader};

/// What these fields say. Without a `Date` among them the clock stands at 11:00:00 on 3 June 2019.
pub(crate) fn answer(status: u16, fields: &[(&str, &str)]) -> Feedback {
    answer_in(&Reader::new(), status, fields)
}

pub(crate) fn answer_in(reader: &Reader, status: u16, fields: &[(&str, &str)]) -> Feedback {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_559_559_600);
    reader.read(StatusCode::from_u16(status).unwrap(), &head(fields), now)
}

pub(crate) fn head(fields: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    headers
}

/// The one budget of an answer.
#[track_caller]
pub(crate) fn only_budget(feedback: &Feedback) -> &Budget {
    let [budget] = &*feedback.budgets else {
        panic!("{feedback:?}")
    };
    budget
}

/// The one fault of an answer, and the field it is in.
#[track_caller]
pub(crate) fn only_fault(feedback: &Feedback) -> (&str, Fault) {
    let [malformed] = &*feedback.malformed else {
        panic!("{feedback:?}")
    };
    assert_eq!(feedback.malformed_count, 1, "{feedback:?}");
    (&malformed.field, malformed.why)
}
