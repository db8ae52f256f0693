//! Examples of the documentation that need a client the main package does without.

#[cfg(doctest)]
#[doc = include_str!("../../src/client/reqwest.md")]
struct Reqwest;
