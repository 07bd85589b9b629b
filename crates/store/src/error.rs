use crate::Level;
use alloc::string::String;

/// Why a store could not do what it was asked. The text says what a person can do about it.
///
/// ```
/// use stayfast_store::StoreError;
/// assert!(StoreError::DiskFull.to_string().contains("free some space"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// No room on the disk or in the quota. Nothing was written; the same call works once there is room.
    #[error("the disk or its quota is full: free some space, nothing else needs to be done")]
    DiskFull,
    /// A sync failed, so that nobody knows what reached the disk. This session accepts nothing more; what the disk
    /// holds is found out by opening the store again.
    #[error("a sync to disk failed and is not retried: check the disk, then restart the process")]
    Poisoned,
    /// The file was moved, deleted or replaced while it was open. What is written to it now, nobody finds: nothing is
    /// taken any more.
    #[error(
        "the file of the store is no longer where it was opened ({what}), and what is written to it now nobody would find: put it back if it was moved, then restart the process"
    )]
    Replaced {
        /// What was found.
        what: String,
    },
    /// The tables were made by another version of this software.
    #[error(
        "the store has schema version {found}, this program knows version {known}: use the program that fits, or migrate"
    )]
    Schema {
        /// Version in the store.
        found: u32,
        /// Version of this program.
        known: u32,
    },
    /// The store's own structure is damaged (a damaged record is not an error, but a [`Hole`](crate::Hole)).
    #[error("the store is damaged ({what}): verify it and restore or salvage the file")]
    Corrupt {
        /// What was found.
        what: String,
    },
    /// The store would lose commits that it reported as durable.
    #[error(
        "the store keeps commits only at level {found}, {required} is required ({how}): change the setting, or allow the lower level"
    )]
    Durability {
        /// What the store's settings give.
        found: Level,
        /// What was asked for.
        required: Level,
        /// The settings that decided it.
        how: String,
    },
    /// Another writer held the store for too long. Nothing was written; try again.
    #[error("the store is busy: another process has held it for too long, try again")]
    Busy,
    /// The operating system refused. Whether a commit happened is unknown: read the tail or cursor again.
    #[error("the store failed: {0}")]
    Io(String),
}

fn room(used: u64) -> &'static str {
    match used {
        0 => "what is to be appended never fits, raise the limit",
        _ => "wait until the receiver has stored some",
    }
}

impl StoreError {
    /// Is it no use to wait? Then the store serves again only after a person has seen to it and it was opened anew.
    ///
    /// ```
    /// use stayfast_store::StoreError;
    /// assert!(StoreError::Poisoned.is_lasting() && !StoreError::DiskFull.is_lasting());
    /// ```
    pub fn is_lasting(&self) -> bool {
        match self {
            StoreError::Poisoned
            | StoreError::Replaced { .. }
            | StoreError::Schema { .. }
            | StoreError::Corrupt { .. }
            | StoreError::Durability { .. } => true,
            StoreError::DiskFull | StoreError::Busy | StoreError::Io(_) => false,
        }
    }
}

/// Why records were not appended. Nothing of the batch was.
///
/// ```
/// use stayfast_store::{AppendError, Memory, Outbox};
/// let refused = Memory::new(1).append("", &[b"x"]);
/// assert_eq!(refused, Err(AppendError::StreamName { len: 0 }));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// A record is over the limit. It would be over the limit on every retry.
    #[error("a record of {record} B is over the limit of {limit} B: split it, or raise the limit at both ends")]
    TooLarge {
        /// Length of the record, bytes.
        record: usize,
        /// Limit, bytes.
        limit: usize,
    },
    /// The outbox holds as many bytes as it may. Room comes back as the receiver stores records.
    #[error("the outbox is full ({used} of {limit} B): {}", room(*used))]
    Full {
        /// Bytes of bodies held.
        used: u64,
        /// Limit, bytes.
        limit: u64,
    },
    /// A stream's name is 1 to 255 bytes long.
    #[error("a stream name has 1 to 255 bytes, not {len}")]
    StreamName {
        /// Length of the name, bytes.
        len: usize,
    },
    /// A stream's name is text that programs and shells can hold: no byte of it is 0.
    #[error("a stream name must not hold a NUL byte")]
    StreamNul,
    /// One append takes 1 to [`MAX_BATCH_RECORDS`](crate::MAX_BATCH_RECORDS) records and at most
    /// [`MAX_BATCH_BYTES`](crate::MAX_BATCH_BYTES).
    #[error("one append takes 1 to 65536 records and 256 MiB, not {records} records and {bytes} B")]
    Batch {
        /// Records in the call.
        records: usize,
        /// Bytes of their bodies.
        bytes: usize,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
