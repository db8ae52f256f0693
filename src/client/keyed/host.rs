use std::fmt;

use crate::head::RequestHead;

/// The server a request goes to, written in one way only: lower case, without a trailing dot, and with the port only where it is not the
/// scheme's own.
///
/// ```
/// use tower_throttle::client::keyed::Host;
///
/// let host = |uri| Host::of(&http::Request::get(uri).body(()).unwrap());
/// assert_eq!(host("https://API.example.com/x"), host("https://api.example.com.:443/y"));
/// assert_eq!(host("http://api.example.com:8080/").as_str(), "api.example.com:8080");
/// assert_eq!(host("/no/authority"), Host::UNKNOWN);
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Host(Option<Box<str>>);

impl Host {
    /// The key of all requests that name no server, such as those with a relative URI.
    pub const UNKNOWN: Self = Self(None);

    /// Where `request` goes.
    #[must_use]
    pub fn of(request: &impl RequestHead) -> Self {
        let host = request.host();
        let host = host.strip_suffix('.').unwrap_or(host);
        if host.is_empty() {
            return Self::UNKNOWN;
        }
        let usual = match request.scheme() {
            scheme if is(scheme, "http") || is(scheme, "ws") => Some(80),
            scheme if is(scheme, "https") || is(scheme, "wss") => Some(443),
            _ => None,
        };
        let mut host = host.to_ascii_lowercase();
        if let Some(port) = request.port().filter(|&port| Some(port) != usual) {
            host = format!("{host}:{port}");
        }
        Self(Some(host.into_boxed_str()))
    }

    /// The host, and the port if it is not the usual one; empty for [`UNKNOWN`](Self::UNKNOWN).
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }
}

fn is(scheme: &str, name: &str) -> bool {
    scheme.eq_ignore_ascii_case(name)
}

/// As [`Host::of`] would give for a URI: `host` or `host:port`, the empty text for [`Host::UNKNOWN`]. No port is the usual one here.
impl From<&str> for Host {
    fn from(authority: &str) -> Self {
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                (host, Some(port))
            }
            _ => (authority, None),
        };
        let host = host.strip_suffix('.').unwrap_or(host);
        if host.is_empty() {
            return Self::UNKNOWN;
        }
        let mut text = host.to_ascii_lowercase();
        if let Some(port) = port.filter(|port| !port.is_empty()) {
            text = format!("{text}:{port}");
        }
        Self(Some(text.into_boxed_str()))
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Host({:?})", self.as_str())
    }
}
