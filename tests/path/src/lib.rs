//! The simulator's paths between real sockets.
//!
//! Two network namespaces have a TUN device each; between them an [`Emulator`] moves IP packets through the
//! elements of [`stayfast_sim::Path`], in real time, so that a path in words means the same here and in the simulator.
//! What it becomes under way is a [`Schedule`].
//! Whatever a thread does in a [`Namespace`] it does with real sockets and the kernel's own TCP.
//!
//! It needs Linux, `/dev/net/tun`, and root or an unprivileged user namespace: [`isolate`] says what is missing.
#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

mod emulator;
mod failure;
mod lateness;
mod namespace;
mod packet;
pub mod probe;
mod schedule;

pub use emulator::{Emulator, Traffic};
pub use failure::Failure;
pub use lateness::Lateness;
pub use namespace::{MTU, Namespace, isolate};
pub use schedule::Schedule;
pub use tun_rs::SyncDevice;
