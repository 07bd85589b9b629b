//! Numbers with units.
//!
//! Every quantity that crosses a crate has its type here: moments on a clock that can be stored and
//! printed ([`Time`]), the numbers of packets, records and streams, the random names of runs,
//! lineages and stores, and rates ([`Rate`]). Nothing else lives here.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod name;
mod number;
mod rate;
mod time;

pub use name::{Lineage, RunId, StoreId};
pub use number::{PacketNumber, RecordNumber, StreamId};
pub use rate::Rate;
pub use time::Time;
