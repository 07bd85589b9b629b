//! Congestion controllers behind one trait.
//!
//! A [`Controller`] is told what was sent, acknowledged and lost, and answers with a window in bytes and
//! a rate to pace at. It knows no packets and no clock: which packets are lost, and whether they really
//! were, is for the ledger to say. `docs/congestion.md` tells the rules and where they deviate.
//!
//! All arithmetic gives the same bits on every machine: integers, the four operations on `f64`, and
//! `libm`.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(any(test, feature = "fuzzing"))]
extern crate std;

mod controller;
mod cubic;
mod curve;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod hystart;

pub use controller::{Acked, Controller, Signal, State};
pub use cubic::Cubic;
