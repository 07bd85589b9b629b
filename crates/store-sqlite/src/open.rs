use crate::error::{Fail, translate};
use crate::place::{self, Frozen, Place};
use crate::schema::{attach, check};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use stayfast_store::{AppendError, Level, Limits, StoreError};
use stayfast_units::StoreId;
use std::path::Path;
use std::time::Duration;

/// Bytes of the log after which SQLite copies it into the database file.
const CHECKPOINT_BYTES: i64 = 4 << 20;
/// Bytes to which the log file is cut once it has been copied (it grows beyond only while a reader holds it).
const LOG_BYTES: i64 = 16 << 20;
/// Page size of a new file, bytes. Measured in `docs/store.md`.
const PAGE_BYTES: i64 = 2048;

/// How a store is opened.
///
/// ```
/// use stayfast_store::Level;
/// use stayfast_store_sqlite::Options;
///
/// let on_a_ram_disk = Options { level: Level::Process, ..Options::default() };
/// assert_eq!(Options::default().level, Level::Power);
/// # let _ = on_a_ram_disk;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// What commits must survive at least. The owned mode asks SQLite for exactly this; the borrowed mode checks that
    /// the application's connection gives it.
    pub level: Level,
    /// What the outbox refuses.
    pub limits: Limits,
    /// How long to wait for another writer before [`StoreError::Busy`].
    pub busy: Duration,
    /// Make the file and the tables if they are not there.
    pub create: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { level: Level::Power, limits: Limits::default(), busy: Duration::from_secs(5), create: true }
    }
}

/// What commits on this connection survive, and the settings that decide it.
///
/// With a write-ahead log, `FULL` syncs every commit and `NORMAL` only some. With a rollback journal the commit is the
/// end of the journal: cutting it short or overwriting it is synced with `FULL`, deleting it only with `EXTRA`.
pub fn level_of(db: &Connection) -> Result<(Level, String), StoreError> {
    let ask = || -> rusqlite::Result<(String, i64)> {
        let journal: String = db.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        Ok((journal.to_ascii_lowercase(), db.pragma_query_value(None, "synchronous", |row| row.get(0))?))
    };
    let (journal, synchronous) = ask().map_err(|e| translate(&e))?;
    let level = match (journal.as_str(), synchronous) {
        ("wal" | "truncate" | "persist", 2..) | ("delete", 3..) => Level::Power,
        ("wal" | "truncate" | "persist" | "delete", _) => Level::Process,
        _ => Level::Memory,
    };
    Ok((level, format!("journal_mode={journal}, synchronous={synchronous}")))
}

/// A connection of our own.
#[derive(Debug)]
pub(crate) struct Owned {
    db: Connection,
    pub id: StoreId,
    pub level: Level,
    data_version: i64,
    place: Place,
    /// The file as it was when it was opened without locks.
    frozen: Option<Frozen>,
    read_only: bool,
    /// Why nothing is done any more: a sync failed, or the file is elsewhere.
    poisoned: Option<StoreError>,
}

impl Owned {
    pub fn open(path: &Path, options: &Options) -> Result<Owned, StoreError> {
        let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        if options.create {
            flags |= OpenFlags::SQLITE_OPEN_CREATE;
        }
        let db = Connection::open_with_flags(path, flags).map_err(|e| translate(&e))?;
        db.busy_timeout(options.busy).map_err(|e| translate(&e))?;
        // Before any setting: the file may be somebody else's.
        if check(&db)?.is_none() && !options.create {
            return Err(no_store());
        }
        configure(&db, options).map_err(|e| translate(&e))?;
        let id = attach(&db, options)?;
        let (level, _) = level_of(&db)?;
        let place = Place::new(path);
        let mut owned = Owned { db, id, level, data_version: 0, place, frozen: None, read_only: false, poisoned: None };
        owned.settle()?;
        owned.changed()?;
        Ok(owned)
    }

    /// Opens the store of a file for looking, which changes nothing.
    pub fn open_read_only(path: &Path) -> Result<Owned, StoreError> {
        let alone = !place::log(path).exists();
        let frozen = || Frozen::new(path).and_then(|frozen| Ok((Owned::reading(path, true)?, Some(frozen))));
        let opened = match alone {
            // Nobody has it open: to read it the usual way would make a log beside it, and leave it there.
            true => frozen(),
            // Nor has anybody if the log is empty, and no index of it can be made.
            false => Owned::reading(path, false).map(|opened| (opened, None)).or_else(|e| frozen().map_err(|_| e)),
        };
        let ((db, id), frozen) = opened?;
        let place = Place::new(path);
        Ok(Owned { db, id, level: Level::Memory, data_version: 0, place, frozen, read_only: true, poisoned: None })
    }

    fn reading(path: &Path, immutable: bool) -> Result<(Connection, StoreId), StoreError> {
        let mut flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut name = path.to_path_buf();
        if immutable {
            flags |= OpenFlags::SQLITE_OPEN_URI;
            name = place::uri(path, "immutable=1").into();
        }
        let open = || -> rusqlite::Result<Connection> {
            let db = Connection::open_with_flags(name, flags)?;
            db.busy_timeout(Options::default().busy)?;
            // Else a file that was cut short is refused as a whole. Nothing can be written here.
            db.pragma_update(None, "writable_schema", true)?;
            Ok(db)
        };
        let db = open().map_err(|e| translate(&e))?;
        let id = check(&db)?.ok_or_else(no_store)?;
        Ok((db, id))
    }

    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// A process that was killed between the write and the sync of a commit has left a log whose last commits are
    /// visible but not yet durable. Copying the log into the file syncs both, before anybody acts on what is there.
    fn settle(&self) -> Result<(), StoreError> {
        self.db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())).map_err(|e| translate(&e))
    }

    pub fn db(&self) -> &Connection {
        &self.db
    }

    /// Runs `f` in a transaction that holds the write lock from its start, and commits with one sync. It is done only if
    /// the file is still in its place afterwards.
    pub fn write<T>(&mut self, f: impl FnOnce(&Transaction<'_>) -> Result<T, Fail>) -> Result<T, Fail> {
        self.guard(|owned| {
            let tx = Transaction::new_unchecked(&owned.db, TransactionBehavior::Immediate)?;
            let done = f(&tx)?;
            tx.commit()?;
            owned.place.check()?;
            Ok(done)
        })
    }

    /// As [`write`](Owned::write), but the commit is not synced; the next one that is syncs it too.
    pub fn write_unsynced<T>(&mut self, f: impl FnOnce(&Transaction<'_>) -> Result<T, Fail>) -> Result<T, Fail> {
        self.unsynced(|owned| owned.write(f))
    }

    /// Runs `f` in a transaction that sees one state of the store.
    pub fn read<T>(&mut self, f: impl FnOnce(&Connection) -> Result<T, Fail>) -> Result<T, Fail> {
        self.guard(|owned| {
            let tx = Transaction::new_unchecked(&owned.db, TransactionBehavior::Deferred)?;
            let found = f(&tx)?;
            tx.finish()?;
            if let Some(frozen) = &owned.frozen {
                frozen.check()?;
            }
            Ok(found)
        })
    }

    fn guard<T>(&mut self, f: impl FnOnce(&mut Owned) -> Result<T, Fail>) -> Result<T, Fail> {
        if let Some(error) = &self.poisoned {
            return Err(error.clone().into());
        }
        let outcome = f(self);
        let error = match &outcome {
            Err(Fail::Sql(e)) => translate(e),
            Err(Fail::Append(AppendError::Store(e))) => e.clone(),
            _ => return outcome,
        };
        if matches!(error, StoreError::Poisoned | StoreError::Replaced { .. }) {
            self.poisoned = Some(error);
        }
        outcome
    }

    fn unsynced<T>(&mut self, f: impl FnOnce(&mut Owned) -> Result<T, Fail>) -> Result<T, Fail> {
        let level = self.level;
        self.guard(|owned| Ok(owned.db.execute_batch(synchronous(level.min(Level::Process)))?))?;
        let outcome = f(self);
        let restored = self.db.execute_batch(synchronous(level));
        // Going on without syncs would break every promise made later.
        if restored.is_err() {
            self.poisoned.get_or_insert(StoreError::Poisoned);
        }
        restored?;
        outcome
    }

    /// Has another connection committed since the last call?
    pub fn changed(&mut self) -> Result<bool, StoreError> {
        let version = self.guard(|owned| {
            owned.place.check()?;
            Ok(owned.db.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?)
        })?;
        Ok(std::mem::replace(&mut self.data_version, version) != version)
    }

    /// Gives space back to the file system when more of the file is free than used, a few megabytes at a time.
    pub fn shrink(&mut self) -> Result<(), StoreError> {
        const STEP: i64 = 1024;
        let count = |pragma| self.db.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0)).map_err(Fail::from);
        let (free, pages) = (count("freelist_count")?, count("page_count")?);
        if free < 2 * STEP || free < pages / 2 {
            return Ok(());
        }
        Ok(self.unsynced(|owned| {
            owned.guard(|owned| {
                // It frees one page at each step, so it is stepped to its end.
                let mut statement = owned.db.prepare_cached("PRAGMA incremental_vacuum(1024)")?;
                let mut rows = statement.query([])?;
                while rows.next()?.is_some() {}
                Ok(())
            })
        })?)
    }
}

fn no_store() -> StoreError {
    StoreError::Io("there is no store in this file".to_string())
}

fn synchronous(level: Level) -> &'static str {
    match level {
        Level::Memory => "PRAGMA synchronous = OFF",
        Level::Process => "PRAGMA synchronous = NORMAL",
        Level::Power | Level::Replicated => "PRAGMA synchronous = FULL",
    }
}

fn configure(db: &Connection, options: &Options) -> rusqlite::Result<()> {
    let pages: i64 = db.pragma_query_value(None, "page_count", |row| row.get(0))?;
    if pages == 0 {
        // Too late once there is a page; and on an old file the second would be a write at every open.
        db.pragma_update(None, "page_size", PAGE_BYTES)?;
        db.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    let page: i64 = db.pragma_query_value(None, "page_size", |row| row.get(0))?;
    db.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    db.execute_batch(synchronous(options.level))?;
    // Of use on macOS only, where a sync alone does not reach the disk.
    db.pragma_update(None, "fullfsync", true)?;
    db.pragma_update_and_check(None, "wal_autocheckpoint", CHECKPOINT_BYTES / page.max(512), |_| Ok(()))?;
    db.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES, |_| Ok(()))?;
    Ok(())
}
