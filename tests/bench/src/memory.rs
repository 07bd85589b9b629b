//! Stores that cost next to nothing, so that the transport is what is measured: one stream, in memory.

use stayfast_store::{
    Accepted, AppendError, Appended, Cursor, CursorKey, Delivery, Inbox, Level, Limits, Loaded, Origin, Outbox,
    Position, Run, RunFull, StoreError, Tail,
};
use stayfast_units::{Lineage, RecordNumber, StoreId};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The only stream.
pub const STREAM: &str = "bench";

const ORIGIN: Origin = Origin { first: RecordNumber::ZERO, lineage: Lineage(1), parent: Lineage::NONE };

/// An outbox of one stream. Clones are the same outbox, so that an application may append beside the driver.
///
/// ```
/// use stayfast_bench::memory::{Shelf, STREAM};
/// use stayfast_store::Outbox;
/// use stayfast_units::RecordNumber;
///
/// let mut shelf = Shelf::default();
/// shelf.append(STREAM, &[b"a", b"b"])?;
/// let loaded = shelf.read(STREAM, RecordNumber(1), 100)?;
/// assert_eq!(loaded[0].run.body(RecordNumber(1)), b"b");
/// shelf.trim(STREAM, RecordNumber(2))?;
/// assert!(shelf.read(STREAM, RecordNumber(0), 100)?.is_empty());
/// # Ok::<(), stayfast_store::AppendError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Shelf(Arc<Mutex<Held>>);

#[derive(Debug, Default)]
struct Held {
    /// Each append is a run.
    runs: VecDeque<Run>,
    bytes: u64,
    trimmed: RecordNumber,
    next: RecordNumber,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn too_much(_: RunFull) -> StoreError {
    StoreError::DiskFull
}

impl Held {
    fn append(&mut self, records: &[&[u8]]) -> Result<Appended, StoreError> {
        let first = self.next;
        let bytes = records.iter().map(|record| record.len()).sum();
        let mut run = Run::from_parts(first, Vec::with_capacity(records.len()), Vec::with_capacity(bytes), Vec::new())
            .map_err(|e| StoreError::Io(e.to_string()))?;
        records.iter().try_for_each(|record| run.push(record)).map_err(too_much)?;
        self.bytes += bytes as u64;
        self.next = run.end();
        self.runs.push_back(run);
        Ok(Appended { first, count: records.len() as u32, origin: ORIGIN })
    }

    /// Whole runs are copied whole.
    fn read(&self, from: RecordNumber, max_bytes: usize) -> Result<Vec<Loaded>, StoreError> {
        let (mut loaded, mut left) = (Vec::new(), max_bytes);
        let start = self.runs.partition_point(|run| run.end() <= from);
        for run in self.runs.range(start..) {
            let whole = run.first >= from && run.byte_len() <= left;
            let part =
                if whole { run.clone() } else { some_of(run, from, left, loaded.is_empty()).map_err(too_much)? };
            if part.is_empty() {
                break;
            }
            left = left.saturating_sub(part.byte_len());
            loaded.push(Loaded { origin: ORIGIN, run: part });
            if !whole || left == 0 {
                break;
            }
        }
        Ok(loaded)
    }
}

/// The records of `run` from `from` on that fit into `left` bytes; one if none does and `at_least_one`.
fn some_of(run: &Run, from: RecordNumber, mut left: usize, at_least_one: bool) -> Result<Run, RunFull> {
    let mut part = Run::new(run.first.max(from));
    while part.end() < run.end() {
        let body = run.body(part.end());
        if body.len() > left && !(at_least_one && part.is_empty()) {
            break;
        }
        left = left.saturating_sub(body.len());
        part.push(body)?;
    }
    Ok(part)
}

impl Outbox for Shelf {
    fn store_id(&self) -> StoreId {
        StoreId(1)
    }

    fn append(&mut self, stream: &str, records: &[&[u8]]) -> Result<Appended, AppendError> {
        let mut held = lock(&self.0);
        Limits::default().check(stream, records, held.bytes)?;
        Ok(held.append(records)?)
    }

    fn tails(&mut self) -> Result<Vec<Tail>, StoreError> {
        let held = lock(&self.0);
        let tail = Tail { stream: STREAM.into(), trimmed: held.trimmed, next: held.next };
        Ok(if held.next == RecordNumber::ZERO { Vec::new() } else { vec![tail] })
    }

    fn read(&mut self, _: &str, from: RecordNumber, max_bytes: usize) -> Result<Vec<Loaded>, StoreError> {
        lock(&self.0).read(from, max_bytes)
    }

    fn trim(&mut self, _: &str, to: RecordNumber) -> Result<(), StoreError> {
        let mut held = lock(&self.0);
        held.trimmed = held.trimmed.max(to.min(held.next));
        while let Some(run) = held.runs.pop_front_if(|run| run.end() <= to) {
            held.bytes -= run.byte_len() as u64;
        }
        Ok(())
    }

    fn changed(&mut self) -> Result<bool, StoreError> {
        Ok(false)
    }

    fn note(&mut self, _: &str, _: &str) -> Result<(), StoreError> {
        Ok(())
    }

    fn notes(&mut self) -> Result<Vec<(String, String)>, StoreError> {
        Ok(Vec::new())
    }
}

/// The cursor of the only stream. Clones are the same cursor: the application moves it as it stores a batch, and the
/// driver reads it.
#[derive(Clone, Debug, Default)]
pub struct Place(Arc<Mutex<Option<Cursor>>>);

impl Place {
    fn at(&self) -> Position {
        lock(&self.0).as_ref().map(|cursor| cursor.position).unwrap_or_default()
    }
}

impl Inbox for Place {
    fn level(&self) -> Level {
        // A claim, so that the sender lets records go; nothing here survives anything.
        Level::Power
    }

    fn cursors(&mut self) -> Result<Vec<Cursor>, StoreError> {
        Ok(lock(&self.0).iter().cloned().collect())
    }

    fn cursor(&mut self, _: &CursorKey) -> Result<Position, StoreError> {
        Ok(self.at())
    }

    fn deliver(&mut self, delivery: &Delivery) -> Result<Accepted, StoreError> {
        let mut cursor = lock(&self.0);
        let at = cursor.as_ref().map(|cursor| cursor.position).unwrap_or_default();
        if at != delivery.from {
            return Ok(Accepted::Raced(at));
        }
        match &mut *cursor {
            Some(cursor) => cursor.position = delivery.to,
            None => *cursor = Some(Cursor { key: delivery.key.clone(), position: delivery.to }),
        }
        Ok(Accepted::Fresh)
    }

    fn remember_peer(&mut self, _: &str, _: &str) -> Result<(), StoreError> {
        Ok(())
    }

    fn peers(&mut self) -> Result<Vec<(String, String)>, StoreError> {
        Ok(Vec::new())
    }
}
