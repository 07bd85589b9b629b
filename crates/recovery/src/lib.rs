//! Ledger of sent packets, RTT, loss detection, episodes.
//!
//! The [`Ledger`] remembers every packet in flight, learns from acknowledgements and timers what became
//! of it, and tells its owner: each packet is [`Outcome::Acked`], or [`Outcome::Lost`] and then either
//! [`Outcome::Late`] (it arrived after all) or [`Outcome::Gone`]. It also says what congestion control
//! must know: when an episode of losses began, and whether it ended as real or as spurious
//! ([`EpisodeChange`]). It follows RFC 9002, sections 5 and 6, and RFC 8985; `docs/undo.md` describes the
//! episodes and `docs/deviations.md` lists every rule of those documents that is not followed.
//!
//! ```
//! use core::time::Duration;
//! use stayfast_recovery::{Config, Ledger, Outcome};
//! use stayfast_units::{PacketNumber, Time};
//!
//! let mut ledger = Ledger::new(Config::default());
//! ledger.sent(PacketNumber(0), Time::ZERO, 1200, true, false, "a record").unwrap();
//!
//! let now = Time::from_millis(20);
//! let ranges = [(PacketNumber(0), PacketNumber(0))];
//! let report = ledger
//!     .acknowledge(now, PacketNumber(0), Duration::ZERO, ranges.into_iter(), &mut |outcome, sent| {
//!         assert_eq!((outcome, sent.carried), (Outcome::Acked, "a record"));
//!     })
//!     .unwrap();
//! assert_eq!(report.rtt, Some(Duration::from_millis(20)));
//! assert_eq!(ledger.in_flight(), 0);
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
// What `arbitrary` derives names it.
#[cfg(any(test, feature = "fuzzing"))]
extern crate std;

mod delivery;
mod detect;
mod episode;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod ledger;
#[cfg(any(test, feature = "mutants"))]
mod mutant;
mod persistent;
mod probe;
mod report;
mod ring;
mod rtt;
#[cfg(test)]
mod tests;

pub use delivery::RateSample;
pub use ledger::{Config, Ledger};
#[cfg(any(test, feature = "mutants"))]
pub use mutant::Mutant;
pub use report::{Bogus, Deadline, EpisodeChange, Full, Outcome, Report, Stats, Timeout};
pub use ring::Sent;
pub use rtt::Rtt;
