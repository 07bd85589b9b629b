//! Sets of packet numbers and reassembly of records, bounded.
//!
//! [`RangeSet`] remembers which numbers have been seen, in any order and however late. [`Reassembler`]
//! puts the records of one stream in order from whole records, parts and holes that come in any
//! order, more than once, and overlapping. Both have limits that are refused with a typed error
//! and without a change of state, and neither allocates per packet once its buffers have grown.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(test, feature = "fuzzing"))]
extern crate std; // for the code that `arbitrary` derives

mod assembled;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod limits;
mod pool;
mod range_set;
mod reassembler;
mod run;

pub use assembled::Assembled;
pub use limits::{Limits, Refused, Taken};
pub use range_set::{Full, RangeSet};
pub use reassembler::Reassembler;
