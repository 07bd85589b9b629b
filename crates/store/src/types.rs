use crate::Run;
use alloc::sync::Arc;
use core::fmt;
use stayfast_units::{Lineage, RecordNumber, StoreId};

/// Where a lineage begins in a stream: the first record of it, and the lineage of the record before.
///
/// A lineage is drawn at random when a store session first numbers a record of the stream, and again when another
/// session has numbered records since, so that no lineage ever names two contents of one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Origin {
    /// First record of the lineage.
    pub first: RecordNumber,
    /// The lineage.
    pub lineage: Lineage,
    /// Lineage of record `first - 1`; [`Lineage::NONE`] for the first record ever.
    pub parent: Lineage,
}

/// What a commit survives. Ordered: more is safer.
///
/// ```
/// use stayfast_store::Level;
/// assert!(Level::Power > Level::Process);
/// assert_eq!(Level::try_from(2), Ok(Level::Power));
/// assert_eq!(Level::try_from(4), Err(4));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Level {
    /// Nothing: it is gone with the process.
    Memory = 0,
    /// `kill -9`, but not the loss of power.
    Process = 1,
    /// Loss of power.
    Power = 2,
    /// Loss of the machine: a synchronous standby has it.
    Replicated = 3,
}

impl TryFrom<u8> for Level {
    type Error = u8;
    fn try_from(level: u8) -> Result<Level, u8> {
        [Level::Memory, Level::Process, Level::Power, Level::Replicated].get(usize::from(level)).copied().ok_or(level)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Level::Memory => "memory",
            Level::Process => "process",
            Level::Power => "power",
            Level::Replicated => "replicated",
        })
    }
}

/// What an outbox holds of one stream: the records `trimmed..next`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Name of the stream.
    pub stream: Arc<str>,
    /// All records below have been forgotten.
    pub trimmed: RecordNumber,
    /// Number of the next record to be appended.
    pub next: RecordNumber,
}

/// The numbers that an append gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Number of the first record.
    pub first: RecordNumber,
    /// How many.
    pub count: u32,
    /// Lineage of these records, and where it began.
    pub origin: Origin,
}

impl Appended {
    /// The number after the last.
    pub fn end(&self) -> RecordNumber {
        self.first.plus(u64::from(self.count))
    }
}

/// Records read from an outbox, all of one lineage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Their lineage; `origin.first` may lie before `run.first`.
    pub origin: Origin,
    /// The records.
    pub run: Run,
}

/// Which cursor: a stream of a store of a sender.
///
/// The sender is the name under which its key is authorized, so that a new key keeps its cursors; the store's id keeps
/// a store that was made anew from inheriting the cursors of the old one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CursorKey {
    /// Name of the sender in the list of authorized keys.
    pub sender: Arc<str>,
    /// Id of the sender's store.
    pub store: StoreId,
    /// Name of the stream.
    pub stream: Arc<str>,
}

/// Where a cursor stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Position {
    /// All records below are stored.
    pub next: RecordNumber,
    /// Lineage of record `next - 1`; [`Lineage::NONE`] at the start.
    pub lineage: Lineage,
}

/// A cursor and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Which.
    pub key: CursorKey,
    /// Where.
    pub position: Position,
}

/// Records for the receiving application, and the move of the cursor that makes them stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Which cursor moves.
    pub key: CursorKey,
    /// Where it must stand, number and lineage.
    pub from: Position,
    /// Where it stands afterwards.
    pub to: Position,
    /// The records `from.next..to.next`.
    pub run: Run,
}

/// Whether a delivery was the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Accepted {
    /// The cursor moved: these records are new.
    Fresh,
    /// The cursor stood elsewhere (here): another node was first. Roll back; nothing of this delivery may be stored.
    Raced(Position),
}
