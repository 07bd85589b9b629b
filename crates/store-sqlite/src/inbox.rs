use crate::cursor;
use crate::error::Fail;
use crate::open::{Options, Owned};
use crate::outbox::pairs;
use rusqlite::Connection;
use stayfast_store::{Accepted, Cursor, CursorKey, Delivery, Hole, Inbox, Item, Level, Position, StoreError};
use stayfast_units::{RecordNumber, StoreId};
use std::path::Path;

/// An inbox with a connection of its own. It stores what is delivered in the table `stayfast_records`, in the
/// transaction that moves the cursor.
///
/// It is also the cursors' source for an application that stores records itself and calls [`accept`](crate::accept).
///
/// ```
/// use stayfast_store::{Accepted, CursorKey, Delivery, Inbox, Position, Run};
/// use stayfast_store_sqlite::{Options, SqliteInbox};
/// use stayfast_units::{Lineage, RecordNumber, StoreId};
///
/// # let dir = tempfile::tempdir()?;
/// let mut inbox = SqliteInbox::open(dir.path().join("hub.db"), &Options::default())?;
/// let key = CursorKey { sender: "pi3".into(), store: StoreId(1), stream: "orders".into() };
/// let mut run = Run::new(RecordNumber(0));
/// run.push(b"tea")?;
/// let to = Position { next: run.end(), lineage: Lineage(7) };
/// assert_eq!(inbox.deliver(&Delivery { key, from: Position::default(), to, run })?, Accepted::Fresh);
/// assert_eq!(inbox.records(0, 100)?[0].body.as_deref(), Ok(&b"tea"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SqliteInbox {
    owned: Owned,
}

/// A row of `stayfast_records`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecord {
    /// Position in the table: ascends in the order stored, never used twice.
    pub seq: i64,
    /// Whose stream.
    pub key: CursorKey,
    /// Number in the stream.
    pub number: RecordNumber,
    /// The record, or why there is none.
    pub body: Result<Vec<u8>, Hole>,
}

impl SqliteInbox {
    /// Opens the store in a file, or makes it.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<SqliteInbox, StoreError> {
        Ok(SqliteInbox { owned: Owned::open(path.as_ref(), options)? })
    }

    /// At most `max` records stored after position `seq` (0: from the start), in the order stored.
    pub fn records(&mut self, seq: i64, max: usize) -> Result<Vec<StoredRecord>, StoreError> {
        let select = "SELECT seq, sender, store, stream, number, body, hole FROM stayfast_records \
                      WHERE seq > ?1 ORDER BY seq LIMIT ?2";
        let limit = i64::try_from(max).unwrap_or(i64::MAX);
        Ok(self.owned.read(|db| {
            let mut statement = db.prepare_cached(select)?;
            let rows = statement.query_map([seq, limit], stored_record)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })?)
    }

    /// Has another session written since the last call?
    pub fn changed(&mut self) -> Result<bool, StoreError> {
        self.owned.changed()
    }
}

fn stored_record(row: &rusqlite::Row<'_>) -> rusqlite::Result<StoredRecord> {
    let (sender, store, stream): (String, i64, String) = (row.get(1)?, row.get(2)?, row.get(3)?);
    let body = match row.get::<_, Option<Vec<u8>>>(5)? {
        Some(body) => Ok(body),
        None if row.get::<_, String>(6)? == EXPIRED => Err(Hole::Expired),
        None => Err(Hole::Gap),
    };
    Ok(StoredRecord {
        seq: row.get(0)?,
        key: CursorKey { sender: sender.into(), store: StoreId(store as u64), stream: stream.into() },
        number: RecordNumber(row.get::<_, i64>(4)? as u64),
        body,
    })
}

const GAP: &str = "gap";
const EXPIRED: &str = "expired";

impl Inbox for SqliteInbox {
    fn level(&self) -> Level {
        self.owned.level
    }

    fn cursors(&mut self) -> Result<Vec<Cursor>, StoreError> {
        Ok(self.owned.read(cursor::all)?)
    }

    fn cursor(&mut self, key: &CursorKey) -> Result<Position, StoreError> {
        Ok(self.owned.read(|db| cursor::position(db, key))?)
    }

    fn deliver(&mut self, delivery: &Delivery) -> Result<Accepted, StoreError> {
        Ok(self.owned.write(|tx| {
            let accepted = cursor::swap(tx, delivery)?;
            if accepted == Accepted::Fresh {
                store(tx, delivery)?;
            }
            Ok(accepted)
        })?)
    }

    fn remember_peer(&mut self, name: &str, address: &str) -> Result<(), StoreError> {
        let insert = "INSERT INTO stayfast_peers (name, address) VALUES (?1, ?2) \
                      ON CONFLICT DO UPDATE SET address = excluded.address";
        Ok(self.owned.write_unsynced(|tx| Ok(tx.prepare_cached(insert)?.execute([name, address]).map(drop)?))?)
    }

    fn peers(&mut self) -> Result<Vec<(String, String)>, StoreError> {
        pairs(self.owned.db(), "SELECT name, address FROM stayfast_peers ORDER BY name")
    }
}

fn store(tx: &Connection, d: &Delivery) -> Result<(), Fail> {
    let insert = "INSERT INTO stayfast_records (sender, store, stream, number, body, hole) \
                  VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let mut statement = tx.prepare_cached(insert)?;
    for item in d.run.iter() {
        let (body, hole) = match item {
            Item::Record(_, body) => (Some(body), None),
            Item::Hole(_, Hole::Gap) => (None, Some(GAP)),
            Item::Hole(_, Hole::Expired) => (None, Some(EXPIRED)),
        };
        let number = item.number().0 as i64;
        statement.execute((&*d.key.sender, d.key.store.0 as i64, &*d.key.stream, number, body, hole))?;
    }
    Ok(())
}
