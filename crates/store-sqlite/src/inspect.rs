use crate::cursor;
use crate::outbox::{SqliteOutbox, Unreadable};
use crate::walk::{Stream, Visit, walk};
use stayfast_store::{Cursor, Item, Loaded, Origin, StoreError};
use stayfast_units::RecordNumber;

/// Bytes of bodies looked at in one transaction, so that writers are never held up.
const WINDOW: usize = 4 << 20;
/// Most damages that a verdict lists one by one.
const MAX_LISTED: usize = 1024;

/// What an outbox holds of one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamInfo {
    /// Name of the stream.
    pub name: String,
    /// First number held: all records below are known to be stored.
    pub first: RecordNumber,
    /// Number of the next record to be appended.
    pub next: RecordNumber,
    /// Bytes of bodies held; a batch is held until its last record is stored.
    pub bytes: u64,
}

impl StreamInfo {
    /// Records that are not yet known to be stored.
    pub fn records(&self) -> u64 {
        self.next.0.saturating_sub(self.first.0)
    }
}

/// Consecutive records that are damaged or missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Name of the stream.
    pub stream: String,
    /// First number.
    pub first: RecordNumber,
    /// How many.
    pub count: u64,
}

/// What [`SqliteOutbox::verify`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Sound records.
    pub records: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// Damaged or missing records, and those on pages that cannot be read.
    pub lost: u64,
    /// Where they are damaged or missing, and a receiver is told so: the first 1024.
    pub damage: Vec<Damage>,
    /// Where pages cannot be read, so that the stream stands still before them: the first 1024.
    pub unreadable: Vec<Damage>,
    /// What SQLite's own check of the file says; empty if it is sound.
    pub structure: Vec<String>,
}

impl Verdict {
    /// True if nothing was found.
    pub fn is_sound(&self) -> bool {
        self.lost == 0 && self.structure.is_empty()
    }
}

impl SqliteOutbox {
    /// The cursors, if the file is an inbox as well, or one only.
    pub fn cursors(&mut self) -> Result<Vec<Cursor>, StoreError> {
        Ok(self.owned.read(cursor::all)?)
    }

    /// All streams, sorted by name.
    pub fn streams(&mut self) -> Result<Vec<StreamInfo>, StoreError> {
        let streams = self.owned.read(|db| Ok(Stream::all(db)?))?;
        let info = |s: Stream| StreamInfo { name: s.name, first: s.trimmed, next: s.next, bytes: s.bytes };
        Ok(streams.into_iter().map(info).collect())
    }

    /// Shows the records of a stream from `from` on, in order, until `show` returns false or there are no more. Returns
    /// what had to be left out because its pages cannot be read: the first 1024 places.
    pub fn export(
        &mut self,
        stream: &str,
        from: RecordNumber,
        mut show: impl FnMut(&Origin, Item<'_>) -> bool,
    ) -> Result<Vec<Damage>, StoreError> {
        let (mut at, mut left_out) = (from, Vec::new());
        loop {
            let (window, unreadable) = self.read_window(stream, at, WINDOW, true)?;
            let Some(last) = window.last() else {
                let Some(Unreadable { first, count: count @ 1.., .. }) = unreadable else { return Ok(left_out) };
                list(&mut left_out, stream, first, count);
                at = first.plus(count);
                continue;
            };
            at = last.run.end();
            let mut items = window.iter().flat_map(|Loaded { origin, run }| run.iter().map(move |item| (origin, item)));
            if !items.all(|(origin, item)| show(origin, item)) {
                return Ok(left_out);
            }
        }
    }

    /// Checks every checksum and the structure of the file. Damaged rows are copied to the quarantine, as when they
    /// are read, unless it was opened read-only.
    pub fn verify(&mut self) -> Result<Verdict, StoreError> {
        let mut auditor = Auditor::default();
        for stream in self.owned.read(|db| Ok(Stream::all(db)?))? {
            auditor.begin(&stream);
            while auditor.at < stream.next {
                let start = auditor.next_window();
                self.owned.read(|db| {
                    // What was trimmed in the meantime is nobody's loss.
                    let now = Stream::find(db, &stream.name)?;
                    Ok(walk(db, now.as_ref().unwrap_or(&stream), start, &mut auditor)?)
                })?;
                self.quarantine(&std::mem::take(&mut auditor.damaged));
                if auditor.at == start {
                    break;
                }
            }
        }
        auditor.verdict.structure = self.owned.read(|db| {
            let mut statement = db.prepare("PRAGMA integrity_check(100)")?;
            let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
            // The check itself may end at a bad page.
            Ok(lines.map(|line| line.unwrap_or_else(|e| e.to_string())).collect())
        })?;
        auditor.verdict.structure.retain(|line| line != "ok");
        Ok(auditor.verdict)
    }
}

#[derive(Default)]
struct Auditor {
    verdict: Verdict,
    stream: String,
    at: RecordNumber,
    /// Bytes still to look at in this transaction.
    window: usize,
    damaged: Vec<i64>,
}

impl Auditor {
    fn begin(&mut self, stream: &Stream) {
        stream.name.clone_into(&mut self.stream);
        self.at = stream.trimmed;
    }

    fn next_window(&mut self) -> RecordNumber {
        self.window = WINDOW;
        self.at
    }
}

impl Visit for Auditor {
    fn record(&mut self, _: &Origin, number: RecordNumber, body: &[u8]) -> bool {
        self.verdict.records += 1;
        self.verdict.bytes += body.len() as u64;
        self.at = number.next();
        self.window = self.window.saturating_sub(body.len() + 1);
        self.window > 0
    }

    fn gap(&mut self, _: &Origin, first: RecordNumber, count: u64) -> bool {
        self.verdict.lost += count;
        self.at = first.plus(count);
        list(&mut self.verdict.damage, &self.stream, first, count);
        true
    }

    fn damaged(&mut self, id: i64) {
        self.damaged.push(id);
    }

    fn unreadable(&mut self, _: RecordNumber, _: &rusqlite::Error) -> bool {
        true
    }

    fn skipped(&mut self, first: RecordNumber, count: u64) -> bool {
        self.verdict.lost += count;
        self.at = first.plus(count);
        list(&mut self.verdict.unreadable, &self.stream, first, count);
        true
    }
}

/// Adds to a list of damages that is in order.
pub(crate) fn list(listed: &mut Vec<Damage>, stream: &str, first: RecordNumber, count: u64) {
    let more = listed.len() < MAX_LISTED;
    match listed.last_mut().filter(|last| last.stream == stream && last.first.plus(last.count) == first) {
        Some(last) => last.count += count,
        None if more => listed.push(Damage { stream: stream.to_string(), first, count }),
        None => {}
    }
}
