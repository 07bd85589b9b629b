//! The only sockets, clock and threads of the workspace (`docs/net.md`).
//!
//! A [`Driver`] runs one [`Node`](stayfast_link::Node): one thread for the links, which sleeps in the sockets
//! until the next deadline and never waits for a store; one thread per store; one that looks names up. What the
//! application does goes through a [`Handle`].
//!
//! ```
//! use std::time::Duration;
//! use stayfast_net::{Driver, PeerSpec, Settings, generate};
//! use stayfast_store::{Level, Memory};
//!
//! let (edge, hub) = (generate()?, generate()?);
//! let here = Settings { bind: vec!["127.0.0.1:0".parse()?], ..Settings::default() };
//!
//! // The hub takes what the edge sends, whatever the stream.
//! let allowed = PeerSpec { allow: Some(vec!["*".into()]), ..PeerSpec::new("edge", edge.public()) };
//! let receiver = Driver::spawn(&hub, here.clone(), vec![allowed], Some(Box::new(Memory::new(1))))?;
//!
//! let to = PeerSpec {
//!     hosts: vec![receiver.local_addresses()[0].to_string()],
//!     outbox: Some(Box::new(Memory::new(2))),
//!     ..PeerSpec::new("hub", hub.public())
//! };
//! let sender = Driver::spawn(&edge, here, vec![to], None)?;
//! let hub = sender.handle().find("hub").expect("it was given above");
//! sender.handle().append(hub, "orders", &[b"order 1"])?;      // durable, and on its way
//!
//! let pending = receiver.handle().next_delivery(Some(Duration::from_secs(30))).expect("it arrives");
//! assert_eq!(pending.delivery.run.bytes(), b"order 1");
//! pending.stored(Level::Power);                                // the application says so
//!
//! let progress = sender.handle().stored(hub, "orders");
//! progress.wait_until(|p| p.stored.0 == 1, Some(Duration::from_secs(30)))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod bell;
mod chores;
mod clock;
mod command;
mod driver;
mod entropy;
mod error;
mod gaps;
mod handle;
mod inbox;
mod outbox;
mod peer;
mod pending;
mod run;
mod sending;
mod settings;
mod shared;
mod socket;
mod status;
mod udp;
mod wait;

pub use driver::Driver;
pub use entropy::{OsEntropy, generate};
pub use error::{PutError, StartError};
pub use gaps::Gaps;
pub use handle::Handle;
pub use pending::PendingDelivery;
pub use settings::{Deliveries, PeerSpec, Settings};
pub use shared::{Missing, PeerRef, Progress, Trouble};
pub use socket::{Datagrams, Received, Socket};
pub use status::{Counters, Figures, PeerStatus};
pub use stayfast_link::Ecn;
pub use udp::Udp;
