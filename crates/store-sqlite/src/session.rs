use crate::error::Fail;
use crate::open::Options;
use crate::row::{Encoded, row_id};
use crate::schema::{attach, random};
use rusqlite::{Connection, OptionalExtension, Transaction};
use stayfast_store::{AppendError, Appended, Limits, Origin, StoreError};
use stayfast_units::{Lineage, RecordNumber, StoreId};
use std::collections::HashMap;

/// A session of appends in the application's own transactions: the borrowed mode.
///
/// Make one per connection, and a new one whenever the connection is opened anew: the session is what lineages are
/// drawn for.
///
/// ```
/// use rusqlite::{Connection, TransactionBehavior};
/// use stayfast_store_sqlite::{Options, Session};
///
/// # let dir = tempfile::tempdir()?;
/// let mut db = Connection::open(dir.path().join("app.db"))?;
/// db.pragma_update(None, "journal_mode", "WAL")?;
/// db.pragma_update(None, "synchronous", "FULL")?;
/// db.execute_batch("CREATE TABLE orders (id INTEGER PRIMARY KEY, what TEXT)")?;
/// let mut session = Session::new(&db, &Options::default())?;
///
/// let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
/// tx.execute("INSERT INTO orders (what) VALUES ('tea')", [])?;
/// let appended = session.append(&tx, "orders", &[b"tea"])?;
/// tx.commit()?;                                                  // the order and the record, or neither
/// assert_eq!(appended.first.0, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Session {
    id: StoreId,
    limits: Limits,
    lineages: Lineages,
}

impl Session {
    /// A session on this connection. Makes the tables if needed and checks that commits are durable: see
    /// [`attach`](crate::attach).
    pub fn new(db: &Connection, options: &Options) -> Result<Session, StoreError> {
        let id = attach(db, options)?;
        Ok(Session { id, limits: options.limits, lineages: Lineages::default() })
    }

    /// The store's name.
    pub fn store_id(&self) -> StoreId {
        self.id
    }

    /// Appends records to a stream, all or none, as part of `tx`: durable when `tx` has committed, gone if it has not.
    ///
    /// The transaction takes the write lock here at the latest. Begin it with `TransactionBehavior::Immediate`:
    /// one that has read before it writes can fail with [`StoreError::Busy`] when another process wrote in between.
    pub fn append(&mut self, tx: &Transaction<'_>, stream: &str, records: &[&[u8]]) -> Result<Appended, AppendError> {
        // Without this, an application that goes on after an error would commit half an append.
        tx.execute_batch("SAVEPOINT stayfast_append").map_err(Fail::from)?;
        let outcome = append(tx, &mut self.lineages, &self.limits, stream, records);
        let end = if outcome.is_ok() {
            "RELEASE stayfast_append"
        } else {
            "ROLLBACK TO stayfast_append; RELEASE stayfast_append"
        };
        let ended = tx.execute_batch(end).map_err(Fail::from);
        // After a full disk SQLite may have rolled all of `tx` back, and the savepoint with it.
        let appended = outcome?;
        ended?;
        Ok(appended)
    }
}

/// The lineage that this session gave to each stream last. A lineage whose first append was rolled back is not in the
/// store, so the next append draws another: the store alone decides.
#[derive(Debug, Default)]
pub(crate) struct Lineages(HashMap<Box<str>, Lineage>);

impl Lineages {
    /// Of a record that follows one of `tail`: goes on only if this session numbered that record.
    fn origin(&mut self, stream: &str, tail: Origin, next: RecordNumber) -> Result<Origin, StoreError> {
        if tail.lineage != Lineage::NONE && self.0.get(stream) == Some(&tail.lineage) {
            return Ok(tail);
        }
        let lineage = Lineage(random()?);
        self.0.insert(stream.into(), lineage);
        Ok(Origin { first: next, lineage, parent: tail.lineage })
    }
}

/// Appends within a transaction; on an error the caller rolls back.
pub(crate) fn append(
    tx: &Transaction<'_>,
    lineages: &mut Lineages,
    limits: &Limits,
    stream: &str,
    records: &[&[u8]],
) -> Result<Appended, Fail> {
    limits.check(stream, records, 0)?;
    let bytes: usize = records.iter().map(|r| r.len()).sum();
    // A write comes first, so that nothing is read before the lock is held.
    let (id, first, tail) = move_tail(tx, stream, records.len(), bytes)?;
    let held: i64 = tx.prepare_cached("SELECT sum(bytes) FROM stayfast_streams")?.query_row([], |row| row.get(0))?;
    limits.check(stream, records, (held as u64).saturating_sub(bytes as u64))?;
    let origin = lineages.origin(stream, tail, first)?;
    if origin != tail {
        let update = "UPDATE stayfast_streams SET opened = ?2, lineage = ?3, parent = ?4 WHERE id = ?1";
        let (lineage, parent) = (origin.lineage.0 as i64, origin.parent.0 as i64);
        tx.prepare_cached(update)?.execute((id, first.0 as i64, lineage, parent))?;
    }
    let row = row_id(id, first).ok_or_else(|| StoreError::Io(format!("the numbers of {stream} are used up")))?;
    Encoded::new(row, origin, records).insert(tx)?;
    Ok(Appended { first, count: records.len() as u32, origin })
}

/// Takes `count` numbers; returns the stream's row, the first number, and the origin of the record before.
fn move_tail(
    tx: &Transaction<'_>,
    stream: &str,
    count: usize,
    bytes: usize,
) -> rusqlite::Result<(i64, RecordNumber, Origin)> {
    let update = "UPDATE stayfast_streams SET next = next + ?2, bytes = bytes + ?3 WHERE name = ?1 \
                  RETURNING id, next - ?2, opened, lineage, parent";
    let insert = "INSERT INTO stayfast_streams (name, next, bytes) VALUES (?1, ?2, ?3) \
                  RETURNING id, next - ?2, opened, lineage, parent";
    let values = (stream, count as i64, bytes as i64);
    let read = |row: &rusqlite::Row<'_>| {
        let number = |column| row.get::<_, i64>(column).map(|n| n as u64);
        let tail =
            Origin { first: RecordNumber(number(2)?), lineage: Lineage(number(3)?), parent: Lineage(number(4)?) };
        Ok((row.get(0)?, RecordNumber(number(1)?), tail))
    };
    match tx.prepare_cached(update)?.query_row(values, read).optional()? {
        Some(found) => Ok(found),
        None => tx.prepare_cached(insert)?.query_row(values, read),
    }
}
