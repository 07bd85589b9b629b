use crate::{CursorKey, Hole, Item, Loaded, MAX_BATCH_RECORDS, Origin, Position, Run};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use stayfast_units::RecordNumber;

/// The tables.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    pub streams: BTreeMap<Arc<str>, Stream>,
    pub cursors: BTreeMap<CursorKey, Position>,
    pub effects: BTreeMap<CursorKey, Vec<Run>>,
    pub notes: BTreeMap<String, String>,
    pub peers: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    pub trimmed: RecordNumber,
    pub next: RecordNumber,
    /// Of record `next - 1`.
    pub tail: Origin,
    /// One per append.
    rows: VecDeque<Row>,
    /// Of their bodies.
    bytes: u64,
}

#[derive(Clone, Debug)]
struct Row {
    origin: Origin,
    run: Run,
}

/// One transaction.
#[derive(Clone, Debug)]
pub(super) enum Write {
    Append { stream: Arc<str>, origin: Origin, run: Run },
    Trim { stream: Arc<str>, to: RecordNumber },
    Deliver { key: CursorKey, to: Position, run: Option<Run> },
    Note { key: String, value: String },
    Peer { name: String, address: String },
}

impl Write {
    /// Synced at the level of power; in order in a log below it. The others are never synced for their own sake.
    pub fn is_logged(&self) -> bool {
        matches!(self, Write::Append { .. } | Write::Deliver { .. })
    }
}

impl Disk {
    pub fn apply(&mut self, write: &Write) {
        match write {
            Write::Append { stream, origin, run } => {
                let s = self.streams.entry(stream.clone()).or_default();
                s.next = run.end();
                s.tail = *origin;
                s.bytes += run.byte_len() as u64;
                s.rows.push_back(Row { origin: *origin, run: run.clone() });
            }
            Write::Trim { stream, to } => {
                if let Some(s) = self.streams.get_mut(stream) {
                    s.trimmed = s.trimmed.max(*to).min(s.next);
                    while let Some(row) = s.rows.pop_front_if(|row| row.run.end() <= s.trimmed) {
                        s.bytes -= row.run.byte_len() as u64;
                    }
                }
            }
            Write::Deliver { key, to, run } => {
                self.cursors.insert(key.clone(), *to);
                if let Some(run) = run {
                    self.effects.entry(key.clone()).or_default().push(run.clone());
                }
            }
            Write::Note { key, value } => {
                self.notes.insert(key.clone(), value.clone());
            }
            Write::Peer { name, address } => {
                self.peers.insert(name.clone(), address.clone());
            }
        }
    }

    /// The stream's name, shared if it is known.
    pub fn name(&self, stream: &str) -> Arc<str> {
        self.streams.get_key_value(stream).map_or_else(|| stream.into(), |(name, _)| name.clone())
    }

    /// Bytes of bodies in the outbox.
    pub fn bytes(&self) -> u64 {
        self.streams.values().map(|s| s.bytes).sum()
    }

    pub fn read(&self, stream: &str, from: RecordNumber, max_bytes: usize) -> Vec<Loaded> {
        let mut loaded: Vec<Loaded> = Vec::new();
        let Some(s) = self.streams.get(stream) else { return loaded };
        let from = from.max(s.trimmed);
        let (mut bytes, mut count) = (0usize, 0usize);
        for row in s.rows.iter().skip(s.rows.partition_point(|row| row.run.end() <= from)) {
            for item in row.run.iter().filter(|item| item.number() >= from) {
                bytes += if let Item::Record(_, body) = item { body.len() } else { 0 };
                count += 1;
                if count > 1 && bytes > max_bytes || count > MAX_BATCH_RECORDS {
                    return loaded;
                }
                if loaded.last().is_none_or(|l| l.origin != row.origin) {
                    loaded.push(Loaded { origin: row.origin, run: Run::new(item.number()) });
                }
                if loaded.last_mut().is_none_or(|l| l.run.push_item(item).is_err()) {
                    return loaded;
                }
            }
        }
        loaded
    }

    pub fn punch(&mut self, stream: &str, number: RecordNumber, hole: Hole) -> bool {
        let Some(s) = self.streams.get_mut(stream) else { return false };
        let Some(row) = s.rows.iter_mut().find(|row| row.run.get(number).is_some()) else { return false };
        let mut run = Run::new(row.run.first);
        for item in row.run.iter() {
            let item = if item.number() == number { Item::Hole(number, hole) } else { item };
            if run.push_item(item).is_err() {
                return false;
            }
        }
        s.bytes -= (row.run.byte_len() - run.byte_len()) as u64;
        row.run = run;
        true
    }
}
