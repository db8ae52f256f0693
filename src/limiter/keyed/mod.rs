//! Many budgets: one for each host, account or API key, and perhaps one above them all.
//!
//! ```
//! use tower::ServiceBuilder;
//! use tower_throttle::{KeyedLimiter, KeyedThrottleLayer, Quota};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use http_body_util::Empty;
//! # use hyper::body::Bytes;
//! # use hyper_util::{client::legacy::Client, rt::TokioExecutor};
//! let limiter = KeyedLimiter::new(Quota::per_second(2).burst(5))?;
//! let client = ServiceBuilder::new()
//!     .layer(KeyedThrottleLayer::by_host(limiter.clone()))
//!     .service(Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>());
//! # drop(client);
//! # Ok(())
//! # }
//! ```
//!
//! Each key has a limiter of its own, with line, pauses, server budgets and learnt rate, as if by [`Limiter`]: what is
//! promised there holds for each key. Waiting for one key holds no other up.
//!
//! # The global budget
//!
//! With [`global`](KeyedBuilder::global) a caller first waits for its key, and has nothing of the global budget meanwhile. When its turn
//! has come there, it joins the global line; when that lets it go, one is taken from each, under both locks, in one instant. If the
//! key's turn has been lost in between (by a pause, say), the global place is given up at once. A caller that does not wait takes from
//! both or from neither. Costs apply to both, so a cost above the global burst is refused.
//!
//! # Pauses
//!
//! What a server says holds for the key of the request it answers. If it says that it concerns everybody
//! ([`Scope::Global`](crate::feedback::Scope::Global), as by `X-RateLimit-Global`; a classifier may say so, too), all keys pause, those
//! to come included, and the global limiter learns from it instead of the key's. [`penalize_all`](KeyedLimiter::penalize_all) does the
//! same by hand. A pause for all is kept in one place and looked at before any key lets something out. At its end each key sends one
//! request, alone.
//!
//! # What is forgotten, and when
//!
//! A key is forgotten only when nothing tells it from a new one: its bucket is full, nobody waits, nothing is held or under way, no
//! pause, no budget of the server's (these are remembered for a minute after their reset), nothing learnt. What was learnt is worth
//! nothing a day after the key was last used ([`Learned::MAX_AGE`](crate::Learned::MAX_AGE)). Only its counters begin anew, and the
//! numbers of its callers go on from a higher one.
//!
//! There is no background task: each new key has two others looked at whose buckets have been full for half a second, and
//! [`sweep`](KeyedLimiter::sweep) looks at all. So with a steady stream of new keys those of one refill time and that half second are
//! tracked, and hardly more. A key that had a limiter of its own is looked at again up to 250 ms after it has come to rest.
//!
//! [`max_keys`](KeyedBuilder::max_keys) is never exceeded. When so many are tracked and none can be forgotten, what happens is said by
//! [`Overflow`], and shows.
//!
//! # What a key costs
//!
//! A key at rest is kept in 40 bytes besides the key itself, its place in a heap and the spare room of a hash table: 85 to 120 bytes in all
//! with keys of 8 bytes, so at most 120 MB for a million. It gets a whole limiter, 1,650 bytes in all, while callers wait for
//! it, a request through the layer is under way, or the server has said something; if it is not used it is back at rest soon after.
//! Looking a key up hashes it once, with the standard library's keyed hash, so that keys chosen by others cannot be made to collide.
//! `cargo bench --bench keyed` measures these, and the time of a look-up beside governor's.
//!
//! # Records
//!
//! The limiter of a key has a name of its own; see [`label`](KeyedBuilder::label). The global limiter records what it lets through and
//! refuses under its own name, so each of the two trails is complete. A caller that was granted by its key and refused by the global
//! limiter is `cancelled` in the key's.
//!
//! [`Limiter`]: crate::Limiter

mod acquire;
mod builder;
mod core;
mod handle;
mod overflow;
mod pass;
mod pause;
mod permit;
mod plans;
mod snapshot;
mod table;
mod wider;

pub use acquire::KeyedAcquire;
pub use builder::KeyedBuilder;
pub use handle::KeyedLimiter;
pub use overflow::Overflow;
pub use permit::KeyedPermit;
pub use snapshot::KeyedSnapshot;

pub(crate) use pass::{Pass, Passed, Stopped};
pub(crate) use permit::Above;
pub(crate) use wider::Wider;
