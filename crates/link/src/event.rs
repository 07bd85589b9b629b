use alloc::sync::Arc;
use core::time::Duration;
use stayfast_frame::Refusal;
use stayfast_store::Level;
use stayfast_units::{Lineage, RecordNumber, Time};

/// Something the owner of a machine may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// All records of `stream` below `next` are stored at the receiver; the outbox is told to let them go.
    Stored {
        /// The stream.
        stream: Arc<str>,
        /// The first record not stored yet.
        next: RecordNumber,
    },
    /// All records below `next` are in the receiver's memory. Frees nothing.
    Heard {
        /// The stream.
        stream: Arc<str>,
        /// The first record not heard yet.
        next: RecordNumber,
    },
    /// The receiver stores less durably than this sender requires, so nothing is let go.
    TooWeak {
        /// The stream.
        stream: Arc<str>,
        /// What the receiver offers.
        level: Level,
    },
    /// The receiver holds other records under these numbers: this store was restored from an old copy, or it
    /// has a clone. The stream stands still until a person decides.
    Fenced {
        /// The stream.
        stream: Arc<str>,
        /// The number at which the histories part.
        number: RecordNumber,
        /// The lineage that the receiver has there.
        theirs: Lineage,
        /// The lineage that this store has there.
        ours: Lineage,
    },
    /// The receiver does not take the stream or the record.
    Refused {
        /// The stream.
        stream: Arc<str>,
        /// The record.
        number: RecordNumber,
        /// Why.
        reason: Refusal,
    },
    /// The receiver's durable cursor lies below what it had reported as stored: it was restored from an old copy.
    /// The stream stands still; the records between are gone from this store.
    Rollback {
        /// The stream.
        stream: Arc<str>,
        /// Where the receiver stands now.
        theirs: RecordNumber,
        /// What it had reported.
        ours: RecordNumber,
    },
    /// A store of this link failed in a way that only a new process can mend: nothing is read, delivered or trimmed any
    /// more. What is not STORED goes on in the next run.
    Poisoned,
    /// Nobody answers at the known addresses: look the peer's name up again.
    Resolve,
    /// Another run of the peer has taken over; what was not STORED goes again.
    RunChanged,
    /// The peer was heard from a new address.
    Address(core::net::SocketAddr),
}

/// Why a machine wants to be woken. Every deadline has one name and one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Deadline {
    /// The ledger decides whether packets are lost (RFC 9002, 6.1.2).
    Loss,
    /// The probe timeout (RFC 9002, 6.2).
    Probe,
    /// A lost packet can no longer be late.
    Gone,
    /// An acknowledgement has waited long enough.
    Ack,
    /// The pacer lets the next packet go.
    Pace,
    /// Records are not STORED yet: ask.
    Ask,
    /// STORED news has waited a quarter of a round trip.
    News,
    /// A restarted receiver says that it is back.
    Wake,
    /// A refused stream, or a store operation that failed, is tried again.
    Retry,
}

/// How a peer is doing, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// When the last authenticated packet came.
    pub last_heard: Option<Time>,
    /// When the oldest packet still unanswered was sent, if any is.
    pub waiting_since: Option<Time>,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Congestion window, bytes.
    pub window: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Packets sent, those that carried records again included.
    pub packets_sent: u64,
    /// Packets received and opened.
    pub packets_received: u64,
    /// Body bytes sent for the first time.
    pub bytes_sent: u64,
    /// Body bytes sent again.
    pub bytes_resent: u64,
    /// Packets declared lost.
    pub lost: u64,
    /// Of those, acknowledged after all.
    pub late: u64,
    /// Congestion episodes begun.
    pub episodes: u64,
    /// Of those, undone.
    pub undos: u64,
    /// Whether packets to the peer are marked for ECN.
    pub ecn: crate::Ecn,
    /// Packets that arrived there with a mark of congestion (CE).
    pub marks: u64,
    /// Where the peer is reached.
    pub address: Option<core::net::SocketAddr>,
    /// UDP payload of a full packet on the way there, bytes.
    pub datagram: u16,
    /// The sender's streams.
    pub streams: alloc::vec::Vec<StreamStatus>,
}

/// How one outgoing stream is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamStatus {
    /// Its name.
    pub name: Arc<str>,
    /// First record not stored at the receiver.
    pub stored: RecordNumber,
    /// First record not in the receiver's memory.
    pub heard: RecordNumber,
    /// First record not sent at all.
    pub sent: RecordNumber,
    /// First number not given to a record.
    pub next: RecordNumber,
    /// The stream stands still until a person decides.
    pub halted: bool,
}
