use crate::error::{Fail, translate};
use crate::open::{Options, level_of};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};
use stayfast_store::StoreError;
use stayfast_units::StoreId;

/// Version of the tables that this program writes and reads.
pub const SCHEMA_VERSION: u32 = 1;

/// Numbers of 64 bits without sign (lineages, ids) are kept as the signed number of the same bits.
const TABLES: &str = "
-- schema, store; lineage/STREAM: that of record trimmed - 1.
CREATE TABLE stayfast_meta (
    key   TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Sender: one row per stream. Records trimmed..next are in stayfast_outbox; (opened, lineage, parent) is the origin of
-- the lineage of record next - 1; bytes counts bodies in stayfast_outbox.
CREATE TABLE stayfast_streams (
    id      INTEGER PRIMARY KEY,
    name    TEXT NOT NULL UNIQUE,
    trimmed INTEGER NOT NULL DEFAULT 0,
    next    INTEGER NOT NULL DEFAULT 0,
    opened  INTEGER NOT NULL DEFAULT 0,
    lineage INTEGER NOT NULL DEFAULT 0,
    parent  INTEGER NOT NULL DEFAULT 0,
    bytes   INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Sender: one row per append, in one tree without an index beside it: id = stream * 2^44 + first. records holds 8 bytes
-- for each record: end of its body in bodies and CRC-32C of its body, both little-endian. sum is the CRC-32C of id,
-- count, opened, lineage, parent (8 bytes each, little-endian) and records.
CREATE TABLE stayfast_outbox (
    id      INTEGER PRIMARY KEY,
    count   INTEGER NOT NULL,
    opened  INTEGER NOT NULL,
    lineage INTEGER NOT NULL,
    parent  INTEGER NOT NULL,
    sum     INTEGER NOT NULL,
    records BLOB NOT NULL,
    bodies  BLOB NOT NULL,
    stream  INTEGER GENERATED ALWAYS AS (id >> 44) VIRTUAL,
    first   INTEGER GENERATED ALWAYS AS (id & 17592186044415) VIRTUAL
) STRICT;

-- Sender: copies of rows of stayfast_outbox that were found damaged. Nothing reads them but people.
CREATE TABLE stayfast_quarantine (
    id      INTEGER PRIMARY KEY,
    count   INTEGER NOT NULL,
    opened  INTEGER NOT NULL,
    lineage INTEGER NOT NULL,
    parent  INTEGER NOT NULL,
    sum     INTEGER NOT NULL,
    records BLOB NOT NULL,
    bodies  BLOB NOT NULL,
    stream  INTEGER GENERATED ALWAYS AS (id >> 44) VIRTUAL,
    first   INTEGER GENERATED ALWAYS AS (id & 17592186044415) VIRTUAL
) STRICT;

-- Receiver: records below next are stored; lineage is that of record next - 1.
CREATE TABLE stayfast_cursors (
    sender  TEXT NOT NULL,
    store   INTEGER NOT NULL,
    stream  TEXT NOT NULL,
    next    INTEGER NOT NULL,
    lineage INTEGER NOT NULL,
    PRIMARY KEY (sender, store, stream)
) STRICT, WITHOUT ROWID;

-- Receiver, owned mode: what was delivered, in the order it was stored. hole says why there is no body. seq is never
-- used twice, so that a reader can follow the table while another deletes from it.
CREATE TABLE stayfast_records (
    seq    INTEGER PRIMARY KEY AUTOINCREMENT,
    sender TEXT NOT NULL,
    store  INTEGER NOT NULL,
    stream TEXT NOT NULL,
    number INTEGER NOT NULL,
    body   BLOB,
    hole   TEXT CHECK ((hole IS NULL) = (body IS NOT NULL))
) STRICT;

-- Hints, never synced for their own sake.
CREATE TABLE stayfast_notes (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE stayfast_peers (name TEXT PRIMARY KEY, address TEXT NOT NULL) STRICT, WITHOUT ROWID;
";

/// Makes the tables in the application's own database if they are not there, checks their version and the
/// connection's durability, and returns the store's id. For the borrowed mode; the owned mode does it on open.
///
/// The settings of the connection are the application's: this changes none of them. They must promise
/// [`Options::level`], or the call fails with [`StoreError::Durability`].
///
/// ```
/// use rusqlite::Connection;
/// use stayfast_store::{Level, StoreError};
/// use stayfast_store_sqlite::{Options, attach};
///
/// let db = Connection::open_in_memory()?;
/// assert!(matches!(attach(&db, &Options::default()), Err(StoreError::Durability { found: Level::Memory, .. })));
/// let id = attach(&db, &Options { level: Level::Memory, ..Options::default() })?;
/// assert_eq!(attach(&db, &Options { level: Level::Memory, ..Options::default() })?, id);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn attach(db: &Connection, options: &Options) -> Result<StoreId, StoreError> {
    let (found, how) = level_of(db)?;
    if found < options.level {
        return Err(StoreError::Durability { found, required: options.level, how });
    }
    if let Some(id) = check(db)? {
        return Ok(id);
    }
    if !options.create {
        return Err(StoreError::Io("there is no store in this file".to_string()));
    }
    create(db).map_err(StoreError::from)
}

/// The id of the store; `None` if there are no tables.
pub(crate) fn check(db: &Connection) -> Result<Option<StoreId>, StoreError> {
    let made = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'stayfast_meta'";
    if db.query_row(made, [], |_| Ok(())).optional().map_err(|e| translate(&e))?.is_none() {
        return Ok(None);
    }
    match meta(db, "schema")? {
        Some(version) if version == i64::from(SCHEMA_VERSION) => {}
        Some(version) => {
            let found = u32::try_from(version).unwrap_or(u32::MAX);
            return Err(StoreError::Schema { found, known: SCHEMA_VERSION });
        }
        None => return Err(StoreError::Corrupt { what: "stayfast_meta has no schema version".to_string() }),
    }
    match meta(db, "store")? {
        Some(id) => Ok(Some(StoreId(id as u64))),
        None => Err(StoreError::Corrupt { what: "stayfast_meta has no store id".to_string() }),
    }
}

fn meta(db: &Connection, key: &str) -> Result<Option<i64>, StoreError> {
    db.query_row("SELECT value FROM stayfast_meta WHERE key = ?1", [key], |row| row.get(0))
        .optional()
        .map_err(|e| translate(&e))
}

fn create(db: &Connection) -> Result<StoreId, Fail> {
    let tx = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
    // Another process may have been faster.
    if let Some(id) = check(&tx)? {
        return Ok(id);
    }
    let id = StoreId(random()?);
    tx.execute_batch(TABLES)?;
    let insert = "INSERT INTO stayfast_meta (key, value) VALUES ('schema', ?1), ('store', ?2)";
    tx.execute(insert, [i64::from(SCHEMA_VERSION), id.0 as i64])?;
    tx.commit()?;
    Ok(id)
}

/// A random name; never the one that means none.
pub(crate) fn random() -> Result<u64, StoreError> {
    loop {
        match getrandom::u64() {
            Ok(0) => {}
            Ok(n) => return Ok(n),
            Err(e) => return Err(StoreError::Io(format!("no randomness: {e}"))),
        }
    }
}
