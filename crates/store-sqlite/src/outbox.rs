use crate::error::{Fail, translate};
use crate::lock::{LinkLock, LinkLockError};
use crate::open::{Options, Owned};
use crate::row::row_ids;
use crate::session::{Lineages, append};
use crate::walk::{Stream, Visit, keep_lineage, walk};
use rusqlite::Connection;
use stayfast_store::{
    AppendError, Appended, Hole, Level, Limits, Loaded, MAX_BATCH_RECORDS, Origin, Outbox, Run, StoreError, Tail,
};
use stayfast_units::{RecordNumber, StoreId};
use std::path::{Path, PathBuf};

/// An outbox with a connection of its own.
///
/// ```
/// use stayfast_store::Outbox;
/// use stayfast_store_sqlite::{Options, SqliteOutbox};
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("edge.db");
/// let mut outbox = SqliteOutbox::open(&path, &Options::default())?;
/// let lock = outbox.lock_link()?;                        // this process runs the link
///
/// let mut other = SqliteOutbox::open(&path, &Options::default())?;
/// other.append("logs", &[b"hello"])?;                    // any process appends
/// assert!(outbox.changed()?);
/// # drop(lock);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SqliteOutbox {
    pub(crate) owned: Owned,
    path: PathBuf,
    limits: Limits,
    lineages: Lineages,
}

impl SqliteOutbox {
    /// Opens the store in a file, or makes it. A file that a crash has left in whatever state opens by itself.
    pub fn open(path: impl AsRef<Path>, options: &Options) -> Result<SqliteOutbox, StoreError> {
        let path = path.as_ref();
        let owned = Owned::open(path, options)?;
        Ok(SqliteOutbox { owned, path: path.to_path_buf(), limits: options.limits, lineages: Lineages::default() })
    }

    /// Opens a store to look at it: nothing is changed, not even beside the file if that can be avoided, so that it works
    /// on a read-only file system, on a full one, and for a user who may only read. Appends and trims fail.
    ///
    /// What a process that was killed has left in the log is seen, though perhaps not yet durable.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<SqliteOutbox, StoreError> {
        let path = path.as_ref();
        let owned = Owned::open_read_only(path)?;
        let (limits, lineages) = (Limits::default(), Lineages::default());
        Ok(SqliteOutbox { owned, path: path.to_path_buf(), limits, lineages })
    }

    /// Takes the right to run the link of this store.
    pub fn lock_link(&self) -> Result<LinkLock, LinkLockError> {
        LinkLock::take(&self.path)
    }

    /// What an append survives.
    pub fn level(&self) -> Level {
        self.owned.level
    }

    /// Records from `from` on, up to a place that cannot be read. If that is where they begin and `behind` is set, says
    /// how long it is.
    pub(crate) fn read_window(
        &mut self,
        stream: &str,
        from: RecordNumber,
        max_bytes: usize,
        behind: bool,
    ) -> Result<(Vec<Loaded>, Option<Unreadable>), StoreError> {
        let mut reader = Reader { max_bytes, behind, ..Reader::default() };
        self.owned.read(|db| match Stream::find(db, stream)? {
            Some(stream) => Ok(walk(db, &stream, from, &mut reader)?),
            None => Ok(()),
        })?;
        self.quarantine(&reader.damaged);
        Ok((reader.loaded, reader.unreadable))
    }

    /// Keeps a copy of rows that were found damaged. The rows stay where they are until they are trimmed, and read as
    /// gaps; a copy that cannot be made now is made at the next read.
    pub(crate) fn quarantine(&mut self, rows: &[i64]) {
        if rows.is_empty() || self.owned.is_read_only() {
            return;
        }
        let copy = "INSERT OR IGNORE INTO stayfast_quarantine (id, count, opened, lineage, parent, sum, records, bodies) \
                    SELECT id, count, opened, lineage, parent, sum, records, bodies FROM stayfast_outbox WHERE id = ?1";
        let copied = self.owned.write_unsynced(|tx| {
            for id in rows {
                tx.prepare_cached(copy)?.execute([id])?;
            }
            Ok(())
        });
        // A full disk must not keep the sound records from being read.
        drop(copied);
    }
}

impl Outbox for SqliteOutbox {
    fn store_id(&self) -> StoreId {
        self.owned.id
    }

    fn append(&mut self, stream: &str, records: &[&[u8]]) -> Result<Appended, AppendError> {
        let SqliteOutbox { owned, limits, lineages, .. } = self;
        Ok(owned.write(|tx| append(tx, lineages, limits, stream, records))?)
    }

    fn tails(&mut self) -> Result<Vec<Tail>, StoreError> {
        let streams = self.owned.read(|db| Ok(Stream::all(db)?))?;
        Ok(streams.into_iter().map(|s| Tail { stream: s.name.into(), trimmed: s.trimmed, next: s.next }).collect())
    }

    fn read(&mut self, stream: &str, from: RecordNumber, max_bytes: usize) -> Result<Vec<Loaded>, StoreError> {
        let (loaded, unreadable) = self.read_window(stream, from, max_bytes, false)?;
        match unreadable {
            // What comes before it goes out first.
            Some(Unreadable { first, why, .. }) if loaded.is_empty() => {
                let (first, path) = (first.0, self.path.display());
                let remedy =
                    format!("`stayfast outbox salvage {path}` gives up what cannot be read and keeps the rest");
                Err(StoreError::Corrupt { what: format!("record {first} of stream '{stream}': {why}; {remedy}") })
            }
            _ => Ok(loaded),
        }
    }

    fn trim(&mut self, stream: &str, to: RecordNumber) -> Result<(), StoreError> {
        self.owned.write_unsynced(|tx| trim(tx, stream, to))?;
        self.owned.shrink()
    }

    fn changed(&mut self) -> Result<bool, StoreError> {
        self.owned.changed()
    }

    fn note(&mut self, key: &str, value: &str) -> Result<(), StoreError> {
        let insert = "INSERT INTO stayfast_notes (key, value) VALUES (?1, ?2) \
                      ON CONFLICT DO UPDATE SET value = excluded.value";
        Ok(self.owned.write_unsynced(|tx| Ok(tx.prepare_cached(insert)?.execute([key, value]).map(drop)?))?)
    }

    fn notes(&mut self) -> Result<Vec<(String, String)>, StoreError> {
        pairs(self.owned.db(), "SELECT key, value FROM stayfast_notes ORDER BY key")
    }
}

fn trim(tx: &Connection, stream: &str, to: RecordNumber) -> Result<(), Fail> {
    let Some(stream) = Stream::find(tx, stream)? else { return Ok(()) };
    let to = to.min(stream.next);
    if to <= stream.trimmed {
        return Ok(());
    }
    keep_lineage(tx, &stream, to)?;
    forget(tx, &stream, to, to)?;
    Ok(())
}

/// Forgets the rows that end at `to`, which is at most the stream's end, or before, and sets what counts as trimmed.
/// Returns the first record that is kept: a row goes when its last record does.
pub(crate) fn forget(
    tx: &Connection,
    stream: &Stream,
    to: RecordNumber,
    trimmed: RecordNumber,
) -> rusqlite::Result<RecordNumber> {
    let (start, mut end) = row_ids(stream.id, to);
    if to < stream.next {
        end = stream.row_of(tx, to)?;
    }
    let sum = "SELECT coalesce(sum(length(bodies)), 0) FROM stayfast_outbox WHERE id >= ?1 AND id < ?2";
    let freed: i64 = tx.prepare_cached(sum)?.query_row([start, end], |row| row.get(0))?;
    tx.prepare_cached("DELETE FROM stayfast_outbox WHERE id >= ?1 AND id < ?2")?.execute([start, end])?;
    let update = "UPDATE stayfast_streams SET trimmed = ?2, bytes = max(bytes - ?3, 0) WHERE id = ?1";
    tx.prepare_cached(update)?.execute((stream.id, trimmed.0 as i64, freed))?;
    Ok(RecordNumber((end - start) as u64))
}

/// Two columns of text.
pub(crate) fn pairs(db: &Connection, select: &str) -> Result<Vec<(String, String)>, StoreError> {
    let ask = || -> rusqlite::Result<_> {
        db.prepare_cached(select)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    };
    ask().map_err(|e| translate(&e))
}

/// A place in a stream where pages cannot be read.
pub(crate) struct Unreadable {
    pub first: RecordNumber,
    /// 0 if that was not asked for.
    pub count: u64,
    pub why: String,
}

/// Collects what `Outbox::read` promises.
#[derive(Default)]
struct Reader {
    loaded: Vec<Loaded>,
    damaged: Vec<i64>,
    bytes: usize,
    count: usize,
    max_bytes: usize,
    /// Look how long an unreadable place is.
    behind: bool,
    unreadable: Option<Unreadable>,
}

impl Reader {
    /// Is there room for one more item? The first is always taken.
    fn room(&mut self, body: usize) -> bool {
        self.bytes = self.bytes.saturating_add(body);
        self.count += 1;
        self.count <= MAX_BATCH_RECORDS && (self.count == 1 || self.bytes <= self.max_bytes)
    }

    fn run(&mut self, origin: &Origin, number: RecordNumber) -> &mut Run {
        if self.loaded.last().is_none_or(|last| last.origin != *origin) {
            self.loaded.push(Loaded { origin: *origin, run: Run::new(number) });
        }
        let last = self.loaded.len() - 1;
        &mut self.loaded[last].run
    }
}

impl Visit for Reader {
    fn record(&mut self, origin: &Origin, number: RecordNumber, body: &[u8]) -> bool {
        self.room(body.len()) && self.run(origin, number).push(body).is_ok()
    }

    fn gap(&mut self, origin: &Origin, first: RecordNumber, count: u64) -> bool {
        (0..count).all(|i| self.room(0) && self.run(origin, first.plus(i)).push_hole(Hole::Gap).is_ok())
    }

    fn damaged(&mut self, id: i64) {
        self.damaged.push(id);
    }

    fn unreadable(&mut self, first: RecordNumber, why: &rusqlite::Error) -> bool {
        self.unreadable = Some(Unreadable { first, count: 0, why: why.to_string() });
        self.behind && self.loaded.is_empty()
    }

    fn skipped(&mut self, _: RecordNumber, count: u64) -> bool {
        if let Some(unreadable) = &mut self.unreadable {
            unreadable.count = count;
        }
        false
    }
}
