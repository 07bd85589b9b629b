use crate::delivery::RateSample;
use core::fmt;
use core::time::Duration;
use stayfast_units::{PacketNumber, Time};

/// What has become known of a packet. Every packet ends as exactly one of `Acked`, `Late` and `Gone`,
/// and is `Lost` once before the latter two (unless the ledger was told to forget it).
///
/// ```
/// use stayfast_recovery::Outcome;
/// assert_ne!(Outcome::Late, Outcome::Gone);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It arrived, and had not been given up.
    Acked,
    /// It is given up for now: send again what it carried.
    Lost,
    /// It was lost and arrived after all: what it carried and has not been sent again need not be.
    Late,
    /// It was lost and no acknowledgement will be waited for any longer.
    Gone,
}

/// What happened to the episode of losses (`docs/undo.md`).
///
/// ```
/// use stayfast_recovery::EpisodeChange;
/// assert_eq!(EpisodeChange::default(), EpisodeChange::None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EpisodeChange {
    /// Nothing.
    #[default]
    None,
    /// One began: save the state of congestion control, before the loss is told to it.
    Began,
    /// It ended, and every one of its losses was late: return to the saved state.
    Spurious,
    /// It ended, and at least one of its losses was real: drop the saved state.
    Real,
}

/// What one acknowledgement or timeout has shown, for congestion control.
///
/// ```
/// use stayfast_recovery::{EpisodeChange, Report};
/// for change in Report::default().episode {
///     assert_eq!(change, EpisodeChange::None);
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Bytes newly known to have arrived, those of late packets included.
    pub acked_bytes: u64,
    /// The part of `acked_bytes` that had been given up as lost.
    pub late_bytes: u64,
    /// When the newest of the newly acknowledged packets was sent.
    pub newest_sent: Option<Time>,
    /// A new sample of the round-trip time, with the peer's delay still in it.
    pub rtt: Option<Duration>,
    /// Bytes newly given up as lost, those of probes of the path's size not counted.
    pub lost_bytes: u64,
    /// When the newest of these packets was sent.
    pub largest_lost_sent: Option<Time>,
    /// The changes of the episode, in their order: first how one ended, then whether another began.
    pub episode: [EpisodeChange; 2],
    /// Persistent congestion was established (RFC 9002, 7.6), by packets that are gone. No episode begins in the
    /// same report, so it does not matter which is told first.
    pub persistent: bool,
    /// Bytes in flight before this acknowledgement or timeout.
    pub in_flight_before: u64,
    /// A sample of the delivery rate.
    pub rate: Option<RateSample>,
    /// The newest of the newly acknowledged packets was sent while the sender had no more to send, so the
    /// window was not full (RFC 9002, 7.8).
    pub limited: bool,
}

impl Report {
    /// Notes how an episode ended. Only one can end in a report: a next one begins last.
    pub(crate) fn ended(&mut self, change: EpisodeChange) {
        if change != EpisodeChange::None {
            self.episode[0] = change;
        }
    }

    /// Notes that an episode began.
    pub(crate) fn began(&mut self, change: EpisodeChange) {
        self.episode[1] = change;
    }
}

/// Why a timeout must be handled: the name of the deadline that comes next.
///
/// ```
/// use stayfast_recovery::Deadline;
/// assert_ne!(Deadline::Loss, Deadline::Gone);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// A packet will have been overtaken for too long (RFC 9002, 6.1.2).
    Loss,
    /// The probe timeout (RFC 9002, 6.2).
    Probe,
    /// The wait for a late acknowledgement of a lost packet ends.
    Gone,
}

/// What a timeout asks of its owner.
///
/// ```
/// use stayfast_recovery::Timeout;
/// assert_ne!(Timeout::None, Timeout::Probe { in_a_row: 1 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeout {
    /// Nothing to send.
    None,
    /// Packets were given up as lost: what they carried waits to be sent again.
    LossDetected,
    /// Send one or two ack-eliciting packets at once, whatever the window says (RFC 9002, 6.2.4): new data
    /// if there is any, else what the oldest packet in flight carried.
    Probe {
        /// Probe timeouts since the last acknowledgement, this one included.
        in_a_row: u32,
    },
}

/// The ledger has no place for the packet: its ring is full, or the number is not above every earlier one.
///
/// ```
/// use stayfast_recovery::Full;
/// assert!(Full.to_string().contains("full"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the ring of sent packets is full, or the packet number went back")
    }
}

impl core::error::Error for Full {}

/// The peer acknowledged a packet that was never sent: a violation of the protocol (RFC 9000, 13.1).
/// Nothing was changed.
///
/// ```
/// use stayfast_recovery::Bogus;
/// use stayfast_units::PacketNumber;
/// let bogus = Bogus { acked: PacketNumber(9), used: Some(PacketNumber(7)) };
/// assert_eq!(bogus.to_string(), "packet 9 was acknowledged, but the newest sent is 7");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bogus {
    /// The number that was acknowledged.
    pub acked: PacketNumber,
    /// The largest number the ledger was told of, by `sent` or `sent_unrecorded`.
    pub used: Option<PacketNumber>,
}

impl fmt::Display for Bogus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.used {
            Some(used) => write!(f, "packet {} was acknowledged, but the newest sent is {used}", self.acked),
            None => write!(f, "packet {} was acknowledged, but none was sent", self.acked),
        }
    }
}

impl core::error::Error for Bogus {}

/// Counts since the ledger was made.
///
/// ```
/// use stayfast_recovery::Stats;
/// assert_eq!(Stats::default().lost, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets recorded, those that never left included.
    pub sent: u64,
    /// Packets acknowledged before they were given up.
    pub acked: u64,
    /// Packets given up as lost, probes of the path's size among them; some are late, the others gone.
    pub lost: u64,
    /// Lost packets that arrived after all.
    pub late: u64,
    /// Lost packets that were never acknowledged.
    pub gone: u64,
    /// Packets that never left, because sending failed here.
    pub unsent: u64,
    /// Packets in flight that were forgotten by `abandon`.
    pub abandoned: u64,
    /// Episodes begun.
    pub episodes: u64,
    /// Episodes that ended as spurious.
    pub spurious: u64,
    /// Probe timeouts.
    pub probes: u64,
    /// Times persistent congestion was established.
    pub persistent: u64,
}
