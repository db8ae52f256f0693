use http::{Extensions, HeaderMap, Request, Response, StatusCode};

/// A response whose status and headers can be read.
///
/// Implemented for [`http::Response`]. Implement it for the response type of another client; for a type that is not yours, map it to
/// an `http::Response` first, as `reqwest::Response` can with `map_response(http::Response::from)`.
pub trait ResponseHead {
    /// The status.
    fn status(&self) -> StatusCode;

    /// The header fields.
    fn headers(&self) -> &HeaderMap;

    /// Where [`Pacing`](crate::Pacing) is put. `None`, the default, leaves it out.
    fn extensions_mut(&mut self) -> Option<&mut Extensions> {
        None
    }
}

impl<B> ResponseHead for Response<B> {
    fn status(&self) -> StatusCode {
        self.status()
    }

    fn headers(&self) -> &HeaderMap {
        self.headers()
    }

    fn extensions_mut(&mut self) -> Option<&mut Extensions> {
        Some(self.extensions_mut())
    }
}

/// A request that can be named in the audit trail.
///
/// Implemented for [`http::Request`]. All methods have a default that names nothing, so an empty implementation works.
pub trait RequestHead {
    /// The method.
    fn method(&self) -> &str {
        ""
    }

    /// The scheme, such as `https`.
    fn scheme(&self) -> &str {
        ""
    }

    /// The host, without port and user information.
    fn host(&self) -> &str {
        ""
    }

    /// The port, if the request names one.
    fn port(&self) -> Option<u16> {
        None
    }

    /// The path, without the query.
    fn path(&self) -> &str {
        ""
    }

    /// The header fields, for functions that say what a request costs. They are never recorded.
    fn headers(&self) -> Option<&HeaderMap> {
        None
    }

    /// Where a [`Cost`](crate::Cost) or a [`Deadline`](crate::Deadline) may be.
    fn extensions(&self) -> Option<&Extensions> {
        None
    }
}

impl<B> RequestHead for Request<B> {
    fn method(&self) -> &str {
        self.method().as_str()
    }

    fn scheme(&self) -> &str {
        self.uri().scheme_str().unwrap_or_default()
    }

    fn host(&self) -> &str {
        self.uri().host().unwrap_or_default()
    }

    fn port(&self) -> Option<u16> {
        self.uri().port_u16()
    }

    fn path(&self) -> &str {
        self.uri().path()
    }

    fn headers(&self) -> Option<&HeaderMap> {
        Some(self.headers())
    }

    fn extensions(&self) -> Option<&Extensions> {
        Some(self.extensions())
    }
}
