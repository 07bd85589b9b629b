//! The model of one node's store, with injected faults, for the simulator and as the measure of every adapter.

mod disk;
mod fault;

pub use fault::{Fault, On};

use crate::{
    Accepted, AppendError, Appended, Cursor, CursorKey, Delivery, Hole, Inbox, Item, Level, Limits, Loaded, Origin,
    Outbox, Position, Run, StoreError, Tail,
};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use disk::{Disk, Write};
use fault::Outcome;
use stayfast_units::{Lineage, RecordNumber, StoreId};

/// Most writes that wait for a sync; beyond that the oldest reaches the disk by itself.
const MAX_UNSYNCED: usize = 256;

/// A store in memory that keeps the promises of a disk: what was synced survives [`crash`](Memory::crash), of the
/// rest any part does. Deterministic: the same calls with the same seeds give the same answers.
///
/// A clone is a snapshot. It must not go on as the same store session: give it a new one with
/// [`reopen`](Memory::reopen), as a restored backup or a cloned machine gets one.
///
/// ```
/// use stayfast_store::{Memory, Outbox};
/// use stayfast_units::RecordNumber;
///
/// let mut store = Memory::new(1);
/// let before = store.append("orders", &[b"a"])?;
/// store.trim("orders", RecordNumber(1))?;
/// store.crash(2);                                              // the record was synced, the trim may be lost
/// let after = store.append("orders", &[b"b"])?;
/// assert_eq!(after.first, RecordNumber(1));
/// assert_eq!(after.origin.parent, before.origin.lineage);      // a new session, a new lineage
/// # Ok::<(), stayfast_store::AppendError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Memory {
    id: StoreId,
    limits: Limits,
    level: Level,
    keeps_effects: bool,
    /// What a power cut leaves at least.
    disk: Disk,
    /// Written since, oldest first; a power cut leaves any part of it.
    unsynced: VecDeque<Write>,
    /// `disk` with all of `unsynced`: what every call sees.
    now: Disk,
    session: Session,
    faults: VecDeque<(On, Fault)>,
    poisoned: bool,
    changed: bool,
    syncs: u64,
}

/// One life of the store in a process: where its lineages come from.
#[derive(Clone, Debug)]
struct Session {
    state: u64,
    lineages: BTreeMap<Arc<str>, Lineage>,
}

impl Session {
    fn new(seed: u64) -> Session {
        Session { state: seed, lineages: BTreeMap::new() }
    }

    /// SplitMix64: a different seed gives a different sequence.
    fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Of the record that follows one of `tail` in `stream`: goes on only if this session numbered that record.
    fn origin(&mut self, stream: &Arc<str>, tail: Origin, next: RecordNumber) -> Origin {
        if tail.lineage != Lineage::NONE && self.lineages.get(stream) == Some(&tail.lineage) {
            return tail;
        }
        let lineage = Lineage(self.draw() | 1);
        self.lineages.insert(stream.clone(), lineage);
        Origin { first: next, lineage, parent: tail.lineage }
    }
}

impl Memory {
    /// An empty store whose id and lineages come from `seed`.
    pub fn new(seed: u64) -> Memory {
        let mut session = Session::new(seed);
        Memory {
            id: StoreId(session.draw() | 1),
            limits: Limits::default(),
            level: Level::Power,
            keeps_effects: true,
            disk: Disk::default(),
            unsynced: VecDeque::new(),
            now: Disk::default(),
            session,
            faults: VecDeque::new(),
            poisoned: false,
            changed: false,
            syncs: 0,
        }
    }

    /// With these limits instead of the default ones.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Memory {
        self.limits = limits;
        self
    }

    /// At another level than [`Level::Power`]. Below it, appends and deliveries are not synced either, and a power cut
    /// leaves a first part of them.
    #[must_use]
    pub fn with_level(mut self, level: Level) -> Memory {
        self.level = level;
        self
    }

    /// Its application looks at what is delivered and keeps nothing: [`effects`](Memory::effects) are empty. For runs
    /// whose bodies would fill the memory.
    #[must_use]
    pub fn without_effects(mut self) -> Memory {
        self.keeps_effects = false;
        self
    }

    /// `kill -9` and a new process: nothing that was written is lost, the session is. `seed` must be new. If a sync
    /// had failed, what the disk took of that write is found out now.
    pub fn reopen(&mut self, seed: u64) {
        if self.poisoned {
            return self.crash(seed);
        }
        self.begin(seed);
    }

    /// A power cut and a new process. Of what was not synced any subset survives, chosen by `seed`; of appends and
    /// deliveries (not synced below [`Level::Power`]) a first part, since a log keeps their order.
    pub fn crash(&mut self, seed: u64) {
        let mut coin = Session::new(seed ^ 0x6372_6173_6800_0000);
        let mut log_ended = false;
        for write in core::mem::take(&mut self.unsynced) {
            let lost = coin.draw() & 1 == 0;
            if write.is_logged() {
                log_ended |= lost;
            }
            if !(lost || write.is_logged() && log_ended) {
                self.disk.apply(&write);
            }
        }
        self.now = self.disk.clone();
        self.begin(seed);
    }

    /// Puts an old copy back and opens it: a stale backup. `seed` must be new.
    pub fn restore(&mut self, snapshot: &Memory, seed: u64) {
        self.id = snapshot.id;
        self.now = snapshot.now.clone();
        self.disk = self.now.clone();
        self.unsynced.clear();
        self.begin(seed);
    }

    fn begin(&mut self, seed: u64) {
        self.session = Session::new(seed);
        self.poisoned = false;
        self.changed = false;
        self.faults.clear();
    }

    /// The next operation of kind `on` meets `fault`. Several wait in order.
    pub fn inject(&mut self, on: On, fault: Fault) {
        self.faults.push_back((on, fault));
    }

    /// Damages a record (or drops it by its time to live): from now on it reads as `hole`. False if it is not held.
    pub fn punch(&mut self, stream: &str, number: RecordNumber, hole: Hole) -> bool {
        // What waits for a sync would bring the old body back after a crash.
        while let Some(write) = self.unsynced.pop_front() {
            self.disk.apply(&write);
        }
        self.disk.punch(stream, number, hole) && self.now.punch(stream, number, hole)
    }

    /// As [`Outbox::append`], of records that the caller has in a run, whatever their numbers in it. Their bodies are
    /// shared, so that a long backlog of equal records takes no memory.
    ///
    /// # Errors
    /// As [`Outbox::append`].
    pub fn append_run(&mut self, stream: &str, run: &Run) -> Result<Appended, AppendError> {
        let records: Vec<&[u8]> = run.iter().map(|item| run.body(item.number())).collect();
        self.limits.check(stream, &records, self.now.bytes())?;
        self.number(stream, run)
    }

    /// Appends what the limits allow.
    fn number(&mut self, stream: &str, run: &Run) -> Result<Appended, AppendError> {
        let outcome = self.meet(On::Append)?;
        let name = self.now.name(stream);
        let (next, tail) = self.now.streams.get(stream).map_or_else(Default::default, |s| (s.next, s.tail));
        let origin = self.session.origin(&name, tail, next);
        self.write(Write::Append { stream: name, origin, run: run.renumbered(next) }, outcome)?;
        Ok(Appended { first: next, count: run.len() as u32, origin })
    }

    /// Another session has written: [`Outbox::changed`] will say so.
    pub fn touch(&mut self) {
        self.changed = true;
    }

    /// Everything that deliveries have stored under `key`, in the order stored: the application's effects.
    pub fn effects(&self, key: &CursorKey) -> impl Iterator<Item = Item<'_>> {
        self.now.effects.get(key).into_iter().flatten().flat_map(|run| run.iter())
    }

    /// Syncs so far.
    pub fn syncs(&self) -> u64 {
        self.syncs
    }

    /// What the operation does: fails at once, or the outcome that [`write`](Memory::write) gives it.
    fn meet(&mut self, on: On) -> Result<Outcome, StoreError> {
        if self.poisoned {
            return Err(StoreError::Poisoned);
        }
        fault::meet(&mut self.faults, on)
    }

    /// Writes, and syncs if the level asks for it.
    fn write(&mut self, write: Write, outcome: Outcome) -> Result<(), StoreError> {
        self.now.apply(&write);
        let sync_failed = outcome == Outcome::Poisons;
        if write.is_logged() && self.level >= Level::Power && !sync_failed {
            self.syncs += 1;
            self.disk.apply(&write);
        } else {
            self.unsynced.push_back(write);
            if self.unsynced.len() > MAX_UNSYNCED
                && let Some(oldest) = self.unsynced.pop_front()
            {
                self.disk.apply(&oldest);
            }
        }
        self.poisoned |= sync_failed;
        match outcome {
            Outcome::Works => Ok(()),
            Outcome::WorksUnseen => Err(StoreError::Io("injected: done, but reported as failed".to_string())),
            Outcome::Poisons => Err(StoreError::Poisoned),
            Outcome::Races => Ok(()),
        }
    }
}

impl Outbox for Memory {
    fn store_id(&self) -> StoreId {
        self.id
    }

    fn append(&mut self, stream: &str, records: &[&[u8]]) -> Result<Appended, AppendError> {
        self.limits.check(stream, records, self.now.bytes())?;
        let mut run = Run::new(RecordNumber::ZERO);
        for record in records {
            run.push(record).map_err(|_| AppendError::Batch { records: records.len(), bytes: run.byte_len() })?;
        }
        self.number(stream, &run)
    }

    fn tails(&mut self) -> Result<Vec<Tail>, StoreError> {
        self.meet(On::Read)?;
        let tail =
            |(name, s): (&Arc<str>, &disk::Stream)| Tail { stream: name.clone(), trimmed: s.trimmed, next: s.next };
        Ok(self.now.streams.iter().map(tail).collect())
    }

    fn read(&mut self, stream: &str, from: RecordNumber, max_bytes: usize) -> Result<Vec<Loaded>, StoreError> {
        self.meet(On::Read)?;
        Ok(self.now.read(stream, from, max_bytes))
    }

    fn trim(&mut self, stream: &str, to: RecordNumber) -> Result<(), StoreError> {
        let outcome = self.meet(On::Trim)?;
        let Some((name, s)) = self.now.streams.get_key_value(stream) else { return Ok(()) };
        // It may reach the disk after the next append has.
        let (stream, to) = (name.clone(), to.min(s.next));
        self.write(Write::Trim { stream, to }, outcome)
    }

    fn changed(&mut self) -> Result<bool, StoreError> {
        Ok(core::mem::take(&mut self.changed))
    }

    fn note(&mut self, key: &str, value: &str) -> Result<(), StoreError> {
        self.write(Write::Note { key: key.to_string(), value: value.to_string() }, Outcome::Works)
    }

    fn notes(&mut self) -> Result<Vec<(String, String)>, StoreError> {
        Ok(self.now.notes.clone().into_iter().collect())
    }
}

impl Inbox for Memory {
    fn level(&self) -> Level {
        self.level
    }

    fn cursors(&mut self) -> Result<Vec<Cursor>, StoreError> {
        self.meet(On::Cursor)?;
        Ok(self.now.cursors.iter().map(|(key, &position)| Cursor { key: key.clone(), position }).collect())
    }

    fn cursor(&mut self, key: &CursorKey) -> Result<Position, StoreError> {
        self.meet(On::Cursor)?;
        Ok(self.now.cursors.get(key).copied().unwrap_or_default())
    }

    fn deliver(&mut self, d: &Delivery) -> Result<Accepted, StoreError> {
        let outcome = self.meet(On::Deliver)?;
        let at = self.now.cursors.get(&d.key).copied().unwrap_or_default();
        if at != d.from {
            return Ok(Accepted::Raced(at));
        }
        let run = self.keeps_effects.then(|| d.run.clone());
        self.write(Write::Deliver { key: d.key.clone(), to: d.to, run }, outcome)?;
        // A race that was lost: another node has stored these very records a moment before.
        Ok(if outcome == Outcome::Races { Accepted::Raced(d.to) } else { Accepted::Fresh })
    }

    fn remember_peer(&mut self, name: &str, address: &str) -> Result<(), StoreError> {
        self.write(Write::Peer { name: name.to_string(), address: address.to_string() }, Outcome::Works)
    }

    fn peers(&mut self) -> Result<Vec<(String, String)>, StoreError> {
        Ok(self.now.peers.clone().into_iter().collect())
    }
}
