//! Whole-system tests: simulator, processes, sockets.
//!
//! The library holds what the tests share: a [`Machine`] that runs the real protocol machines over the real
//! sessions and the model of a store inside the simulator, and [`Pair`], two of them on a path.
#![forbid(unsafe_code)]

mod machine;
mod pair;
pub mod schedule;

pub use machine::{Entropy, Machine, Part};
pub use pair::{CLONE, Pair, RECEIVER, SENDER};

/// The examples of the README compile.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
