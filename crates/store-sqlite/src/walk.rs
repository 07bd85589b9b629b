use crate::row::{Decoded, row_ids};
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row};
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

    /// The same; that of a row that begins with `number` if the pages before it cannot be read.
    fn row_with(&self, db: &Connection, number: RecordNumber) -> rusqlite::Result<i64> {
        or_if_corrupt(self.row_of(db, number), self.row_at(number))
    }

    /// The first number of the first row that is held: it may begin before what is trimmed.
    pub fn begin(&self, db: &Connection) -> rusqlite::Result<RecordNumber> {
        Ok(RecordNumber((self.row_with(db, self.trimmed)? - self.row_at(RecordNumber::ZERO)) as u64))
    }

    /// The id of a row that begins with `number`.
    pub fn row_at(&self, number: RecordNumber) -> i64 {
        row_ids(self.id, number).1
    }

    /// The first number at `from` or behind with which a row begins that can be read; the end if there is none.
    ///
    /// Tries number after number, so that a sound page between two bad ones is found; far away from `from`, in steps of
    /// a thousandth of the way, so that it ends. Each try is a search in the tree.
    pub fn readable(&self, db: &Connection, from: RecordNumber) -> rusqlite::Result<RecordNumber> {
        let (mut bad, mut far) = (None, 0);
        let mut found = loop {
            let at = from.plus(far);
            if at >= self.next {
                break self.next;
            }
            match self.row_from(db, at)? {
                Some(row) => break row,
                None => bad = Some(at),
            }
            far += 1 + (far >> 10);
        };
        // The step may have gone too far.
        let (Some(mut bad), mut good) = (bad, from.plus(far).min(self.next)) else { return Ok(found) };
        while good.0 - bad.0 > 1 {
            let middle = bad.plus((good.0 - bad.0) / 2);
            match self.row_from(db, middle)? {
                Some(row) => (good, found) = (middle, row),
                None => bad = middle,
            }
        }
        Ok(found)
    }

    /// The first row at `from` or behind, by its first number, the end if there is none; `None` if that is on a page
    /// that cannot be read.
    fn row_from(&self, db: &Connection, from: RecordNumber) -> rusqlite::Result<Option<RecordNumber>> {
        let columns = Decoded::COLUMNS;
        let select = format!("SELECT {columns} FROM stayfast_outbox WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT 1");
        let mut statement = db.prepare_cached(&select)?;
        let range = (self.row_at(from), self.row_at(self.next));
        let found = statement.query_row(range, |row| Decoded::new(row).and_then(|_| row.get::<_, i64>(0))).optional();
        let first = |id: Option<i64>| id.map_or(self.next, |id| from.plus((id - range.0) as u64));
        or_if_corrupt(found.map(|id| Some(first(id))), None)
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
        fn unreadable(&mut self, _: RecordNumber, _: &rusqlite::Error) -> bool {
            false
        }
        fn skipped(&mut self, _: RecordNumber, _: u64) -> bool {
            false
        }
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
    /// SQLite cannot read the pages that hold record `first`, and why. Is what lies behind them wanted?
    fn unreadable(&mut self, first: RecordNumber, why: &rusqlite::Error) -> bool;
    /// What was unreadable are these numbers.
    fn skipped(&mut self, first: RecordNumber, count: u64) -> bool;
}

/// How far a walk has come.
struct Walk<'a> {
    stream: &'a Stream,
    at: RecordNumber,
    /// Origin of the row before; it is looked for only if it is needed.
    before: Option<Origin>,
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
    let mut walk = Walk { stream, at: from.max(stream.trimmed), before: None };
    // A row may have begun before.
    let mut start = stream.row_with(db, walk.at)?;
    let mut failed = None;
    loop {
        let why = match walk.sound(db, start, visit) {
            Err(why) if is_corrupt(&why) => why,
            ended => return ended,
        };
        let first = walk.at;
        if !visit.unreadable(first, &why) {
            return Ok(());
        }
        // The same row twice would be no way ahead.
        let behind = stream.readable(db, if failed == Some(first) { first.next() } else { first })?;
        failed = Some(behind);
        let count = behind.0 - first.0;
        if (count > 0 && !visit.skipped(first, count)) || behind >= stream.next {
            return Ok(());
        }
        (walk.at, start) = (behind, stream.row_at(behind));
    }
}

impl Walk<'_> {
    /// As far as pages can be read, from the row with id `start` on.
    fn sound(&mut self, db: &Connection, start: i64, visit: &mut impl Visit) -> rusqlite::Result<()> {
        let columns = Decoded::COLUMNS;
        let select = format!("SELECT {columns} FROM stayfast_outbox WHERE id >= ?1 AND id < ?2 ORDER BY id");
        let mut statement = db.prepare_cached(&select)?;
        let mut rows = statement.query((start, self.stream.row_at(self.stream.next)))?;
        while let Some(row) = rows.next()? {
            let Some(found) = Decoded::new(row)? else {
                visit.damaged(row.get(0)?);
                continue;
            };
            if found.end() <= self.at {
                continue;
            }
            if found.first > self.at && !gap(self.at, found.first, &found.origin, &self.before(db)?, visit) {
                return Ok(());
            }
            self.at = self.at.max(found.first);
            if !show(&found, self.at, visit) {
                return Ok(());
            }
            (self.at, self.before) = (found.end(), Some(found.origin));
        }
        if self.at < self.stream.next {
            gap(self.at, self.stream.next, &self.stream.tail, &self.before(db)?, visit);
        }
        Ok(())
    }

    fn before(&self, db: &Connection) -> rusqlite::Result<Origin> {
        let unknown = Origin { first: self.stream.trimmed, lineage: Lineage::NONE, parent: Lineage::NONE };
        self.before.map_or_else(|| or_if_corrupt(self.stream.before(db, self.at), unknown), Ok)
    }
}

/// Pages were read, but they are not what SQLite has written.
pub(crate) fn is_corrupt(e: &rusqlite::Error) -> bool {
    e.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt)
}

fn or_if_corrupt<T>(result: rusqlite::Result<T>, instead: T) -> rusqlite::Result<T> {
    match result {
        Err(e) if is_corrupt(&e) => Ok(instead),
        other => other,
    }
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
