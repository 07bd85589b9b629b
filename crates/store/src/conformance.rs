//! What every adapter must do, as scripts that run against it: [`outbox`] and [`inbox`]. They panic with what was
//! wrong. Feature `conformance`.
//!
//! ```
//! use stayfast_store::{Memory, conformance};
//!
//! struct Model(u64);
//! impl conformance::Subject for Model {
//!     type Store = Memory;
//!     fn fresh(&mut self) -> Memory {
//!         self.0 += 1;
//!         Memory::new(self.0)
//!     }
//!     fn reopen(&mut self, mut store: Memory) -> Memory {
//!         self.0 += 1;
//!         store.reopen(self.0);
//!         store
//!     }
//! }
//! conformance::outbox(&mut Model(0));
//! conformance::inbox(&mut Model(0));
//! ```

use crate::{
    Accepted, AppendError, CursorKey, Delivery, Inbox, Item, MAX_BATCH_RECORDS, MAX_STREAM_NAME, Outbox, Position, Run,
};
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use stayfast_units::{Lineage, RecordNumber, StoreId};

/// An adapter under test: how its stores are made and opened again.
pub trait Subject {
    /// The adapter.
    type Store;
    /// A new, empty store with default limits.
    fn fresh(&mut self) -> Self::Store;
    /// Ends the session and opens the same store in a new one.
    fn reopen(&mut self, store: Self::Store) -> Self::Store;
}

/// All scripts for an outbox.
pub fn outbox<S: Subject<Store: Outbox>>(subject: &mut S) {
    numbers_go_on(subject);
    every_session_has_a_lineage_of_its_own(subject);
    reads_are_cut_by_bytes_and_by_count(subject);
    trims_forget_and_numbers_stay(subject);
    what_is_refused_leaves_no_trace(subject);
    any_bytes_and_names_pass(subject);
    hints_are_kept(subject);
}

/// All scripts for an inbox.
pub fn inbox<S: Subject<Store: Inbox>>(subject: &mut S) {
    a_cursor_moves_once(subject);
    number_and_lineage_must_both_fit(subject);
    keys_are_apart(subject);
    peers_are_kept(subject);
}

/// The bodies from `from` on, read in windows of `max_bytes`; checks that they are consecutive and begin at `first`.
pub fn bodies(store: &mut impl Outbox, stream: &str, from: u64, first: u64, max_bytes: usize) -> Vec<Vec<u8>> {
    let (mut at, mut expected, mut bodies) = (RecordNumber(from), RecordNumber(first), Vec::new());
    loop {
        let loaded = store.read(stream, at, max_bytes).expect("reads");
        if loaded.is_empty() {
            return bodies;
        }
        for item in loaded.iter().flat_map(|l| l.run.iter()) {
            let Item::Record(number, body) = item else { panic!("{item:?} in a sound store") };
            assert_eq!(number, expected, "records are consecutive");
            expected = expected.next();
            bodies.push(body.to_vec());
        }
        at = expected;
    }
}

fn numbers_go_on<S: Subject<Store: Outbox>>(subject: &mut S) {
    let mut store = subject.fresh();
    let id = store.store_id();
    assert_ne!(id, StoreId::NONE);
    assert!(store.tails().expect("tails").is_empty(), "a new store has no streams");
    assert!(store.read("a", RecordNumber(0), 100).expect("reads").is_empty(), "an unknown stream is empty");
    store.trim("a", RecordNumber(5)).expect("trimming an unknown stream is nothing");
    assert!(store.tails().expect("tails").is_empty());
    for round in 0..10u64 {
        let a = store.append("a", &[b"one", b"two"]).expect("appends");
        let b = store.append("b", &[b"three"]).expect("appends");
        assert_eq!((a.first, a.count, b.first, b.count), (RecordNumber(2 * round), 2, RecordNumber(round), 1));
        if round % 3 == 2 {
            store = subject.reopen(store);
            assert_eq!(store.store_id(), id, "the store keeps its name");
        }
    }
    let tails: Vec<_> = store.tails().expect("tails").into_iter().map(|t| (t.stream.to_string(), t.next.0)).collect();
    assert_eq!(tails, [("a".to_string(), 20), ("b".to_string(), 10)]);
    assert_eq!(bodies(&mut store, "a", 0, 0, 7), [b"one", b"two"].repeat(10));
    assert_ne!(subject.fresh().store_id(), id, "another store has another name");
}

fn every_session_has_a_lineage_of_its_own<S: Subject<Store: Outbox>>(subject: &mut S) {
    let mut store = subject.fresh();
    let mut parent = Lineage::NONE;
    for session in 0..5u64 {
        let first = store.append("a", &[b"x"]).expect("appends");
        let second = store.append("a", &[b"y"]).expect("appends");
        assert_eq!(first.origin, second.origin, "one session, one lineage");
        assert_eq!((first.origin.first, first.origin.parent), (RecordNumber(2 * session), parent));
        assert_ne!(first.origin.lineage, Lineage::NONE);
        assert_ne!(first.origin.lineage, parent);
        parent = first.origin.lineage;
        store = subject.reopen(store);
        if session % 2 == 0 {
            // A session that appends nothing leaves no trace.
            store = subject.reopen(store);
        }
    }
    let loaded = store.read("a", RecordNumber(3), usize::MAX).expect("reads");
    let runs: Vec<_> = loaded.iter().map(|l| (l.origin.first.0, l.run.first.0, l.run.len())).collect();
    assert_eq!(runs, [(2, 3, 1), (4, 4, 2), (6, 6, 2), (8, 8, 2)], "one run for each lineage");
    assert!(loaded.is_sorted_by(|a, b| a.origin.lineage == b.origin.parent));
    // The parent is known even if all its records are forgotten.
    store.trim("a", RecordNumber(10)).expect("trims");
    store = subject.reopen(store);
    assert_eq!(store.append("a", &[b"z"]).expect("appends").origin.parent, parent);
}

fn reads_are_cut_by_bytes_and_by_count<S: Subject<Store: Outbox>>(subject: &mut S) {
    let mut store = subject.fresh();
    let body = &[7u8; 10][..];
    store.append("a", &[body; 7]).expect("appends");
    store.append("a", &[body; 3]).expect("appends");
    let mut read = |from, max| {
        let loaded = store.read("a", RecordNumber(from), max).expect("reads");
        loaded.iter().map(|l| (l.run.first.0, l.run.len())).collect::<Vec<_>>()
    };
    assert_eq!(read(0, 100), [(0, 10)]);
    assert_eq!(read(0, 99), [(0, 9)]);
    assert_eq!(read(5, 30), [(5, 3)], "across the border of two appends");
    assert_eq!(read(2, 0), [(2, 1)], "one record at least");
    assert_eq!(read(9, 0), [(9, 1)]);
    assert_eq!(read(10, 100), []);
    assert_eq!(read(u64::MAX, 100), []);
    let empty = vec![&b""[..]; MAX_BATCH_RECORDS];
    store.append("empty", &empty).expect("appends");
    store.append("empty", &empty).expect("appends");
    let loaded = store.read("empty", RecordNumber(1), 0).expect("reads");
    assert_eq!(loaded.iter().map(|l| l.run.len()).sum::<usize>(), MAX_BATCH_RECORDS, "empty records end too");
}

fn trims_forget_and_numbers_stay<S: Subject<Store: Outbox>>(subject: &mut S) {
    let mut store = subject.fresh();
    store.append("a", &[b"0", b"1", b"2"]).expect("appends");
    store.append("a", &[b"3", b"4", b"5"]).expect("appends");
    for (to, trimmed) in [(0, 0), (1, 1), (4, 4), (2, 4), (5, 5)] {
        store.trim("a", RecordNumber(to)).expect("trims");
        assert_eq!(store.tails().expect("tails")[0].trimmed.0, trimmed, "trimmed to {to}");
        let rest: Vec<_> = (trimmed..6).map(|n| n.to_string().into_bytes()).collect();
        assert_eq!(bodies(&mut store, "a", 0, trimmed, 2), rest);
    }
    store.trim("a", RecordNumber(u64::MAX)).expect("trims");
    assert_eq!(store.tails().expect("tails")[0].trimmed.0, 6, "there is no more to forget");
    assert!(bodies(&mut store, "a", 0, 6, 2).is_empty());
    store = subject.reopen(store);
    assert_eq!(store.append("a", &[b"6"]).expect("appends").first.0, 6);
    assert_eq!(bodies(&mut store, "a", 0, 6, 2), [b"6"]);
}

fn what_is_refused_leaves_no_trace<S: Subject<Store: Outbox>>(subject: &mut S) {
    let mut store = subject.fresh();
    let long = "x".repeat(MAX_STREAM_NAME + 1);
    assert_eq!(store.append(&long, &[b"x"]), Err(AppendError::StreamName { len: 256 }));
    assert_eq!(store.append("", &[b"x"]), Err(AppendError::StreamName { len: 0 }));
    assert_eq!(store.append("a\0b", &[b"x"]), Err(AppendError::StreamNul));
    assert_eq!(store.append("a", &[]), Err(AppendError::Batch { records: 0, bytes: 0 }));
    let large = vec![0; (1 << 20) + 1];
    let refused = AppendError::TooLarge { record: large.len(), limit: 1 << 20 };
    assert_eq!(store.append("a", &[b"x", &large]), Err(refused));
    let many = vec![&b""[..]; MAX_BATCH_RECORDS + 1];
    assert_eq!(store.append("a", &many), Err(AppendError::Batch { records: many.len(), bytes: 0 }));
    assert!(store.tails().expect("tails").is_empty(), "nothing of it is there");
    assert_eq!(store.append("a", &[&large[1..]]).expect("as large as it may be").first.0, 0);
}

fn any_bytes_and_names_pass<S: Subject<Store: Outbox>>(subject: &mut S) {
    let mut store = subject.fresh();
    let all: Vec<u8> = (0..=255).collect();
    for name in ["a'b\"c", "ключ", " ", "%_\\", "\u{1}", &"n".repeat(MAX_STREAM_NAME)] {
        store.append(name, &[&all, b"", &[0; 5000]]).expect("appends");
        store = subject.reopen(store);
        assert_eq!(bodies(&mut store, name, 0, 0, 1 << 20), [all.clone(), vec![], vec![0; 5000]], "{name:?}");
    }
}

fn hints_are_kept<S: Subject<Store: Outbox>>(subject: &mut S) {
    let mut store = subject.fresh();
    store.note("rtt", "12").expect("notes");
    store.note("last", "x").expect("notes");
    store.note("rtt", "13").expect("notes");
    store = subject.reopen(store);
    assert_eq!(store.notes().expect("notes"), pairs([("last", "x"), ("rtt", "13")]));
    assert_eq!(store.changed(), Ok(false), "nobody else has written");
}

fn pairs<const N: usize>(pairs: [(&str, &str); N]) -> Vec<(String, String)> {
    pairs.map(|(a, b)| (a.to_string(), b.to_string())).into()
}

/// The key of a stream of one sender.
fn key(stream: &str) -> CursorKey {
    CursorKey { sender: "pi3".into(), store: StoreId(u64::MAX), stream: stream.into() }
}

/// A delivery of `count` records from `from` to a position with `lineage`.
fn delivery(key: &CursorKey, from: Position, count: u64, lineage: u64) -> Delivery {
    let mut run = Run::new(from.next);
    (0..count).for_each(|i| run.push(&i.to_be_bytes()).expect("fits"));
    Delivery { key: key.clone(), from, to: Position { next: run.end(), lineage: Lineage(lineage) }, run }
}

fn a_cursor_moves_once<S: Subject<Store: Inbox>>(subject: &mut S) {
    let mut store = subject.fresh();
    let key = key("a");
    assert_eq!(store.cursor(&key), Ok(Position::default()));
    let mut at = Position::default();
    for round in 0..6 {
        let d = delivery(&key, at, 2, 9);
        assert_eq!(store.deliver(&d), Ok(Accepted::Fresh));
        if round % 2 == 0 {
            store = subject.reopen(store);
        }
        assert_eq!(store.deliver(&d), Ok(Accepted::Raced(d.to)), "the second time");
        at = d.to;
        assert_eq!(store.cursor(&key), Ok(at));
    }
    let cursors = store.cursors().expect("cursors");
    assert_eq!(cursors.len(), 1);
    assert_eq!((&cursors[0].key, cursors[0].position), (&key, at));
}

fn number_and_lineage_must_both_fit<S: Subject<Store: Inbox>>(subject: &mut S) {
    let mut store = subject.fresh();
    let key = key("a");
    let first = delivery(&key, Position::default(), 3, u64::MAX);
    assert_eq!(store.deliver(&first), Ok(Accepted::Fresh));
    let at = first.to;
    for (next, lineage) in [(3, 8), (2, u64::MAX), (4, u64::MAX), (0, 0)] {
        let from = Position { next: RecordNumber(next), lineage: Lineage(lineage) };
        assert_eq!(store.deliver(&delivery(&key, from, 1, 8)), Ok(Accepted::Raced(at)), "from {from:?}");
    }
    // A new stream begins at its start, and nowhere else.
    let other = CursorKey { stream: "b".into(), ..key };
    let from = Position { next: RecordNumber(1), lineage: Lineage(8) };
    assert_eq!(store.deliver(&delivery(&other, from, 1, 8)), Ok(Accepted::Raced(Position::default())));
    assert_eq!(store.cursor(&other), Ok(Position::default()));
}

fn keys_are_apart<S: Subject<Store: Inbox>>(subject: &mut S) {
    let mut store = subject.fresh();
    let mut keys = Vec::new();
    for sender in ["a", "b"] {
        for id in [1, u64::MAX] {
            for stream in ["a", "b"] {
                keys.push(CursorKey { sender: sender.into(), store: StoreId(id), stream: stream.into() });
            }
        }
    }
    for (n, key) in (1..).zip(&keys) {
        assert_eq!(store.deliver(&delivery(key, Position::default(), n, n)), Ok(Accepted::Fresh));
    }
    let cursors = store.cursors().expect("cursors");
    assert_eq!(cursors.iter().map(|c| c.key.clone()).collect::<Vec<_>>(), keys, "sorted by key");
    assert!((1..).zip(&cursors).all(|(n, c)| c.position.next.0 == n));
}

fn peers_are_kept<S: Subject<Store: Inbox>>(subject: &mut S) {
    let mut store = subject.fresh();
    for (name, address) in [("pi3", "[::1]:4711"), ("pi2", "10.0.0.2:1"), ("pi3", "10.0.0.1:4711")] {
        store.remember_peer(name, address).expect("remembers");
    }
    store = subject.reopen(store);
    assert_eq!(store.peers().expect("peers"), pairs([("pi2", "10.0.0.2:1"), ("pi3", "10.0.0.1:4711")]));
}
