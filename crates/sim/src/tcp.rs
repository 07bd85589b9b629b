//! Cross traffic: bulk TCP flows as machines of a [`World`](crate::World).
//!
//! The other traffic on a path, as it is on most of the Internet: TCP as Linux sends it. It is written after the RFCs
//! and knows nothing of this project's own congestion control, because it judges it.

mod cubic;
mod episode;
mod flow;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod gaps;
mod goodput;
mod hystart;
mod prr;
mod rack;
mod reaction;
mod receiver;
mod reno;
mod rtt;
mod scoreboard;
mod segment;
mod sender;
mod timers;
mod window;

pub use flow::TcpFlow;
pub use receiver::TcpReceiver;
pub use segment::TCP_PAYLOAD;
pub use sender::{TcpConfig, TcpSender, TcpState};
pub use window::TcpControl;

/// The largest window, and the receiver's, in segments: it bounds what both ends remember.
const WINDOW_MAX: u64 = 1 << 16;

/// A full segment with its headers, Ethernet's included.
const WIRE_SIZE: u64 = 1_514;
