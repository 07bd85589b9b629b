use crate::{Accepted, CursorKey, Delivery, Inbox, Level, Loaded, Outbox, Position, StoreError};
use alloc::sync::Arc;
use alloc::vec::Vec;
use stayfast_units::RecordNumber;

/// What a protocol machine asks of its store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreOp {
    /// Read records of the outbox, as [`Outbox::read`]. Answer: [`StoreDone::Read`].
    Read {
        /// Name of the stream.
        stream: Arc<str>,
        /// First record wanted.
        from: RecordNumber,
        /// Bytes of bodies wanted at most.
        max_bytes: usize,
    },
    /// Forget records, as [`Outbox::trim`]. No answer.
    Trim {
        /// Name of the stream.
        stream: Arc<str>,
        /// First record to keep.
        to: RecordNumber,
    },
    /// Hand records to the application, as [`Inbox::deliver`]. Answer: [`StoreDone::Delivered`] or one of those after.
    Deliver(Delivery),
    /// Read a cursor from the store. Answer: [`StoreDone::Cursor`].
    ReadCursor {
        /// Which.
        key: CursorKey,
        /// Comes back in the answer.
        nonce: u64,
    },
}

/// What became of a [`StoreOp`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreDone {
    /// Records that were read.
    Read {
        /// Name of the stream.
        stream: Arc<str>,
        /// The record asked for.
        from: RecordNumber,
        /// What was found.
        result: Result<Vec<Loaded>, StoreError>,
    },
    /// The application has stored the records.
    Delivered {
        /// Which cursor.
        key: CursorKey,
        /// What that survives.
        level: Level,
        /// Where the cursor stands now.
        to: Position,
    },
    /// Another node was first.
    Conflict {
        /// Which cursor.
        key: CursorKey,
        /// Where it stands.
        at: Position,
    },
    /// The application dropped the batch: deliver it again.
    Returned(Delivery),
    /// The application refuses a record for good.
    Rejected {
        /// Which cursor.
        key: CursorKey,
        /// Which record.
        number: RecordNumber,
    },
    /// A cursor that was read after it was asked for.
    Cursor {
        /// Which.
        key: CursorKey,
        /// The nonce of the question.
        nonce: u64,
        /// Where it stands.
        position: Position,
    },
    /// The outcome is unknown: read the cursor again.
    Failed {
        /// Which cursor.
        key: CursorKey,
    },
    /// The store accepts nothing more.
    Poisoned,
}

/// Does what `op` asks with blocking stores. `None` if there is nothing to say: a trim, or an operation for a side
/// that this node does not have.
///
/// ```
/// use stayfast_store::{Memory, Outbox, StoreDone, StoreOp, perform};
/// use stayfast_units::RecordNumber;
///
/// let mut outbox = Memory::new(1);
/// outbox.append("orders", &[b"order 1"])?;
/// let op = StoreOp::Read { stream: "orders".into(), from: RecordNumber(0), max_bytes: 1 << 20 };
/// let Some(StoreDone::Read { result: Ok(loaded), .. }) = perform(op, Some(&mut outbox), None) else { panic!() };
/// assert_eq!(loaded[0].run.body(RecordNumber(0)), b"order 1");
/// # Ok::<(), stayfast_store::AppendError>(())
/// ```
pub fn perform(op: StoreOp, outbox: Option<&mut dyn Outbox>, inbox: Option<&mut dyn Inbox>) -> Option<StoreDone> {
    match op {
        StoreOp::Read { stream, from, max_bytes } => {
            let result = outbox?.read(&stream, from, max_bytes);
            Some(StoreDone::Read { stream, from, result })
        }
        StoreOp::Trim { stream, to } => match outbox?.trim(&stream, to) {
            Err(StoreError::Poisoned) => Some(StoreDone::Poisoned),
            // The records stay, and the next trim takes them along.
            _ => None,
        },
        StoreOp::Deliver(delivery) => {
            let inbox = inbox?;
            let (level, outcome) = (inbox.level(), inbox.deliver(&delivery));
            let Delivery { key, to, .. } = delivery;
            Some(match outcome {
                Ok(Accepted::Fresh) => StoreDone::Delivered { key, level, to },
                Ok(Accepted::Raced(at)) => StoreDone::Conflict { key, at },
                Err(StoreError::Poisoned) => StoreDone::Poisoned,
                Err(_) => StoreDone::Failed { key },
            })
        }
        StoreOp::ReadCursor { key, nonce } => Some(match inbox?.cursor(&key) {
            Ok(position) => StoreDone::Cursor { key, nonce, position },
            Err(StoreError::Poisoned) => StoreDone::Poisoned,
            Err(_) => StoreDone::Failed { key },
        }),
    }
}
