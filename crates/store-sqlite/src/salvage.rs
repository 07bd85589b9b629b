use crate::error::{Fail, translate};
use crate::inspect::{Damage, list};
use crate::lock::LinkLock;
use crate::open::{Options, Owned};
use crate::outbox::SqliteOutbox;
use crate::place::{beside, log};
use crate::row::Decoded;
use crate::schema::check;
use crate::walk::{Stream, is_corrupt};
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use stayfast_store::StoreError;
use stayfast_units::RecordNumber;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// What [`SqliteOutbox::salvage`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Salvaged {
    /// Appends that were kept.
    pub rows: u64,
    /// Numbers that were lost, and are gaps now: the first 1024 places.
    pub lost: Vec<Damage>,
    /// Where the damaged file is now.
    pub damaged: PathBuf,
}

impl SqliteOutbox {
    /// Makes a new file out of what can be read of a damaged one, and puts it in its place. The damaged one stays beside
    /// it, with `.damaged` at its name's end.
    ///
    /// Records on pages that cannot be read become gaps: their numbers are accounted for, and what is behind them goes
    /// on. This is for a person to decide, since a backup or a repair of the disk may still bring them back.
    /// `_lock` keeps links away. Other processes that append find that the file is no longer theirs.
    ///
    /// # Errors
    /// The streams themselves cannot be read, the file holds more than an outbox, or somebody uses it. Nothing has
    /// changed then.
    pub fn salvage(path: &Path, _lock: &LinkLock) -> Result<Salvaged, StoreError> {
        let damaged = beside(path, ".damaged");
        if damaged.exists() {
            return Err(StoreError::Io(format!("{} is there from an earlier time: move it away", damaged.display())));
        }
        let old = open_damaged(path).map_err(|e| translate(&e))?;
        // Nobody appends from here on.
        let tx = Transaction::new_unchecked(&old, TransactionBehavior::Immediate).map_err(|e| translate(&e))?;
        if fs::metadata(log(path)).is_ok_and(|meta| meta.len() > 0) {
            return Err(StoreError::Busy);
        }
        let fresh = beside(path, ".salvage");
        for leftover in [fresh.clone(), log(&fresh), beside(&fresh, "-shm")] {
            drop(fs::remove_file(leftover));
        }
        let (rows, lost) = copy(&tx, &fresh)?;
        exchange(path, &fresh, &damaged).map_err(|e| StoreError::Io(format!("{}: {e}", path.display())))?;
        Ok(Salvaged { rows, lost, damaged })
    }
}

/// With its log copied into it.
fn open_damaged(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags)?;
    db.busy_timeout(Options::default().busy)?;
    // Else a file that was cut short is refused as a whole.
    db.pragma_update(None, "writable_schema", true)?;
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(db)
}

fn copy(old: &Connection, fresh: &Path) -> Result<(u64, Vec<Damage>), StoreError> {
    let Some(id) = check(old)? else { return Err(StoreError::Io("there is no store in this file".to_string())) };
    if let Some(other) = more_than_an_outbox(old).map_err(|e| translate(&e))? {
        let what = format!("the file holds more than an outbox ({other}): only its owner knows how to save that");
        return Err(StoreError::Io(what));
    }
    let mut new = Owned::open(fresh, &Options::default())?;
    let copied = new.write(|tx| {
        tx.execute("UPDATE stayfast_meta SET value = ?1 WHERE key = 'store'", [id.0 as i64])?;
        copy_all(old, tx, "stayfast_streams", 8)?;
        let (mut rows, mut lost) = (0, Vec::new());
        for stream in Stream::all(old)? {
            rows += copy_stream(old, tx, &stream, &mut lost)?;
        }
        // Hints and copies for people: as many as can be read.
        for (table, columns) in [("stayfast_notes", 2), ("stayfast_quarantine", 8)] {
            match copy_all(old, tx, table, columns) {
                Err(e) if !is_corrupt(&e) => return Err(e.into()),
                _ => {}
            }
        }
        Ok((rows, lost))
    })?;
    // Everything into the one file, and that to the disk.
    new.db().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(|e| translate(&e))?;
    Ok(copied)
}

/// What else is in there.
fn more_than_an_outbox(db: &Connection) -> rusqlite::Result<Option<String>> {
    let select = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'stayfast\\_%' ESCAPE '\\' \
                  AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
    let mut statement = db.prepare(select)?;
    let mut names = statement.query_map([], |row| row.get::<_, String>(0))?;
    if let Some(name) = names.next() {
        return name.map(Some);
    }
    let used = db.query_row("SELECT EXISTS (SELECT 1 FROM stayfast_cursors)", [], |row| row.get(0));
    Ok(match used {
        Ok(false) => None,
        Err(e) if !is_corrupt(&e) => return Err(e),
        _ => Some("the cursors of an inbox".to_string()),
    })
}

fn insert(table: &str, columns: usize) -> String {
    let names = match table {
        "stayfast_streams" => "id, name, trimmed, next, opened, lineage, parent, bytes",
        "stayfast_notes" => "key, value",
        _ => Decoded::COLUMNS,
    };
    let places = vec!["?"; columns].join(", ");
    format!("INSERT OR REPLACE INTO {table} ({names}) VALUES ({places})")
}

fn copy_all(old: &Connection, new: &Connection, table: &str, columns: usize) -> rusqlite::Result<()> {
    let insert = insert(table, columns);
    let names = &insert[insert.find('(').unwrap_or(0) + 1..insert.find(')').unwrap_or(0)];
    let mut statement = old.prepare(&format!("SELECT {names} FROM {table}"))?;
    let mut rows = statement.query([])?;
    let mut to = new.prepare(&insert)?;
    while let Some(row) = rows.next()? {
        let values = (0..columns).map(|column| row.get::<_, Value>(column)).collect::<Result<Vec<_>, _>>()?;
        to.execute(rusqlite::params_from_iter(values))?;
    }
    Ok(())
}

/// Rows are copied as they are, damaged bodies included: their checksums tell.
fn copy_stream(old: &Connection, new: &Connection, stream: &Stream, lost: &mut Vec<Damage>) -> Result<u64, Fail> {
    let columns = Decoded::COLUMNS;
    let select = format!("SELECT {columns} FROM stayfast_outbox WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT 1");
    let mut from = old.prepare(&select)?;
    let mut to = new.prepare(&insert("stayfast_outbox", 8))?;
    let end = stream.row_at(stream.next);
    let (mut rows, mut bytes, mut at) = (0, 0, stream.begin(old)?);
    while at < stream.next {
        let row = from.query_row((stream.row_at(at), end), |row| {
            let values = (0..8).map(|column| row.get::<_, Value>(column)).collect::<Result<Vec<_>, _>>()?;
            Ok((Decoded::new(row)?.map(|found| found.end()), values))
        });
        match row {
            Ok((sound, values)) => {
                let Some(Value::Integer(id)) = values.first() else { return Ok(rows) };
                let first = RecordNumber((id - stream.row_at(RecordNumber::ZERO)) as u64);
                bytes += values.last().map_or(0, |body| if let Value::Blob(body) = body { body.len() } else { 0 });
                at = sound.filter(|end| *end > first).unwrap_or(first.next());
                // A row that does not fit the table's types is none.
                rows += u64::from(to.execute(rusqlite::params_from_iter(values)).is_ok());
            }
            Err(rusqlite::Error::QueryReturnedNoRows) => break,
            Err(e) if is_corrupt(&e) => {
                let behind = stream.readable(old, at)?;
                list(lost, &stream.name, at, behind.0.saturating_sub(at.0));
                at = behind;
            }
            Err(e) => return Err(e.into()),
        }
    }
    new.execute("UPDATE stayfast_streams SET bytes = ?2 WHERE id = ?1", (stream.id, bytes as i64))?;
    Ok(rows)
}

/// The new file takes the old one's name. At each moment there is a whole store under that name. The log of the old one
/// is empty, and must not be taken for one of the new.
fn exchange(path: &Path, fresh: &Path, damaged: &Path) -> std::io::Result<()> {
    for beside in [log(path), beside(path, "-shm")] {
        match fs::remove_file(beside) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    fs::hard_link(path, damaged)?;
    fs::rename(fresh, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}
