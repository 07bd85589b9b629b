//! A deterministic network in virtual time, as docs/sim.md has it.
//!
//! A [`World`] holds machines (everything that implements [`Node`]) and the [`Path`]s between them. A path is a
//! chain of [`Element`]s: loss, duplication, jitter, delay, a bottleneck with its queue, a switch that cuts the
//! line. Time is a number, so a hundred seconds of traffic take a fraction of one; all chance comes from the
//! seed, so the same seed gives the same bytes at the same nanoseconds on every machine.
//!
//! A path needs no world: [`Path::push`], [`Path::pop`] and [`Path::next_timeout`] also serve a proxy that
//! spoils real datagrams in real time.
//!
//! ```
//! use core::net::SocketAddr;
//! use core::time::Duration;
//! use stayfast_sim::{Datagram, Node, Path, Poll, World};
//! use stayfast_units::Time;
//!
//! /// Sends what it is given back to where it came from.
//! #[derive(Default)]
//! struct Echo {
//!     reply: Option<(SocketAddr, Vec<u8>)>,
//!     heard: usize,
//! }
//!
//! impl Node for Echo {
//!     fn handle(&mut self, _now: Time, datagram: &mut Datagram) {
//!         self.heard += 1;
//!         self.reply = Some((datagram.from, datagram.bytes.clone()));
//!     }
//!
//!     fn poll(&mut self, _now: Time, out: &mut Datagram) -> Poll {
//!         match self.reply.take() {
//!             None => Poll::Idle,
//!             Some((to, bytes)) => {
//!                 out.to = to;
//!                 out.bytes.extend_from_slice(&bytes);
//!                 Poll::Transmit
//!             }
//!         }
//!     }
//! }
//!
//! let here: SocketAddr = "10.0.0.1:1".parse().unwrap();
//! let there: SocketAddr = "10.0.0.2:1".parse().unwrap();
//! let mut world = World::new(7);
//! let a = world.add("a", here, Echo { reply: Some((there, b"hello".to_vec())), heard: 0 });
//! let b = world.add("b", there, Echo::default());
//! world.connect(a, b, Path::new().delay(Duration::from_millis(10)));
//! world.connect(b, a, Path::new().delay(Duration::from_millis(10)));
//!
//! world.run_until(Time::from_millis(95));
//! assert_eq!(world.node(a).map(|n| n.heard), Some(4));
//! assert_eq!(world.node(b).map(|n| n.heard), Some(5));
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(test, feature = "fuzzing"))]
extern crate std;

mod account;
mod chance;
mod datagram;
mod digest;
mod ecn;
mod element;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod gilbert;
mod hold;
mod path;
mod police;
mod profile;
mod queue;
mod server;
mod spec;
mod stage;
mod tcp;
mod trace;
mod world;

pub use account::Stats;
pub use chance::Probability;
pub use datagram::{Datagram, ETHERNET};
pub use digest::Digest;
pub use ecn::Ecn;
pub use element::{Bleach, Deviation, Element, Limit};
pub use path::{HELD_MAX, Path};
pub use profile::Profile;
pub use queue::{CoDel, Discipline, Red};
pub use spec::{Aqm, PathError, PathSpec, Queue};
pub use tcp::{TCP_PAYLOAD, TcpConfig, TcpControl, TcpFlow, TcpReceiver, TcpSender, TcpState};
pub use trace::{ROWS_MAX, Trace};
pub use world::{Event, Handle, Node, NodeId, PathId, Poll, World};
