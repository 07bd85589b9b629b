//! Operations, oracles and checks, for tests and fuzz targets.
//!
//! Each module has an operation type, a naive model that is obviously right, and a `check` that runs
//! any sequence of operations on both and panics where they differ.

pub mod range_set;
pub mod reassembler;
