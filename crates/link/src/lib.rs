//! The protocol machines.
//!
//! A [`Node`] holds the machines of all peers behind one socket. Per peer one machine owns the sessions, the
//! path, the packet numbers, the ledger, the congestion controller and the pacer; its two halves, the sender and
//! the receiver of a link, only exchange frames with it. Bytes, times and outcomes of store operations go in;
//! packets, store operations and events come out. Nothing here knows a clock, a socket or a lock, and a machine
//! may lose all its memory at any instant. `docs/link.md` tells the rules.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod acks;
mod carried;
mod config;
mod ecn;
mod event;
mod fate;
mod fill;
mod incoming;
mod moved;
mod node;
mod outgoing;
mod path;
mod pattern;
mod peer;
mod random;
mod receiver;
mod runs;
mod sender;
mod size;
mod transmit;

pub use config::Config;
pub use ecn::Ecn;
pub use event::{Deadline, Event, Status, StreamStatus};
pub use node::{Inbound, Node, Outbound, PeerId, Role};
pub use pattern::matches;
pub use transmit::Transmit;
