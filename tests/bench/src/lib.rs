//! Benchmarks: what a record costs, here and with quinn.
#![forbid(unsafe_code)]

pub mod load;
pub mod memory;
pub mod ours;
pub mod plan;
pub mod quic;
pub mod records;
pub mod report;
pub mod usage;

pub use load::Failure;
