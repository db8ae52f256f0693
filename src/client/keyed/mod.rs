//! The layer with a budget for each key: [`KeyedThrottleLayer`], [`KeyedThrottle`] and its [`KeyedResponseFuture`].
//!
//! The key is in the request, which `poll_ready` does not see. So `poll_ready` only asks the inner service, and the wait for the key
//! happens in the response future: a request that waits for its key is in nobody's way, also behind a `Buffer`. Its place in line is
//! that of the `call`.
//!
//! What follows from that: backpressure comes from the inner service only, so a caller that does not await its responses can
//! put any number of requests in line ([`max_queue`](crate::KeyedBuilder::max_queue) bounds them); and a waiting request holds an inner
//! service that was ready, so where that is bounded (a `ConcurrencyLimit`, say) put the bound outside this layer or have it count
//! in `call`.

mod future;
mod host;
mod key;
mod layer;
mod service;

pub use future::KeyedResponseFuture;
pub use host::Host;
pub use key::{By, ByHeader, ByHost, HeaderKey, KeyOf};
pub use layer::KeyedThrottleLayer;
pub use service::KeyedThrottle;
