use crate::{Ack, DecodeError, Records, varint};
use core::time::Duration;
use stayfast_units::{Lineage, RecordNumber, StoreId};

/// Longest name of a stream, bytes.
pub const MAX_NAME: usize = 255;
/// Longest handshake message in a KEY frame, bytes.
pub const MAX_KEY: usize = 128;
/// Strongest durability level that STORED can report.
const MAX_LEVEL: u8 = 3;

/// Frame types. 0x40 to 0x7f are optional: a length follows, so whoever does not know them skips them.
pub(crate) mod ty {
    pub const PADDING: u8 = 0x00;
    pub const PING: u8 = 0x01;
    pub const ACK: u8 = 0x02;
    pub const ACK_ECN: u8 = 0x03;
    pub const ACK_FREQUENCY: u8 = 0x04;
    pub const IMMEDIATE_ACK: u8 = 0x05;
    pub const PART: u8 = 0x12;
    pub const REPAIR: u8 = 0x13;
    pub const OPEN: u8 = 0x18;
    pub const ORIGIN: u8 = 0x19;
    pub const GAP: u8 = 0x1a;
    pub const EXPIRED: u8 = 0x1b;
    pub const HEARD: u8 = 0x20;
    pub const STORED: u8 = 0x21;
    pub const QUERY: u8 = 0x22;
    pub const ANSWER: u8 = 0x23;
    pub const CREDIT: u8 = 0x24;
    pub const BLOCKED: u8 = 0x25;
    pub const REFUSED: u8 = 0x26;
    pub const FENCED: u8 = 0x27;
    pub const PATH_CHALLENGE: u8 = 0x30;
    pub const PATH_RESPONSE: u8 = 0x31;
    pub const KEY: u8 = 0x32;
    pub const OPTIONAL_FIRST: u8 = 0x40;
    pub const OPTIONAL_LAST: u8 = 0x7f;
    /// RECORDS has the types from here on: most packets are full of it, and each byte counts.
    pub const RECORDS: u8 = 0x80;
    /// The bit of RECORDS that says that it begins inside a record.
    pub const WITHIN: u8 = 0x40;
    /// The bits of RECORDS that are the length of the number, less one; so far up they stand.
    pub const LENGTH: u8 = 0x38;
    pub const LENGTH_SHIFT: u32 = 3;
    /// The bits of RECORDS that are the alias; all of them set if that follows.
    pub const ALIAS: u8 = 0x07;
}

/// One frame of a payload. What it borrows stays in the packet.
///
/// `alias` is the sender's short number, in its run, for one stream in one lineage: OPEN gives it its name.
///
/// ```
/// use stayfast_frame::Frame;
/// use stayfast_units::RecordNumber;
///
/// let frame = Frame::Heard { alias: 1, next: RecordNumber(9) };
/// assert!(!frame.is_ack_eliciting(), "the next one says as much");
/// assert!(!frame.allowed_unbound(), "a replay of it would lie");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// That many bytes of nothing.
    Padding(usize),
    /// Asks for an acknowledgement.
    Ping,
    /// Packets that this run has taken (RFC 9000, section 19.3), and when.
    Ack(Ack<'a>),
    /// Asks for less frequent acknowledgements (draft-ietf-quic-ack-frequency).
    AckFrequency {
        /// Orders these frames: one older than another already seen is ignored.
        sequence: u64,
        /// Acknowledge after that many ack-eliciting packets.
        every: u64,
        /// And no later than this after the first of them; whole microseconds.
        max_delay: Duration,
    },
    /// Asks for an acknowledgement at once.
    ImmediateAck,
    /// A run of a stream's records.
    Records(Records<'a>),
    /// A piece of a record.
    Part(Part<'a>),
    /// Names the stream behind an alias.
    Open {
        /// The alias.
        alias: u32,
        /// The sender's store.
        store: StoreId,
        /// The stream's name, 1 to [`MAX_NAME`] bytes.
        name: &'a str,
    },
    /// From `first` on, records are of another lineage.
    Origin {
        /// The stream.
        alias: u32,
        /// The first record of the lineage.
        first: RecordNumber,
        /// The lineage.
        lineage: Lineage,
        /// The lineage of the record before `first`; none if there is no such record.
        parent: Lineage,
    },
    /// Records that the sender lost to corruption; their numbers count as delivered.
    Gap {
        /// The stream.
        alias: u32,
        /// The first of them.
        first: RecordNumber,
        /// How many, at least one.
        count: u64,
    },
    /// Records dropped by their time to live; their numbers count as delivered.
    Expired {
        /// The stream.
        alias: u32,
        /// The first of them.
        first: RecordNumber,
        /// How many, at least one.
        count: u64,
    },
    /// All records below `next` are in this run's memory.
    Heard {
        /// The stream.
        alias: u32,
        /// The first record that is not.
        next: RecordNumber,
    },
    /// All records below `next` are stored by the application.
    Stored(Stored),
    /// Asks where the receiver stands.
    Query {
        /// Comes back in the answer.
        nonce: u64,
        /// The stream.
        alias: u32,
        /// The sender has no record below this any more.
        trimmed: RecordNumber,
    },
    /// Where the receiver's cursor stands.
    Answer {
        /// The nonce of the query.
        nonce: u64,
        /// The stream.
        alias: u32,
        /// The first record that is not stored.
        next: RecordNumber,
        /// The lineage of the record before `next`.
        lineage: Lineage,
    },
    /// What may be sent. Absolute, so an old one does no harm.
    Credit {
        /// Body bytes beyond STORED, all streams together.
        link: u64,
        /// The stream that the rest is about.
        alias: u32,
        /// Where `bytes` counts from.
        from: RecordNumber,
        /// Body bytes of this stream from record `from` on.
        bytes: u64,
    },
    /// Credit keeps a record from being sent.
    Blocked {
        /// The stream.
        alias: u32,
        /// The record.
        number: RecordNumber,
        /// Its whole length, body bytes.
        bytes: u64,
    },
    /// The receiver will not take this record, nor those after it.
    Refused {
        /// The stream.
        alias: u32,
        /// The record.
        number: RecordNumber,
        /// Why.
        reason: Refusal,
    },
    /// The receiver has other records at this place: the store was restored from an old copy, or cloned.
    Fenced {
        /// The stream.
        alias: u32,
        /// The first record that differs.
        number: RecordNumber,
        /// Its lineage at the receiver (who sends this frame).
        theirs: Lineage,
        /// Its lineage as the sender of the records has it.
        yours: Lineage,
    },
    /// To be echoed from the address it was sent to (RFC 9000, section 8.2).
    PathChallenge([u8; 8]),
    /// The echo.
    PathResponse([u8; 8]),
    /// A handshake message of a new session, at most [`MAX_KEY`] bytes.
    Key(&'a [u8]),
    /// An optional frame that this version does not know. Written again, its content is zeros.
    Skipped {
        /// Its type, 0x40 to 0x7f.
        ty: u8,
        /// Its length, without type and length field.
        len: usize,
    },
}

/// A piece of a record that is too long for its packet, on its own ([`Writer::part`](crate::Writer::part) cuts) or in
/// [`Records`].
///
/// ```
/// use stayfast_frame::{DecodeError, Frame, Part, decode};
/// use stayfast_units::RecordNumber;
/// let part = Part { alias: 1, number: RecordNumber(5), total: 3, offset: 2, bytes: b"z" };
/// assert_eq!(decode(b"\x12\x01\x05\x03\x02\x01z").next(), Some(Ok(Frame::Part(part))));
/// assert_eq!(decode(b"\x12\x01\x05\x03\x03\x01z").next(), Some(Err(DecodeError::Malformed)), "beyond its end");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// The stream.
    pub alias: u32,
    /// The record.
    pub number: RecordNumber,
    /// The length of the whole record, bytes.
    pub total: u32,
    /// Where in the record this piece stands, bytes.
    pub offset: u32,
    /// The piece: inside the record, and not empty unless the record is.
    pub bytes: &'a [u8],
}

impl Part<'_> {
    /// Whether it is all of its record.
    pub const fn is_whole(&self) -> bool {
        self.bytes.len() == self.total as usize
    }
}

/// The receipt that frees the sender's outbox.
///
/// ```
/// use stayfast_frame::{Frame, Stored, StoredKind, Writer};
/// use stayfast_units::{Lineage, RecordNumber};
/// let (alias, next, lineage) = (1, RecordNumber(12), Lineage(0xaa));
/// let stored = Stored { alias, next, lineage, level: 2, kind: StoredKind::Record };
/// let mut payload = [0; 13];
/// Writer::new(&mut payload).put(&Frame::Stored(stored)).unwrap();
/// assert_eq!(payload, [0x21, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0xaa, 2, 0]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The stream.
    pub alias: u32,
    /// All records below are stored.
    pub next: RecordNumber,
    /// The lineage of the record before `next`; none if `next` is zero.
    pub lineage: Lineage,
    /// How durable: 0 memory, 1 survives the process, 2 survives a power cut, 3 replicated.
    pub level: u8,
    /// What was taken for the record before `next`.
    pub kind: StoredKind,
}

/// What the receiver took for a record.
///
/// ```
/// use stayfast_frame::StoredKind;
/// assert_eq!(StoredKind::try_from(1), Ok(StoredKind::Tombstone));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredKind {
    /// Its bytes.
    Record = 0,
    /// The news that there is none ([`Frame::Gap`], [`Frame::Expired`]).
    Tombstone = 1,
}

impl TryFrom<u8> for StoredKind {
    type Error = DecodeError;

    fn try_from(byte: u8) -> Result<StoredKind, DecodeError> {
        match byte {
            0 => Ok(StoredKind::Record),
            1 => Ok(StoredKind::Tombstone),
            _ => Err(DecodeError::Malformed),
        }
    }
}

/// Why a record is not taken.
///
/// ```
/// use stayfast_frame::{DecodeError, Refusal};
/// assert_eq!(Refusal::try_from(1), Ok(Refusal::TooLarge));
/// assert_eq!(Refusal::try_from(4), Err(DecodeError::Malformed));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The stream is not authorized for this sender.
    Unauthorized = 0,
    /// The record is over the receiver's limit.
    TooLarge = 1,
    /// The link has as many streams as it may.
    TooManyStreams = 2,
    /// The application said no.
    Rejected = 3,
}

impl TryFrom<u8> for Refusal {
    type Error = DecodeError;

    fn try_from(byte: u8) -> Result<Refusal, DecodeError> {
        match byte {
            0 => Ok(Refusal::Unauthorized),
            1 => Ok(Refusal::TooLarge),
            2 => Ok(Refusal::TooManyStreams),
            3 => Ok(Refusal::Rejected),
            _ => Err(DecodeError::Malformed),
        }
    }
}

impl Frame<'_> {
    /// Whether an unbound packet (INIT) may carry it. INIT can be replayed, so only what does no harm when it is
    /// said twice.
    pub const fn allowed_unbound(&self) -> bool {
        matches!(
            self,
            Frame::Padding(_)
                | Frame::Ping
                | Frame::ImmediateAck
                | Frame::Records(_)
                | Frame::Part(_)
                | Frame::Open { .. }
                | Frame::Origin { .. }
                | Frame::Gap { .. }
                | Frame::Expired { .. }
                | Frame::Query { .. }
        )
    }

    /// Whether it asks for an acknowledgement (RFC 9002, section 2): all but PADDING, ACK and HEARD. (A HEARD
    /// rides along with an ACK; if it is lost, the next one says more.)
    pub const fn is_ack_eliciting(&self) -> bool {
        !matches!(self, Frame::Padding(_) | Frame::Ack(_) | Frame::Heard { .. })
    }

    /// What a frame must obey beyond the range of its fields. Both directions ask: what does not obey is neither
    /// taken nor written. ([`Ack`] and [`Records`] obey by construction.)
    pub(crate) fn check(&self) -> Result<(), DecodeError> {
        let (good, error) = match *self {
            Frame::Part(Part { number, total, offset, bytes, .. }) => {
                let end = u64::from(offset) + bytes.len() as u64;
                let inside = !bytes.is_empty() && end <= u64::from(total);
                (inside && is_span(number, 1), DecodeError::Malformed)
            }
            Frame::Gap { first, count, .. } | Frame::Expired { first, count, .. } => {
                (is_span(first, count), DecodeError::Malformed)
            }
            Frame::Open { name: "", .. } => (false, DecodeError::Malformed),
            Frame::Open { name, .. } => (name.len() <= MAX_NAME, DecodeError::Limit),
            Frame::Stored(Stored { level, .. }) => (level <= MAX_LEVEL, DecodeError::Malformed),
            Frame::Key(message) => (message.len() <= MAX_KEY, DecodeError::Limit),
            Frame::Skipped { ty, .. } => {
                ((ty::OPTIONAL_FIRST..=ty::OPTIONAL_LAST).contains(&ty), DecodeError::Unknown(ty))
            }
            _ => (true, DecodeError::Malformed),
        };
        if good { Ok(()) } else { Err(error) }
    }
}

/// Whether there is at least one record, and the number after the last can still be said in a frame.
pub(crate) const fn is_span(first: RecordNumber, count: u64) -> bool {
    count > 0 && first.0.saturating_add(count) <= varint::MAX
}
