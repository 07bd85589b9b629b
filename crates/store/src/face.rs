use crate::{Accepted, AppendError, Appended, Cursor, CursorKey, Delivery, Level, Loaded, Position, StoreError, Tail};
use alloc::string::String;
use alloc::vec::Vec;
use stayfast_units::{RecordNumber, StoreId};

/// The sender's durable list of records that are not yet known to be stored at the receiver. All calls block.
pub trait Outbox: Send {
    /// The store's name, drawn when it was made.
    fn store_id(&self) -> StoreId;

    /// Appends records to a stream, all or none. They are durable when this returns: one sync for the whole call.
    ///
    /// After [`StoreError::Io`] the records may be there or not; [`tails`](Outbox::tails) tells.
    fn append(&mut self, stream: &str, records: &[&[u8]]) -> Result<Appended, AppendError>;

    /// All streams, sorted by name.
    fn tails(&mut self) -> Result<Vec<Tail>, StoreError>;

    /// Reads consecutive records from `from` on (from the first one held, if that is later), up to `max_bytes` of
    /// bodies but at least one record if there is one. A record whose checksum fails comes as a
    /// [`Gap`](crate::Hole::Gap); an unknown stream is empty.
    fn read(&mut self, stream: &str, from: RecordNumber, max_bytes: usize) -> Result<Vec<Loaded>, StoreError>;

    /// Forgets the records below `to` (at most all). Needs no sync: a trim that is lost in a crash only means that
    /// records are offered once more.
    fn trim(&mut self, stream: &str, to: RecordNumber) -> Result<(), StoreError>;

    /// Has another session written since the last call? Cheap enough to be asked several times a second.
    fn changed(&mut self) -> Result<bool, StoreError>;

    /// Keeps a hint, such as a figure for a status page. Not synced, and worth nothing after a loss of power.
    fn note(&mut self, key: &str, value: &str) -> Result<(), StoreError>;

    /// All hints, sorted by key.
    fn notes(&mut self) -> Result<Vec<(String, String)>, StoreError>;
}

/// The receiver's cursors, and a place for the records. All calls block.
pub trait Inbox: Send {
    /// What [`deliver`](Inbox::deliver) survives.
    fn level(&self) -> Level;

    /// All cursors, sorted by key.
    fn cursors(&mut self) -> Result<Vec<Cursor>, StoreError>;

    /// One cursor, read from the store now; the start of the stream if there is none.
    fn cursor(&mut self, key: &CursorKey) -> Result<Position, StoreError>;

    /// Stores the records and moves the cursor in one transaction, if it stands at `delivery.from` exactly. Durable
    /// at [`level`](Inbox::level) when this returns: one sync for the whole call.
    ///
    /// After [`StoreError::Io`] it may have happened or not; [`cursor`](Inbox::cursor) tells.
    fn deliver(&mut self, delivery: &Delivery) -> Result<Accepted, StoreError>;

    /// Keeps a hint: where a peer was last heard. Not synced.
    fn remember_peer(&mut self, name: &str, address: &str) -> Result<(), StoreError>;

    /// All peers remembered, sorted by name.
    fn peers(&mut self) -> Result<Vec<(String, String)>, StoreError>;
}
