use rusqlite::Transaction;
use stayfast_net::PendingDelivery;
use stayfast_store::{Hole, Level, Position, StoreError};
use stayfast_store_sqlite::level_of;
use stayfast_units::RecordNumber;

/// Consecutive records of one stream of one sender, for the application's transaction.
///
/// [`accept`](Batch::accept) comes first in the transaction, then the records' effect, then the commit, then
/// [`stored`](Delivery::stored). A batch that is dropped before is delivered again.
#[must_use = "a batch that is dropped is delivered again"]
pub struct Batch {
    pub(crate) pending: PendingDelivery,
    /// What a commit must survive at least.
    pub(crate) level: Level,
}

/// Whether a batch was the first with its records.
#[must_use]
pub enum Accepted<'a> {
    /// The cursor has moved, in this transaction: store the records' effect, commit, then say
    /// [`stored`](Delivery::stored).
    Fresh(Delivery<'a>),
    /// Another node was first, and everything of this batch is stored or comes again: roll back, take the next.
    Raced,
}

/// What is left to say once the transaction is committed.
#[must_use = "without `stored()` after the commit the batch is delivered again"]
pub struct Delivery<'a> {
    batch: &'a Batch,
    level: Level,
}

impl Delivery<'_> {
    /// The transaction is committed. Only now the sender learns it, and lets the records go.
    pub fn stored(self) {
        self.batch.pending.stored(self.level);
    }
}

/// One number of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A record.
    Record(Record<'a>),
    /// The sender's disk has damaged the record with this number: it is lost.
    Gap(RecordNumber),
    /// The sender dropped the record with this number because its time was over.
    Expired(RecordNumber),
}

/// A record, and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    sender: &'a str,
    stream: &'a str,
    number: RecordNumber,
    bytes: &'a [u8],
}

impl<'a> Record<'a> {
    /// What was put.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Its number in the stream, from 0.
    pub fn number(&self) -> RecordNumber {
        self.number
    }

    /// Its stream.
    pub fn stream(&self) -> &'a str {
        self.stream
    }

    /// The name of its sender in the list of authorized keys.
    pub fn sender(&self) -> &'a str {
        self.sender
    }
}

impl Batch {
    /// Moves the stream's cursor as part of `tx`: first of all in it. After [`Raced`](Accepted::Raced) roll back.
    ///
    /// # Errors
    /// The database failed, or the connection's commits would survive less than was promised. Drop the batch then: it
    /// comes again.
    pub fn accept(&self, tx: &Transaction<'_>) -> Result<Accepted<'_>, StoreError> {
        let (found, how) = level_of(tx)?;
        if found < self.level {
            return Err(StoreError::Durability { found, required: self.level, how });
        }
        match stayfast_store_sqlite::accept(tx, &self.pending.delivery)? {
            stayfast_store::Accepted::Fresh => Ok(self.fresh(found)),
            stayfast_store::Accepted::Raced(at) => Ok(self.raced(at)),
        }
    }

    /// For an application that has moved the cursor in a database of its own.
    pub fn fresh(&self, level: Level) -> Accepted<'_> {
        Accepted::Fresh(Delivery { batch: self, level })
    }

    /// For an application that has found the cursor of its own database elsewhere.
    pub fn raced(&self, at: Position) -> Accepted<'_> {
        self.pending.conflict(at);
        Accepted::Raced
    }

    /// Refuses a record for good. Nothing of this batch is stored; the stream stands still, and its sender is told.
    pub fn reject(self, number: RecordNumber) {
        self.pending.rejected(number);
    }

    /// The move of the cursor, and the records, as the store sees them.
    pub fn delivery(&self) -> &stayfast_store::Delivery {
        &self.pending.delivery
    }

    /// The name of the sender in the list of authorized keys.
    pub fn sender(&self) -> &str {
        &self.pending.delivery.key.sender
    }

    /// The stream.
    pub fn stream(&self) -> &str {
        &self.pending.delivery.key.stream
    }

    /// How many numbers it spans, those without a record included.
    pub fn len(&self) -> usize {
        self.pending.delivery.run.len()
    }

    /// A batch is never empty.
    pub fn is_empty(&self) -> bool {
        self.pending.delivery.run.is_empty()
    }

    /// All numbers in order: records, and why there is none.
    pub fn items(&self) -> impl Iterator<Item = Item<'_>> {
        let (sender, stream) = (self.sender(), self.stream());
        self.pending.delivery.run.iter().map(move |item| match item {
            stayfast_store::Item::Record(number, bytes) => Item::Record(Record { sender, stream, number, bytes }),
            stayfast_store::Item::Hole(number, Hole::Gap) => Item::Gap(number),
            stayfast_store::Item::Hole(number, Hole::Expired) => Item::Expired(number),
        })
    }

    /// The records in order, without the numbers that have none; see [`items`](Batch::items).
    pub fn iter(&self) -> impl Iterator<Item = Record<'_>> {
        self.items().filter_map(|item| match item {
            Item::Record(record) => Some(record),
            Item::Gap(_) | Item::Expired(_) => None,
        })
    }
}

impl<'a> IntoIterator for &'a Batch {
    type Item = Record<'a>;
    type IntoIter = Box<dyn Iterator<Item = Record<'a>> + 'a>;

    fn into_iter(self) -> Self::IntoIter {
        Box::new(self.iter())
    }
}
