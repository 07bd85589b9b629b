//! Full disks, damaged files, other versions, other processes.

use rusqlite::{Connection, TransactionBehavior};
use stayfast_store::{
    Accepted, AppendError, CursorKey, Delivery, Hole, Inbox, Item, Level, Limits, Loaded, Outbox, Position, Run,
    StoreError, conformance::bodies,
};
use stayfast_store_sqlite::{LinkLockError, Options, SCHEMA_VERSION, Session, SqliteInbox, SqliteOutbox};
use stayfast_units::{Lineage, RecordNumber, StoreId};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

struct Store {
    _dir: tempfile::TempDir,
    path: PathBuf,
}

impl Store {
    fn new() -> Store {
        let dir = tempfile::tempdir().unwrap();
        Store { path: dir.path().join("store.db"), _dir: dir }
    }
    fn open(&self) -> SqliteOutbox {
        SqliteOutbox::open(&self.path, &Options::default()).unwrap()
    }
    /// A connection as an application would have it.
    fn own(&self) -> Connection {
        let db = Connection::open(&self.path).unwrap();
        db.pragma_update(None, "journal_mode", "WAL").unwrap();
        db.pragma_update(None, "synchronous", "FULL").unwrap();
        db
    }
    fn sql(&self, sql: &str) {
        Connection::open(&self.path).unwrap().execute_batch(sql).unwrap();
    }
    fn count(&self, table: &str) -> i64 {
        let count = format!("SELECT count(*) FROM {table}");
        Connection::open(&self.path).unwrap().query_row(&count, [], |row| row.get(0)).unwrap()
    }
}

fn items(loaded: &[Loaded]) -> Vec<Item<'_>> {
    loaded.iter().flat_map(|l| l.run.iter()).collect()
}

fn gap(number: u64) -> Item<'static> {
    Item::Hole(RecordNumber(number), Hole::Gap)
}

fn record(number: u64, body: &[u8]) -> Item<'_> {
    Item::Record(RecordNumber(number), body)
}

#[test]
fn a_full_disk_is_a_typed_error_and_then_resumes() {
    let store = Store::new();
    let mut db = store.own();
    let mut session = Session::new(&db, &Options::default()).unwrap();
    let pages: i64 = db.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    db.pragma_update_and_check(None, "max_page_count", pages + 40, |_| Ok(())).unwrap();
    let mut append = |db: &mut Connection, body: &[u8]| {
        let tx = db.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        let appended = session.append(&tx, "a", &[body])?;
        tx.commit().unwrap();
        Ok::<_, AppendError>(appended)
    };
    let mut taken = 0;
    let refused = loop {
        match append(&mut db, &[7; 9000]) {
            Ok(appended) => assert_eq!(appended.first.0, taken),
            Err(refused) => break refused,
        }
        taken += 1;
    };
    assert_eq!(refused, AppendError::Store(StoreError::DiskFull));
    assert!(taken > 2);
    assert_eq!(append(&mut db, &[7; 9000]), Err(AppendError::Store(StoreError::DiskFull)));
    assert_eq!(bodies(&mut store.open(), "a", 0, 0, 1 << 20).len() as u64, taken, "what was taken is there");
    db.pragma_update_and_check(None, "max_page_count", 1 << 20, |_| Ok(())).unwrap();
    assert_eq!(append(&mut db, &[7; 9000]).unwrap().first.0, taken, "no number was lost");
}

#[test]
fn a_full_outbox_takes_records_again_when_some_are_stored() {
    let store = Store::new();
    let limits = Limits { outbox_bytes: 100, ..Limits::default() };
    let mut outbox = SqliteOutbox::open(&store.path, &Options { limits, ..Options::default() }).unwrap();
    outbox.append("a", &[&[0; 60]]).unwrap();
    assert_eq!(outbox.append("b", &[&[0; 41]]), Err(AppendError::Full { used: 60, limit: 100 }));
    outbox.append("b", &[&[0; 40]]).unwrap();
    outbox.trim("a", RecordNumber(1)).unwrap();
    assert_eq!(outbox.append("b", &[&[0; 60]]).unwrap().first.0, 1);
}

#[test]
fn a_damaged_body_becomes_a_gap_and_the_rest_goes_on() {
    let store = Store::new();
    let mut outbox = store.open();
    outbox.append("a", &[b"zero", b"one", b"two"]).unwrap();
    outbox.append("a", &[b"three"]).unwrap();
    store.sql("UPDATE stayfast_outbox SET bodies = CAST('zerooNetwo' AS BLOB) WHERE first = 0");
    for _ in 0..2 {
        let loaded = outbox.read("a", RecordNumber(0), 1000).unwrap();
        assert_eq!(items(&loaded), [record(0, b"zero"), gap(1), record(2, b"two"), record(3, b"three")]);
        assert_eq!(loaded.len(), 1, "one lineage");
    }
    assert_eq!(store.count("stayfast_quarantine"), 1, "for people to look at, once");
    let verdict = outbox.verify().unwrap();
    assert_eq!((verdict.records, verdict.lost, verdict.is_sound()), (3, 1, false));
    assert_eq!((verdict.damage[0].first.0, verdict.damage[0].count), (1, 1));
    drop(outbox);
    assert_eq!(store.open().append("a", &[b"four"]).unwrap().first.0, 4, "it starts, and goes on");
}

/// Three sessions append a record each; the row of the middle one is damaged in `column`, or gone.
fn damaged_header(sql: &str) -> (Vec<Loaded>, Vec<Lineage>) {
    let store = Store::new();
    let append = |n: u8| store.open().append("a", &[&[n]]).unwrap().origin.lineage;
    let lineages: Vec<Lineage> = (0..3).map(append).collect();
    store.sql(sql);
    (store.open().read("a", RecordNumber(0), 1000).unwrap(), lineages)
}

#[test]
fn a_row_that_cannot_be_believed_keeps_its_place_in_the_lineage() {
    for sql in [
        "UPDATE stayfast_outbox SET count = 7 WHERE first = 1",
        "UPDATE stayfast_outbox SET lineage = 7 WHERE first = 1",
        "UPDATE stayfast_outbox SET records = x'' WHERE first = 1",
        "DELETE FROM stayfast_outbox WHERE first = 1",
    ] {
        let (loaded, lineages) = damaged_header(sql);
        assert_eq!(items(&loaded), [record(0, &[0]), gap(1), record(2, &[2])], "{sql}");
        let chain: Vec<_> = loaded.iter().map(|l| (l.origin.first.0, l.origin.lineage, l.origin.parent)).collect();
        let [a, b, c] = lineages[..] else { unreachable!() };
        assert_eq!(chain, [(0, a, Lineage::NONE), (1, b, a), (2, c, b)], "{sql}");
    }
}

#[test]
fn the_last_row_may_be_the_damaged_one() {
    let (loaded, lineages) = damaged_header("UPDATE stayfast_outbox SET sum = 7 WHERE first = 2");
    assert_eq!(items(&loaded), [record(0, &[0]), record(1, &[1]), gap(2)]);
    assert_eq!(loaded[2].origin.lineage, lineages[2], "the tail knows it");
}

/// Records 0 to 2 of one session, 3 to 5 of another, 6 of a third. The receiver is known to have `trimmed`, and what is
/// below `before` is given up.
fn given_up(trimmed: u64, before: u64) -> (Vec<Loaded>, Vec<Lineage>) {
    let store = Store::new();
    let append = |bodies: &[&[u8]]| store.open().append("a", bodies).unwrap().origin.lineage;
    let lineages = vec![append(&[b"0", b"1", b"2"]), append(&[b"3", b"4", b"5"]), append(&[b"6"])];
    let mut outbox = store.open();
    outbox.trim("a", RecordNumber(trimmed)).unwrap();
    assert_eq!(outbox.give_up("a", RecordNumber(before)).unwrap().0, before);
    assert_eq!(outbox.tails().unwrap()[0].trimmed.0, trimmed, "the receiver has yet to be told");
    (outbox.read("a", RecordNumber(trimmed), 1000).unwrap(), lineages)
}

#[test]
fn records_that_are_given_up_go_on_from_what_the_receiver_has() {
    for trimmed in 1..=3 {
        let (loaded, lineages) = given_up(trimmed, 6);
        let [a, b, c] = lineages[..] else { unreachable!() };
        let chain: Vec<_> = loaded.iter().map(|l| (l.origin.first.0, l.origin.lineage, l.origin.parent)).collect();
        assert_eq!(chain, [(trimmed, b, a), (6, c, b)], "the receiver stands at record {trimmed} of the first lineage");
        let mut expected: Vec<_> = (trimmed..6).map(gap).collect();
        expected.push(record(6, b"6"));
        assert_eq!(items(&loaded), expected);
    }
}

#[test]
fn a_torn_log_is_repaired_without_a_human() {
    let store = Store::new();
    let copy = store.path.with_file_name("copy.db");
    let wal = |path: &Path| PathBuf::from(format!("{}-wal", path.display()));
    let mut outbox = store.open();
    for n in 0..20u8 {
        outbox.append("a", &[&[n; 700]]).unwrap();
    }
    let (whole, mut before) = (std::fs::metadata(wal(&store.path)).unwrap().len(), 0);
    for cut in (0..whole).step_by(1501).chain([whole]) {
        std::fs::copy(&store.path, &copy).unwrap();
        std::fs::copy(wal(&store.path), wal(&copy)).unwrap();
        let mut log = std::fs::OpenOptions::new().write(true).open(wal(&copy)).unwrap();
        log.set_len(cut).unwrap();
        // What follows the cut on a real disk is anything.
        log.seek(SeekFrom::End(0)).unwrap();
        log.write_all(&[0x5a; 3000]).unwrap();
        let mut torn = SqliteOutbox::open(&copy, &Options::default()).unwrap();
        let found = bodies(&mut torn, "a", 0, 0, 1 << 20);
        assert!((0..).zip(&found).all(|(n, body)| *body == [n; 700]), "cut at {cut}: whole records, from the first");
        assert!(found.len() >= before && (cut < whole || found.len() == 20), "cut at {cut}: {} of 20", found.len());
        before = found.len();
        assert_eq!(torn.append("a", &[b"next"]).unwrap().first.0 as usize, before);
        drop(torn);
        for suffix in ["", "-wal", "-shm"] {
            std::fs::remove_file(format!("{}{suffix}", copy.display())).ok();
        }
    }
}

#[test]
fn another_version_is_named() {
    let store = Store::new();
    drop(store.open());
    store.sql("UPDATE stayfast_meta SET value = 99 WHERE key = 'schema'");
    let refused = SqliteOutbox::open(&store.path, &Options::default()).unwrap_err();
    assert_eq!(refused, StoreError::Schema { found: 99, known: SCHEMA_VERSION });
    assert!(refused.to_string().contains("99") && refused.to_string().contains(&SCHEMA_VERSION.to_string()));
}

/// Every released schema stays here, and opens.
#[test]
fn a_store_of_version_1_opens() {
    let store = Store::new();
    store.sql(include_str!("v1.sql"));
    let mut outbox = store.open();
    assert_eq!(outbox.store_id().0, 0x1234);
    let loaded = outbox.read("orders", RecordNumber(0), 1000).unwrap();
    assert_eq!(items(&loaded), [record(0, b"order 1"), record(1, b"order 2")]);
    assert_eq!(outbox.append("orders", &[b"order 3"]).unwrap().origin.parent, loaded[0].origin.lineage);
    let mut inbox = SqliteInbox::open(&store.path, &Options::default()).unwrap();
    assert_eq!(inbox.cursors().unwrap()[0].position.next.0, 3);
}

#[test]
fn a_file_that_is_no_store_is_refused_and_kept() {
    let store = Store::new();
    std::fs::write(&store.path, [0xa5; 8192]).unwrap();
    let refused = SqliteOutbox::open(&store.path, &Options::default()).unwrap_err();
    assert!(matches!(refused, StoreError::Corrupt { .. }), "{refused:?}");
    assert_eq!(std::fs::read(&store.path).unwrap(), [0xa5; 8192]);
    let nowhere = Options { create: false, ..Options::default() };
    assert!(SqliteOutbox::open(store.path.with_file_name("none.db"), &nowhere).is_err());
    assert!(!store.path.with_file_name("none.db").exists(), "looking does not make a file");
}

#[test]
fn less_than_full_is_refused_unless_told() {
    let store = Store::new();
    let db = store.own();
    for (journal, synchronous, level) in [
        ("WAL", "FULL", Level::Power),
        ("WAL", "NORMAL", Level::Process),
        ("DELETE", "FULL", Level::Process),
        ("DELETE", "EXTRA", Level::Power),
        ("TRUNCATE", "FULL", Level::Power),
        ("MEMORY", "FULL", Level::Memory),
    ] {
        db.pragma_update_and_check(None, "journal_mode", journal, |_| Ok(())).unwrap();
        db.pragma_update(None, "synchronous", synchronous).unwrap();
        let told = Session::new(&db, &Options { level, ..Options::default() });
        assert!(told.is_ok(), "{journal} {synchronous}: {told:?}");
        match Session::new(&db, &Options::default()) {
            Ok(_) => assert_eq!(level, Level::Power, "{journal} {synchronous}"),
            Err(StoreError::Durability { found, required: Level::Power, .. }) => assert_eq!(found, level),
            Err(e) => panic!("{e:?}"),
        }
    }
    let replicated = Options { level: Level::Replicated, ..Options::default() };
    assert!(matches!(SqliteInbox::open(&store.path, &replicated), Err(StoreError::Durability { .. })));
}

#[test]
fn one_process_runs_the_link_while_all_append() {
    let store = Store::new();
    let (mut a, mut b) = (store.open(), store.open());
    let lock = a.lock_link().unwrap();
    assert!(matches!(b.lock_link(), Err(LinkLockError::Held { .. })));
    assert_eq!(a.changed(), Ok(false));
    b.append("s", &[b"x"]).unwrap();
    assert_eq!((a.changed(), a.changed()), (Ok(true), Ok(false)));
    a.append("s", &[b"y"]).unwrap();
    assert_eq!(a.changed(), Ok(false), "its own writes are no news");
    drop(lock);
    assert!(b.lock_link().is_ok());
}

#[test]
fn sessions_that_take_turns_chain_their_lineages() {
    let store = Store::new();
    let (mut a, mut b) = (store.open(), store.open());
    let mut origins = Vec::new();
    for _ in 0..3 {
        origins.push(a.append("s", &[b"a"]).unwrap().origin);
        assert_eq!(a.append("s", &[b"a"]).unwrap().origin, origins[origins.len() - 1]);
        origins.push(b.append("s", &[b"b"]).unwrap().origin);
    }
    assert!(origins.windows(2).all(|pair| pair[1].parent == pair[0].lineage));
    let mut lineages: Vec<_> = origins.iter().map(|o| o.lineage).collect();
    lineages.sort_unstable();
    lineages.dedup();
    assert_eq!(lineages.len(), 6, "a lineage never comes back");
    let read: Vec<_> = a.read("s", RecordNumber(0), 1000).unwrap().iter().map(|l| l.origin).collect();
    assert_eq!(read, origins);
    // A stream of its own does not end the lineage of another.
    let before = a.append("s", &[b"a"]).unwrap().origin;
    a.append("t", &[b"a"]).unwrap();
    assert_eq!(a.append("s", &[b"a"]).unwrap().origin, before);
}

#[test]
fn a_first_append_that_is_rolled_back_never_happened() {
    let store = Store::new();
    let mut db = store.own();
    let mut session = Session::new(&db, &Options::default()).unwrap();
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let lost = session.append(&tx, "a", &[b"lost"]).unwrap();
    assert_eq!(session.append(&tx, "a", &[b"lost too"]).unwrap().origin, lost.origin);
    drop(tx);
    assert!(store.open().tails().unwrap().is_empty());
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let kept = session.append(&tx, "a", &[b"kept"]).unwrap();
    tx.commit().unwrap();
    assert_eq!((kept.first.0, kept.origin.parent), (0, Lineage::NONE));
    assert_ne!(kept.origin.lineage, lost.origin.lineage, "it may have been seen by nobody, but who knows");
    let loaded = store.open().read("a", RecordNumber(0), 100).unwrap();
    assert_eq!((loaded[0].origin, items(&loaded)), (kept.origin, vec![record(0, b"kept")]));
}

#[test]
fn an_append_that_fails_inside_a_transaction_leaves_the_rest_of_it_alone() {
    let store = Store::new();
    let mut db = store.own();
    db.execute_batch("CREATE TABLE orders (what TEXT)").unwrap();
    let limits = Limits { outbox_bytes: 10, ..Limits::default() };
    let mut session = Session::new(&db, &Options { limits, ..Options::default() }).unwrap();
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    tx.execute("INSERT INTO orders VALUES ('tea')", []).unwrap();
    session.append(&tx, "a", &[b"12345"]).unwrap();
    assert!(matches!(session.append(&tx, "a", &[b"1234567"]), Err(AppendError::Full { .. })));
    assert_eq!(session.append(&tx, "a", &[b"12345"]).unwrap().first.0, 1, "no number is lost");
    tx.commit().unwrap();
    assert_eq!(store.count("orders"), 1);
    assert_eq!(bodies(&mut store.open(), "a", 0, 0, 100), [b"12345", b"12345"]);
}

#[test]
fn a_writer_that_never_ends_makes_the_store_busy() {
    let store = Store::new();
    let options = Options { busy: Duration::from_millis(50), ..Options::default() };
    let mut outbox = SqliteOutbox::open(&store.path, &options).unwrap();
    let mut other = store.own();
    let tx = other.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    assert_eq!(outbox.append("a", &[b"x"]), Err(AppendError::Store(StoreError::Busy)));
    assert!(outbox.tails().unwrap().is_empty(), "reading goes on");
    drop(tx);
    assert_eq!(outbox.append("a", &[b"x"]).unwrap().first.0, 0);
}

#[test]
fn many_processes_append_without_gaps() {
    let store = Store::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut outbox = store.open();
                (0..50).for_each(|_| assert_eq!(outbox.append("a", &[b"x", b"y"]).unwrap().count, 2));
            });
        }
    });
    assert_eq!(bodies(&mut store.open(), "a", 0, 0, 1 << 20), [b"x", b"y"].repeat(200));
}

#[test]
fn space_goes_back_to_the_file_system() {
    let store = Store::new();
    let mut outbox = store.open();
    for _ in 0..20 {
        outbox.append("a", &[&[7; 1 << 20]]).unwrap();
    }
    for n in 0..20 {
        outbox.trim("a", RecordNumber(n + 1)).unwrap();
    }
    for _ in 0..20 {
        outbox.append("a", &[b"x"]).unwrap();
        let tail = outbox.tails().unwrap()[0].next;
        outbox.trim("a", tail).unwrap();
    }
    drop(outbox);
    let left = std::fs::metadata(&store.path).unwrap().len();
    assert!(left < 6 << 20, "{left} B are left of 20 MiB");
}

#[test]
fn a_file_that_is_no_longer_in_its_place_takes_nothing() {
    let away = |path: &Path| std::fs::rename(path, path.with_file_name("away")).unwrap();
    let log = |path: &Path| PathBuf::from(format!("{}-wal", path.display()));
    let changes: [&dyn Fn(&Path); 4] = [
        &|path| std::fs::remove_file(path).unwrap(),
        &away,
        &|path| {
            away(path);
            std::fs::copy(path.with_file_name("away"), path).unwrap();
        },
        &|path| away(&log(path)),
    ];
    for change in changes {
        let store = Store::new();
        let mut outbox = store.open();
        let mut inbox = SqliteInbox::open(&store.path, &Options::default()).unwrap();
        outbox.append("a", &[b"zero"]).unwrap();
        assert_eq!(inbox.deliver(&delivery(0)).unwrap(), Accepted::Fresh);
        change(&store.path);
        let refused = outbox.append("a", &[b"one"]).unwrap_err();
        assert!(matches!(&refused, AppendError::Store(e @ StoreError::Replaced { .. }) if e.is_lasting()), "{refused}");
        assert!(refused.to_string().contains("store.db"), "{refused}");
        assert!(matches!(inbox.changed(), Err(StoreError::Replaced { .. })), "seen without a write");
        assert!(matches!(inbox.deliver(&delivery(1)), Err(StoreError::Replaced { .. })));
        assert!(matches!(outbox.read("a", RecordNumber(0), 100), Err(StoreError::Replaced { .. })), "it stays so");
    }
}

/// One record.
fn delivery(number: u64) -> Delivery {
    let key = CursorKey { sender: "pi3".into(), store: StoreId(1), stream: "a".into() };
    let mut run = Run::new(RecordNumber(number));
    run.push(b"x").unwrap();
    let at = |next| Position { next: RecordNumber(next), lineage: Lineage(if next == 0 { 0 } else { 7 }) };
    Delivery { key, from: at(number), to: at(number + 1), run }
}

#[test]
fn a_database_of_somebody_else_is_not_touched() {
    let store = Store::new();
    store.sql("CREATE TABLE orders (what TEXT); INSERT INTO orders VALUES ('tea')");
    let before = std::fs::read(&store.path).unwrap();
    let refused = SqliteOutbox::open(&store.path, &Options { create: false, ..Options::default() }).unwrap_err();
    assert_eq!(refused, StoreError::Io("there is no store in this file".to_string()));
    assert_eq!(std::fs::read(&store.path).unwrap(), before);
    store.sql("CREATE TABLE stayfast_meta (key TEXT PRIMARY KEY, value INTEGER); INSERT INTO stayfast_meta VALUES ('schema', 99)");
    let other = std::fs::read(&store.path).unwrap();
    let refused = SqliteOutbox::open(&store.path, &Options::default()).unwrap_err();
    assert_eq!(refused, StoreError::Schema { found: 99, known: SCHEMA_VERSION });
    assert_eq!(std::fs::read(&store.path).unwrap(), other);
    assert_eq!(std::fs::read_dir(store.path.parent().unwrap()).unwrap().count(), 1, "no log beside it");
}
