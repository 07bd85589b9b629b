//! The transports, each as a pair of machines on a simulated path.

mod ours;
pub(crate) mod quinn;
mod tcp;

pub use ours::Stayfast;
pub use quinn::Quinn;
pub use tcp::Tcp;

use crate::plan::{Cell, Load};
use serde::{Deserialize, Serialize};
use stayfast_sim::{NodeId, PathId, World};
use stayfast_units::Time;
use std::fmt;

/// A transport that can be put on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Ours, with CUBIC.
    Stayfast,
    /// quinn as it is released.
    Quinn,
    /// quinn with a packet threshold of 1,000 and a time threshold of 2 round trips.
    QuinnWide,
    /// quinn with its BBR.
    QuinnBbr,
    /// Kernel TCP with CUBIC; in the simulator its model, for drains only.
    Tcp,
    /// Kernel TCP with BBR; on real paths only.
    TcpBbr,
}

impl Kind {
    /// All of them, in the order of the table.
    pub const ALL: [Kind; 6] = [Kind::Stayfast, Kind::Quinn, Kind::QuinnWide, Kind::QuinnBbr, Kind::Tcp, Kind::TcpBbr];

    /// The name, as plans have it.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Stayfast => "stayfast",
            Kind::Quinn => "quinn",
            Kind::QuinnWide => "quinn-wide",
            Kind::QuinnBbr => "quinn-bbr",
            Kind::Tcp => "tcp",
            Kind::TcpBbr => "tcp-bbr",
        }
    }

    /// Whether it can carry this load in the simulator.
    pub fn carries(self, load: Load) -> bool {
        match self {
            Kind::Tcp => load == Load::Drain,
            Kind::TcpBbr => false,
            _ => true,
        }
    }

    /// Puts it on the path.
    ///
    /// # Panics
    /// It is not one that the simulator [`carries`](Kind::carries).
    pub fn place(self, place: &mut Place<'_>, cell: &Cell, records: u64) -> Box<dyn Flow> {
        match self {
            Kind::Stayfast => Box::new(Stayfast::new(place, cell, records)),
            Kind::Quinn | Kind::QuinnWide | Kind::QuinnBbr => Box::new(Quinn::new(place, cell, records, self)),
            Kind::Tcp => Box::new(Tcp::new(place, cell)),
            Kind::TcpBbr => unreachable!("there is no model of it"),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Kind, String> {
        let names = Kind::ALL.map(Kind::name).join(", ");
        Kind::ALL.into_iter().find(|kind| kind.name() == text).ok_or(format!("no transport {text}: there are {names}"))
    }
}

/// Where a flow goes into a world.
pub struct Place<'a> {
    /// The world.
    pub world: &'a mut World,
    /// The way of the data.
    pub there: &'a [PathId],
    /// The way of the answers.
    pub back: &'a [PathId],
    /// The number of the flow in this world: its addresses come from it.
    pub flow: u8,
    /// Where its chance comes from.
    pub seed: u64,
}

/// A transport under way.
pub trait Flow {
    /// The application has so many more records to send.
    fn offer(&mut self, world: &mut World, records: u64);

    /// How many records the receiving application has.
    fn taken(&self, world: &World) -> u64;

    /// How many it had at what times, in order of time; empty for a transport that cannot say.
    fn log<'a>(&self, world: &'a World) -> &'a [(Time, u64)];

    /// The machine that sends.
    fn sender(&self) -> NodeId;

    /// How the sender is doing.
    fn sample(&self, world: &World) -> Sample;
}

/// A sender's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Sample {
    /// Congestion window, bytes.
    pub window: u64,
    /// Bytes in flight, where the transport tells.
    pub in_flight: u64,
    /// Smoothed round-trip time, microseconds.
    pub rtt_us: u64,
    /// Packets declared lost so far.
    pub lost: u64,
    /// Of those, acknowledged after all, where the transport knows.
    pub late: u64,
    /// Congestion events so far; ours: episodes.
    pub episodes: u64,
    /// Congestion events that were undone so far.
    pub undone: u64,
    /// Bytes sent again so far; for a transport that does not count them, the bytes it declared lost.
    pub resent: u64,
}
