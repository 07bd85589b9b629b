use crate::row::{Decoded, row_ids};
use rusqlite::{Connection, OptionalExtension, Row};
use stayfast_store::Origin;
use stayfast_units::{Lineage, RecordNumber};

/// One row of `stayfast_streams`.
pub(crate) struct Stream {
    pub id: i64,
    pub name: String,
    pub trimmed: RecordNumber,
    pub next: RecordNumber,
    pub bytes: u64,
    /// Origin of record `next - 1`.
    pub tail: Origin,
}

const COLUMNS: &str = "id, name, trimmed, next, bytes, opened, lineage, parent";

impl Stream {
    fn new(row: &Row<'_>) -> rusqlite::Result<Stream> {
        let number = |column| row.get::<_, i64>(column).map(|n| n as u64);
        Ok(Stream {
            id: row.get(0)?,
            name: row.get(1)?,
            trimmed: RecordNumber(number(2)?),
            next: RecordNumber(number(3)?),
            bytes: number(4)?,
            tail: Origin { first: RecordNumber(number(5)?), lineage: Lineage(number(6)?), parent: Lineage(number(7)?) },
        })
    }

    pub fn find(db: &Connection, name: &str) -> rusqlite::Result<Option<Stream>> {
        let select = format!("SELECT {COLUMNS} FROM stayfast_streams WHERE name = ?1");
        db.prepare_cached(&select)?.query_row([name], Stream::new).optional()
    }

    /// Sorted by name.
    pub fn all(db: &Connection) -> rusqlite::Result<Vec<Stream>> {
        let select = format!("SELECT {COLUMNS} FROM stayfast_streams ORDER BY name");
        db.prepare_cached(&select)?.query_map([], Stream::new)?.collect()
    }

    /// The id of the row that holds `number`, if there is one: a later row does not.
    pub fn row_of(&self, db: &Connection, number: RecordNumber) -> rusqlite::Result<i64> {
        let (start, end) = row_ids(self.id, number.next());
        let select = "SELECT max(id) FROM stayfast_outbox WHERE id >= ?1 AND id < ?2";
        let found: Option<i64> = db.prepare_cached(select)?.query_row([start, end], |row| row.get(0))?;
        Ok(found.unwrap_or(start))
    }

    /// Origin of record `at - 1`, as far as it can be known: that of the last sound row before, or the lineage that was
    /// kept when the records below `trimmed` were forgotten.
    fn before(&self, db: &Connection, at: RecordNumber) -> rusqlite::Result<Origin> {
        let (start, end) = row_ids(self.id, at);
        let columns = Decoded::COLUMNS;
        let select = format!(
            "SELECT {columns} FROM stayfast_outbox WHERE id >= ?1 AND id < ?2 ORDER BY id DESC LIMIT {LOOK_BACK}"
        );
        let mut statement = db.prepare_cached(&select)?;
        let mut rows = statement.query((start, end))?;
        while let Some(row) = rows.next()? {
            if let Some(found) = Decoded::new(row)? {
                return Ok(found.origin);
            }
        }
        let lineage = trimmed_lineage(db, &self.name)?.unwrap_or(Lineage::NONE);
        Ok(Origin { first: self.trimmed, lineage, parent: Lineage::NONE })
    }
}

/// Damaged rows that are looked behind for a sound one.
const LOOK_BACK: usize = 8;

fn lineage_key(stream: &str) -> String {
    format!("lineage/{stream}")
}

fn trimmed_lineage(db: &Connection, stream: &str) -> rusqlite::Result<Option<Lineage>> {
    let select = "SELECT value FROM stayfast_meta WHERE key = ?1";
    let found = db.prepare_cached(select)?.query_row([lineage_key(stream)], |row| row.get::<_, i64>(0)).optional()?;
    Ok(found.map(|lineage| Lineage(lineage as u64)))
}

/// Keeps the lineage of record `to - 1`, which is about to be forgotten: if the record after it is damaged, nothing else
/// says what it continues, and the receiver would take the gap for another history.
pub(crate) fn keep_lineage(tx: &Connection, stream: &Stream, to: RecordNumber) -> rusqlite::Result<()> {
    struct Look(Lineage);
    impl Visit for Look {
        fn record(&mut self, origin: &Origin, _: RecordNumber, _: &[u8]) -> bool {
            self.0 = origin.lineage;
            false
        }
        fn gap(&mut self, origin: &Origin, _: RecordNumber, _: u64) -> bool {
            self.0 = origin.lineage;
            false
        }
        fn damaged(&mut self, _: i64) {}
    }
    let mut look = Look(stream.tail.lineage);
    if to <= stream.tail.first {
        walk(tx, stream, RecordNumber(to.0.saturating_sub(1)), &mut look)?;
    }
    if trimmed_lineage(tx, &stream.name)? != Some(look.0) {
        let insert = "INSERT INTO stayfast_meta (key, value) VALUES (?1, ?2) \
                      ON CONFLICT DO UPDATE SET value = excluded.value";
        tx.prepare_cached(insert)?.execute((lineage_key(&stream.name), look.0.0 as i64))?;
    }
    Ok(())
}

/// Who looks at the records of a walk. A method that returns false ends it.
pub(crate) trait Visit {
    /// A sound record.
    fn record(&mut self, origin: &Origin, number: RecordNumber, body: &[u8]) -> bool;
    /// Numbers whose records are damaged or missing.
    fn gap(&mut self, origin: &Origin, first: RecordNumber, count: u64) -> bool;
    /// The row with this id is damaged, as a whole or in part.
    fn damaged(&mut self, id: i64);
}

/// Shows every number of the stream from `from` on to `visit`, in order and without omission.
///
/// A row whose header is damaged says nothing that can be believed, so it counts as missing. What a gap belonged to
/// follows from the sound row after it, or from the stream's tail.
pub(crate) fn walk(
    db: &Connection,
    stream: &Stream,
    from: RecordNumber,
    visit: &mut impl Visit,
) -> rusqlite::Result<()> {
    let mut at = from.max(stream.trimmed);
    // Looked for only if it is needed.
    let mut before = None;
    let columns = Decoded::COLUMNS;
    let select = format!("SELECT {columns} FROM stayfast_outbox WHERE id >= ?1 AND id < ?2 ORDER BY id");
    let mut statement = db.prepare_cached(&select)?;
    let (_, end) = row_ids(stream.id, stream.next);
    let mut rows = statement.query((stream.row_of(db, at)?, end))?;
    while let Some(row) = rows.next()? {
        let Some(found) = Decoded::new(row)? else {
            visit.damaged(row.get(0)?);
            continue;
        };
        if found.end() <= at {
            continue;
        }
        if found.first > at {
            let before = before.map_or_else(|| stream.before(db, at), Ok)?;
            if !gap(at, found.first, &found.origin, &before, visit) {
                return Ok(());
            }
        }
        at = at.max(found.first);
        if !show(&found, at, visit) {
            return Ok(());
        }
        (at, before) = (found.end(), Some(found.origin));
    }
    if at < stream.next {
        let before = before.map_or_else(|| stream.before(db, at), Ok)?;
        gap(at, stream.next, &stream.tail, &before, visit);
    }
    Ok(())
}

/// The records of a sound row from `at` on.
fn show(row: &Decoded<'_>, at: RecordNumber, visit: &mut impl Visit) -> bool {
    let mut told = false;
    for (number, body) in row.iter().filter(|&(number, _)| number >= at) {
        let go_on = match body {
            Some(body) => visit.record(&row.origin, number, body),
            None => {
                if !std::mem::replace(&mut told, true) {
                    visit.damaged(row.id);
                }
                visit.gap(&row.origin, number, 1)
            }
        };
        if !go_on {
            return false;
        }
    }
    true
}

/// Numbers `at..end` are missing. `after` is the origin of record `end` or, at the tail, of `end - 1`; `before` that
/// of record `at - 1` if it was seen.
fn gap(at: RecordNumber, end: RecordNumber, after: &Origin, before: &Origin, visit: &mut impl Visit) -> bool {
    let opened = after.first.clamp(at, end);
    // The part before `after` began belonged to its parent; lineages that came and went within it left no trace.
    let parent = if before.lineage == after.parent {
        *before
    } else {
        Origin { first: at, lineage: after.parent, parent: before.lineage }
    };
    (opened == at || visit.gap(&parent, at, opened.0 - at.0))
        && (opened == end || visit.gap(after, opened, end.0 - opened.0))
}
