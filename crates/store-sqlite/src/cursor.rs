use crate::error::Fail;
use rusqlite::{Connection, OptionalExtension, Transaction};
use stayfast_store::{Accepted, Cursor, CursorKey, Delivery, Position, StoreError};
use stayfast_units::{Lineage, RecordNumber, StoreId};

/// Moves a delivery's cursor as part of the application's own transaction: the borrowed mode.
///
/// Call it first in the transaction (begun with `TransactionBehavior::Immediate`), then store the records, then
/// commit; only then are they stored. After [`Accepted::Raced`] roll back: the records are somebody else's. The tables
/// are made by [`attach`](crate::attach).
///
/// ```
/// use rusqlite::{Connection, TransactionBehavior};
/// use stayfast_store::{Accepted, CursorKey, Delivery, Position, Run};
/// use stayfast_store_sqlite::{Options, accept, attach};
/// use stayfast_units::{Lineage, RecordNumber, StoreId};
///
/// # let dir = tempfile::tempdir()?;
/// let mut db = Connection::open(dir.path().join("hub.db"))?;
/// db.pragma_update(None, "journal_mode", "WAL")?;
/// db.pragma_update(None, "synchronous", "FULL")?;
/// db.execute_batch("CREATE TABLE orders (what BLOB)")?;
/// attach(&db, &Options::default())?;
///
/// let key = CursorKey { sender: "pi3".into(), store: StoreId(1), stream: "orders".into() };
/// let mut run = Run::new(RecordNumber(0));
/// run.push(b"tea")?;
/// let to = Position { next: run.end(), lineage: Lineage(7) };
/// let delivery = Delivery { key, from: Position::default(), to, run };
///
/// let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
/// assert_eq!(accept(&tx, &delivery)?, Accepted::Fresh);
/// tx.execute("INSERT INTO orders VALUES (?1)", [delivery.run.body(RecordNumber(0))])?;
/// tx.commit()?;                                                  // cursor and order, or neither
///
/// let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
/// assert_eq!(accept(&tx, &delivery)?, Accepted::Raced(to));      // the second time
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn accept(tx: &Transaction<'_>, delivery: &Delivery) -> Result<Accepted, StoreError> {
    Ok(swap(tx, delivery)?)
}

/// Compare and swap: writes first, so that nothing is read before the lock is held.
pub(crate) fn swap(tx: &Connection, d: &Delivery) -> Result<Accepted, Fail> {
    let (sender, store, stream) = (&*d.key.sender, d.key.store.0 as i64, &*d.key.stream);
    let (next, lineage) = (d.to.next.0 as i64, d.to.lineage.0 as i64);
    let update = "UPDATE stayfast_cursors SET next = ?4, lineage = ?5 \
                  WHERE sender = ?1 AND store = ?2 AND stream = ?3 AND next = ?6 AND lineage = ?7";
    let from = (d.from.next.0 as i64, d.from.lineage.0 as i64);
    let values = (sender, store, stream, next, lineage, from.0, from.1);
    let mut moved = tx.prepare_cached(update)?.execute(values)?;
    if moved == 0 && d.from == Position::default() {
        let insert = "INSERT INTO stayfast_cursors (sender, store, stream, next, lineage) \
                      VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING";
        moved = tx.prepare_cached(insert)?.execute((sender, store, stream, next, lineage))?;
    }
    Ok(if moved == 1 { Accepted::Fresh } else { Accepted::Raced(position(tx, &d.key)?) })
}

/// Where a cursor stands; the start if there is none.
pub(crate) fn position(db: &Connection, key: &CursorKey) -> Result<Position, Fail> {
    let select = "SELECT next, lineage FROM stayfast_cursors WHERE sender = ?1 AND store = ?2 AND stream = ?3";
    let found = db
        .prepare_cached(select)?
        .query_row((&*key.sender, key.store.0 as i64, &*key.stream), |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(found.map_or_else(Position::default, |(next, lineage)| at(next, lineage)))
}

/// Sorted by key.
pub(crate) fn all(db: &Connection) -> Result<Vec<Cursor>, Fail> {
    let select = "SELECT sender, store, stream, next, lineage FROM stayfast_cursors";
    let mut statement = db.prepare_cached(select)?;
    let cursors = statement.query_map([], |row| {
        let (sender, store, stream): (String, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let key = CursorKey { sender: sender.into(), store: StoreId(store as u64), stream: stream.into() };
        Ok(Cursor { key, position: at(row.get(3)?, row.get(4)?) })
    })?;
    let mut cursors: Vec<Cursor> = cursors.collect::<Result<_, _>>()?;
    // Not by the database: it sees store ids with a sign.
    cursors.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    Ok(cursors)
}

fn at(next: i64, lineage: i64) -> Position {
    Position { next: RecordNumber(next as u64), lineage: Lineage(lineage as u64) }
}
