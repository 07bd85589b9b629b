//! How large a datagram the path takes (RFC 8899).
//!
//! [`Search`] walks down a [`LADDER`] of sizes with probes, each a packet of its own that carries nothing anybody would
//! miss, and keeps the largest size that was acknowledged. When packets of that size stop arriving (a black hole) it
//! falls. It has no clock and sends nothing itself; `docs/pmtud.md` has the rules and the calculations behind them.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(any(test, feature = "fuzzing"))]
extern crate alloc;
#[cfg(any(test, feature = "fuzzing"))]
extern crate std; // for the code that `arbitrary` derives

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod mutant;
mod search;
#[cfg(test)]
mod tests;

pub use search::{BASE, CHECKS, LADDER, MAX_IPV4, MAX_IPV6, RETRY, RETRY_LATER, ROUNDS, Search};
