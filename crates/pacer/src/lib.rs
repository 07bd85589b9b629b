//! When the next packet may leave (RFC 9002, 7.7).
//!
//! [`Pacer`] spreads packets over time at a rate that its caller names in every call, and allows bursts, so that
//! a caller who wakes late, or who sends several datagrams in one call, still holds the rate. It has no clock.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(any(test, feature = "fuzzing"))]
extern crate alloc;
#[cfg(any(test, feature = "fuzzing"))]
extern crate std; // for the code that `arbitrary` derives

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod pacer;

pub use pacer::{BURST, BURST_DATAGRAMS, Pacer};
