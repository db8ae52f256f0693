use std::fmt;

use http::{HeaderName, Request};

use super::host::Host;
use crate::head::RequestHead;

/// Finds the key of a request; see [`KeyedThrottleLayer`](super::KeyedThrottleLayer).
pub trait KeyOf<Req, K> {
    /// The key of `request`.
    fn key_of(&self, request: &Req) -> K;
}

/// The server a request goes to is its key.
#[derive(Debug, Clone, Copy, Default)]
pub struct ByHost;

/// The value of a header field is the key of a request.
#[derive(Debug, Clone)]
pub struct ByHeader(pub(super) HeaderName);

/// A function says what the key of a request is.
#[derive(Clone)]
pub struct By<F>(pub(super) F);

/// The value of the field that [`ByHeader`] looks at, the first if there are several; all requests without it have one key.
///
/// It may be a secret, so it is not shown by `Debug`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct HeaderKey(Option<Box<[u8]>>);

impl HeaderKey {
    /// The key of all requests without the field.
    pub const ABSENT: Self = Self(None);

    /// The key of requests whose field has this value.
    pub fn new(value: impl AsRef<[u8]>) -> Self {
        Self(Some(value.as_ref().into()))
    }
}

impl<Req: RequestHead> KeyOf<Req, Host> for ByHost {
    fn key_of(&self, request: &Req) -> Host {
        Host::of(request)
    }
}

impl<B> KeyOf<Request<B>, HeaderKey> for ByHeader {
    fn key_of(&self, request: &Request<B>) -> HeaderKey {
        let value = request.headers().get(&self.0);
        HeaderKey(value.map(|value| value.as_bytes().into()))
    }
}

impl<Req, K, F: Fn(&Req) -> K> KeyOf<Req, K> for By<F> {
    fn key_of(&self, request: &Req) -> K {
        self.0(request)
    }
}

impl<F> fmt::Debug for By<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("By(..)")
    }
}

impl fmt::Debug for HeaderKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "HeaderKey(..)"
        } else {
            "HeaderKey(absent)"
        })
    }
}
