//! One operation type, one oracle, one check: for the property test, the fuzzer and every adapter. Feature `fuzzing`.

use crate::conformance::Subject;
use crate::{
    Accepted, AppendError, CursorKey, Delivery, Fault, Inbox, Item, Level, Loaded, Memory, On, Origin, Outbox,
    Position, Run, StoreError,
};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use arbitrary::{Arbitrary, Unstructured};
use stayfast_units::{Lineage, RecordNumber, StoreId};

/// What is done to a store. Small numbers are taken modulo what makes sense.
#[derive(Clone, Debug, Arbitrary)]
pub enum Op {
    /// Appends records of these lengths.
    Append {
        /// Which stream.
        stream: u8,
        /// How many records, modulo 9.
        count: u8,
        /// Their lengths, bytes.
        lens: [u8; 8],
    },
    /// Reads and compares.
    Read {
        /// Which stream.
        stream: u8,
        /// From here.
        from: u8,
        /// At most this many bytes.
        max_bytes: u16,
    },
    /// Trims.
    Trim {
        /// Which stream.
        stream: u8,
        /// To here.
        to: u8,
    },
    /// Delivers some records to a cursor, from where it stands or from beside it.
    Deliver {
        /// Which stream.
        stream: u8,
        /// How many records, modulo 9.
        count: u8,
        /// Their lengths, bytes.
        lens: [u8; 8],
        /// From so many numbers beside the cursor.
        beside: i8,
        /// From another lineage than the cursor's.
        other_lineage: bool,
    },
    /// `kill -9` and a new session.
    Reopen,
    /// Loss of power ([`Memory`] only; other subjects reopen).
    Crash {
        /// Chooses what survives.
        seed: u64,
    },
    /// The next append or delivery goes wrong ([`Memory`] only).
    Fault {
        /// A delivery instead of an append.
        deliver: bool,
        /// Which fault.
        kind: u8,
    },
}

/// Makes operations of all of `bytes`. The generator of `Vec<Op>` flips a coin before each operation, so that most of
/// what it makes is empty or short.
pub fn ops(bytes: &[u8]) -> Vec<Op> {
    let mut rest = Unstructured::new(bytes);
    let mut ops = Vec::new();
    while let (false, Ok(op)) = (rest.is_empty(), Op::arbitrary(&mut rest)) {
        ops.push(op);
    }
    ops
}

/// A store that can also be harmed.
pub trait Harm: Subject {
    /// Loss of power, and a new session.
    fn crash(&mut self, store: Self::Store, seed: u64) -> Self::Store {
        let _ = seed;
        self.reopen(store)
    }
    /// Makes an operation fail; true if it will.
    fn inject(&mut self, store: &mut Self::Store, on: On, fault: Fault) -> bool {
        let _ = (store, on, fault);
        false
    }
    /// All records stored under `key`, in the order stored.
    fn effects(&mut self, store: &mut Self::Store, key: &CursorKey) -> Vec<(RecordNumber, Vec<u8>)>;
}

/// Runs the operations on [`Memory`], at the level of power and below it, and compares with the oracle.
pub fn check(ops: &[Op]) {
    run(&mut Model { sessions: 0, level: Level::Power }, ops);
    run(&mut Model { sessions: 0, level: Level::Process }, ops);
}

/// Runs the operations on any subject and compares with the oracle. Panics where they differ.
pub fn run<S: Harm<Store: Outbox + Inbox>>(subject: &mut S, ops: &[Op]) {
    let mut store = subject.fresh();
    let mut oracle = Oracle::new(Inbox::level(&store) >= Level::Power);
    for op in ops {
        match op {
            Op::Append { stream, count, lens } => {
                oracle.append(&mut store, stream % STREAMS, &lens[..usize::from(count % 9)]);
            }
            Op::Read { stream, from, max_bytes } => oracle.read(&mut store, stream % STREAMS, *from, *max_bytes),
            Op::Trim { stream, to } => oracle.trim(&mut store, stream % STREAMS, *to),
            Op::Deliver { stream, count, lens, beside, other_lineage } => {
                let lens = &lens[..usize::from(count % 9)];
                oracle.deliver(&mut store, stream % STREAMS, lens, *beside, *other_lineage);
            }
            Op::Reopen => {
                store = subject.reopen(store);
                oracle.reopened(&mut store, false);
            }
            Op::Crash { seed } => {
                store = subject.crash(store, *seed);
                oracle.reopened(&mut store, true);
            }
            Op::Fault { deliver, kind } => {
                let on = if *deliver { On::Deliver } else { On::Append };
                let fault = FAULTS[usize::from(*kind) % FAULTS.len()];
                oracle.faulty |= subject.inject(&mut store, on, fault);
            }
        }
    }
    store = subject.reopen(store);
    oracle.reopened(&mut store, false);
    oracle.finish(subject, &mut store);
}

const STREAMS: u8 = 3;
const FAULTS: [Fault; 6] = [Fault::Io, Fault::DiskFull, Fault::Unknown, Fault::Sync, Fault::Conflict, Fault::Stall(2)];

/// [`Memory`] as a subject.
struct Model {
    sessions: u32,
    level: Level,
}

impl Model {
    /// The seed of one more session: two are never equal, whatever the operations `choose`.
    fn seed(&mut self, choose: u64) -> u64 {
        self.sessions += 1;
        u64::from(self.sessions) << 32 | choose & u64::from(u32::MAX)
    }
}

impl Subject for Model {
    type Store = Memory;
    fn fresh(&mut self) -> Memory {
        Memory::new(self.seed(0)).with_level(self.level)
    }
    fn reopen(&mut self, mut store: Memory) -> Memory {
        store.reopen(self.seed(0));
        store
    }
}

impl Harm for Model {
    fn crash(&mut self, mut store: Memory, seed: u64) -> Memory {
        store.crash(self.seed(seed));
        store
    }
    fn inject(&mut self, store: &mut Memory, on: On, fault: Fault) -> bool {
        store.inject(on, fault);
        true
    }
    fn effects(&mut self, store: &mut Memory, key: &CursorKey) -> Vec<(RecordNumber, Vec<u8>)> {
        let record = |item| match item {
            Item::Record(number, body) => (number, body.to_vec()),
            Item::Hole(..) => panic!("nothing made a hole"),
        };
        store.effects(key).map(record).collect()
    }
}

/// What must be there, by the simplest means.
struct Oracle {
    /// Appends and deliveries are synced, so that a loss of power takes none of them.
    synced: bool,
    /// A fault was injected, so that errors and lost races are in order.
    faulty: bool,
    poisoned: bool,
    /// Draws bodies, no two alike, and lineages of deliveries.
    counter: u64,
    streams: BTreeMap<u8, Stream>,
    sinks: BTreeMap<u8, Sink>,
}

/// One stream of the outbox.
#[derive(Default)]
struct Stream {
    /// Every record that was appended and not lost.
    records: Vec<(Origin, Vec<u8>)>,
    trimmed: usize,
    /// Records of an append of unknown outcome: they follow, or not.
    unsure: Vec<Vec<u8>>,
    /// Lineages ever seen.
    lineages: Vec<Lineage>,
    /// The session that numbered the last record goes on.
    session: bool,
}

/// One stream of the inbox.
#[derive(Default)]
struct Sink {
    /// The lineage and body of every record that was delivered and not lost; its number is its place.
    effects: Vec<(Lineage, Vec<u8>)>,
    /// Of a delivery of unknown outcome: they follow, or not.
    unsure: Vec<(Lineage, Vec<u8>)>,
}

fn name(stream: u8) -> String {
    format!("stream {stream}")
}

fn key(stream: u8) -> CursorKey {
    CursorKey { sender: "sender".into(), store: StoreId(7), stream: name(stream).into() }
}

impl Oracle {
    fn new(synced: bool) -> Oracle {
        let (streams, sinks) = Default::default();
        Oracle { synced, faulty: false, poisoned: false, counter: 0, streams, sinks }
    }

    fn body(&mut self, len: u8) -> Vec<u8> {
        self.counter += 1;
        let mut body = self.counter.to_be_bytes().to_vec();
        body.resize(usize::from(len), 0xa5);
        body
    }

    /// Is this error in order? Notes if the store accepts nothing more.
    fn excuse(&mut self, error: &StoreError) {
        assert!(self.faulty, "an error without a fault: {error:?}");
        assert!(!self.poisoned || *error == StoreError::Poisoned, "a poisoned store said {error:?}");
        self.poisoned |= *error == StoreError::Poisoned;
    }

    fn append(&mut self, store: &mut impl Outbox, stream: u8, lens: &[u8]) {
        let bodies: Vec<Vec<u8>> = lens.iter().map(|&len| self.body(len)).collect();
        let slices: Vec<&[u8]> = bodies.iter().map(|b| &b[..]).collect();
        let was_poisoned = self.poisoned;
        let outcome = store.append(&name(stream), &slices);
        let s = self.streams.entry(stream).or_default();
        match outcome {
            _ if slices.is_empty() => assert_eq!(outcome, Err(AppendError::Batch { records: 0, bytes: 0 })),
            Ok(appended) => {
                let expected = (s.records.len() as u64, bodies.len());
                assert_eq!((appended.first.0, appended.count as usize), expected, "numbers go on");
                s.take(appended.origin, bodies);
            }
            Err(AppendError::Store(error)) => {
                if matches!(error, StoreError::Io(_)) || error == StoreError::Poisoned && !was_poisoned {
                    s.unsure = bodies;
                }
                self.excuse(&error);
                if !self.poisoned {
                    self.settle(store, false);
                }
            }
            Err(error) => panic!("append: {error:?}"),
        }
    }

    /// Compares the tails; finds out about appends of unknown outcome, and after a `crash` what is lost.
    fn settle(&mut self, store: &mut impl Outbox, crash: bool) {
        let tails = store.tails().expect("tails");
        assert!(tails.is_sorted_by(|a, b| a.stream < b.stream));
        for (&stream, s) in &mut self.streams {
            let tail = tails.iter().find(|t| *t.stream == *name(stream));
            let (trimmed, next) = tail.map_or((0, 0), |t| (t.trimmed.0 as usize, t.next.0 as usize));
            let unsure = core::mem::take(&mut s.unsure);
            if !unsure.is_empty() && next == s.records.len() + unsure.len() {
                let first = store.read(&name(stream), RecordNumber(s.records.len() as u64), 0).expect("reads");
                s.take(first[0].origin, unsure);
            }
            assert!(next == s.records.len() || crash && !self.synced && next < s.records.len(), "records are lost");
            s.records.truncate(next);
            assert!(trimmed == s.trimmed || crash && trimmed < s.trimmed, "a trim is lost");
            s.trimmed = trimmed;
        }
    }

    fn read(&mut self, store: &mut impl Outbox, stream: u8, from: u8, max_bytes: u16) {
        match store.read(&name(stream), RecordNumber(u64::from(from)), usize::from(max_bytes)) {
            Ok(loaded) => {
                self.streams.entry(stream).or_default().check(&loaded, from.into(), max_bytes.into());
            }
            Err(error) => self.excuse(&error),
        }
    }

    fn trim(&mut self, store: &mut impl Outbox, stream: u8, to: u8) {
        match store.trim(&name(stream), RecordNumber(u64::from(to))) {
            Ok(()) => {
                let s = self.streams.entry(stream).or_default();
                s.trimmed = s.trimmed.max(usize::from(to)).min(s.records.len());
            }
            Err(error) => self.excuse(&error),
        }
    }

    fn deliver(&mut self, store: &mut impl Inbox, stream: u8, lens: &[u8], beside: i8, other_lineage: bool) {
        let bodies: Vec<Vec<u8>> = lens.iter().map(|&len| self.body(len)).collect();
        let was_poisoned = self.poisoned;
        let sink = self.sinks.entry(stream).or_default();
        let at = sink.position();
        let lineage = if bodies.len() > 4 { at.lineage } else { Lineage(self.counter) };
        let next = RecordNumber(at.next.0.saturating_add_signed(i64::from(beside % 3)));
        let from = Position { next, lineage: Lineage(at.lineage.0 + u64::from(other_lineage)) };
        let mut run = Run::new(next);
        bodies.iter().for_each(|body| run.push(body).expect("fits"));
        let to = Position { next: run.end(), lineage };
        let effects = bodies.into_iter().map(|body| (lineage, body)).collect::<Vec<_>>();
        if effects.is_empty() {
            return;
        }
        match store.deliver(&Delivery { key: key(stream), from, to, run }) {
            Ok(Accepted::Fresh) => {
                assert_eq!(from, at, "taken from where the cursor does not stand");
                sink.effects.extend(effects);
            }
            Ok(Accepted::Raced(now)) if from == at => {
                assert!(self.faulty && now == to, "refused although the cursor stands there");
                sink.effects.extend(effects);
            }
            Ok(Accepted::Raced(now)) => assert_eq!(now, at),
            Err(error) => {
                let unknown = matches!(error, StoreError::Io(_)) || error == StoreError::Poisoned && !was_poisoned;
                if unknown && from == at {
                    sink.unsure = effects;
                }
                self.excuse(&error);
                if !self.poisoned {
                    self.settle_cursors(store, false);
                }
            }
        }
    }

    /// As [`settle`](Oracle::settle), for the cursors.
    fn settle_cursors(&mut self, store: &mut impl Inbox, crash: bool) {
        for (&stream, sink) in &mut self.sinks {
            let now = store.cursor(&key(stream)).expect("cursor");
            let unsure = core::mem::take(&mut sink.unsure);
            if !unsure.is_empty() && now.next.0 as usize == sink.effects.len() + unsure.len() {
                sink.effects.extend(unsure);
            }
            if crash && !self.synced {
                sink.effects.truncate(now.next.0 as usize);
            }
            assert_eq!(now, sink.position(), "the cursor");
        }
    }

    fn reopened(&mut self, store: &mut (impl Outbox + Inbox), crash: bool) {
        // A poisoned store finds out what the disk has, as after a loss of power.
        let crash = core::mem::take(&mut self.poisoned) || crash;
        self.settle(store, crash);
        self.streams.values_mut().for_each(|s| s.session = false);
        self.settle_cursors(store, crash);
    }

    fn finish<S: Harm<Store: Outbox + Inbox>>(&mut self, subject: &mut S, store: &mut S::Store) {
        for (&stream, s) in &self.streams {
            let loaded = store.read(&name(stream), RecordNumber(0), usize::MAX).expect("reads");
            s.check(&loaded, 0, usize::MAX);
        }
        for (&stream, sink) in &self.sinks {
            let expected = (0..).map(RecordNumber).zip(sink.effects.iter().map(|(_, body)| body.clone()));
            let found = subject.effects(store, &key(stream));
            assert_eq!(found, expected.collect::<Vec<_>>(), "what was delivered is there once");
        }
    }
}

impl Stream {
    /// The store has taken these records.
    fn take(&mut self, origin: Origin, bodies: Vec<Vec<u8>>) {
        let last = self.records.last().map(|(origin, _)| *origin);
        if self.session && last.is_some() {
            assert_eq!(Some(origin), last, "one session, one lineage");
        } else {
            let parent = last.map_or(Lineage::NONE, |origin| origin.lineage);
            assert_eq!((origin.first.0 as usize, origin.parent), (self.records.len(), parent));
            assert!(
                !self.lineages.contains(&origin.lineage) && origin.lineage != Lineage::NONE,
                "a lineage came twice"
            );
            self.lineages.push(origin.lineage);
        }
        self.records.extend(bodies.into_iter().map(|body| (origin, body)));
        self.session = true;
    }

    fn check(&self, loaded: &[Loaded], from: usize, max_bytes: usize) {
        let (mut at, mut bytes) = (from.max(self.trimmed), 0);
        let first = at;
        assert!(loaded.is_sorted_by(|a, b| a.origin != b.origin), "one run for each lineage");
        for (origin, item) in loaded.iter().flat_map(|l| l.run.iter().map(move |item| (l.origin, item))) {
            let (expected, body) = &self.records[at];
            assert_eq!(item, Item::Record(RecordNumber(at as u64), body));
            assert_eq!(origin, *expected);
            (at, bytes) = (at + 1, bytes + body.len());
        }
        assert!(bytes <= max_bytes || at == first + 1, "too much");
        let more = self.records.get(at).is_some_and(|(_, body)| at == first || bytes + body.len() <= max_bytes);
        assert!(!more, "there is more");
    }
}

impl Sink {
    fn position(&self) -> Position {
        let lineage = self.effects.last().map_or(Lineage::NONE, |(lineage, _)| *lineage);
        Position { next: RecordNumber(self.effects.len() as u64), lineage }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_agrees_with_the_oracle() {
        bolero::check!()
            .with_test_time(core::time::Duration::from_secs(4))
            .with_max_len(2048)
            .for_each(|bytes: &[u8]| check(&ops(bytes)));
    }

    /// What is trimmed is decided when it is asked, not when it reaches the disk.
    #[test]
    fn a_trim_does_not_reach_records_appended_later() {
        let append = Op::Append { stream: 0, count: 1, lens: [0; 8] };
        for seed in 0..16 {
            check(&[append.clone(), Op::Trim { stream: 0, to: 2 }, append.clone(), Op::Crash { seed }]);
        }
    }

    /// A crash may choose any number: the session after it still draws a lineage that no session before it had.
    #[test]
    fn no_choice_of_a_crash_brings_an_older_session_back() {
        let append = Op::Append { stream: 0, count: 1, lens: [0; 8] };
        for seed in 0..16 {
            check(&[Op::Reopen, append.clone(), Op::Crash { seed }, append.clone()]);
        }
    }
}
