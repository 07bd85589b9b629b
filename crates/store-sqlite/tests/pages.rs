//! Pages that SQLite cannot read, files that were cut short, and folders where nothing can be written.

use rusqlite::Connection;
use stayfast_store::{Hole, Item, Level, Outbox, StoreError};
use stayfast_store_sqlite::{Damage, LinkLock, Options, SqliteOutbox};
use stayfast_units::RecordNumber;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const RECORDS: u64 = 1500;

fn body(number: u64) -> Vec<u8> {
    format!("{number:0500}").into_bytes()
}

/// An outbox with records of half a kilobyte in a stream between two others, and no log.
fn outbox(dir: &Path) -> PathBuf {
    let path = dir.join("edge.db");
    let mut outbox = SqliteOutbox::open(&path, &Options { level: Level::Process, ..Options::default() }).unwrap();
    outbox.append("before", &[b"x"]).unwrap();
    for number in 0..RECORDS {
        outbox.append("logs", &[&body(number)]).unwrap();
    }
    outbox.append("other", &[b"y"]).unwrap();
    drop(outbox);
    Connection::open(&path).unwrap().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    path
}

/// The pages of the table of records, leaves or not, in the order of the records.
fn pages(path: &Path, kind: &str) -> Vec<u64> {
    let db = Connection::open(path).unwrap();
    let select = "SELECT pageno FROM dbstat WHERE name = 'stayfast_outbox' AND pagetype = ?1 ORDER BY path";
    let mut statement = db.prepare(select).unwrap();
    let pages = statement.query_map([kind], |row| row.get::<_, i64>(0)).unwrap();
    pages.map(|page| page.unwrap() as u64).collect()
}

fn destroy(path: &Path, page: u64) {
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&[0; 2048], (page - 1) * 2048).unwrap();
}

/// What can be read, and what cannot, which together is everything.
fn exported(outbox: &mut SqliteOutbox) -> (Vec<u64>, Vec<Damage>) {
    let mut found = Vec::new();
    let left_out = outbox
        .export("logs", RecordNumber(0), |_, item| {
            if let Item::Record(number, bytes) = item {
                assert_eq!(bytes, body(number.0));
                found.push(number.0);
            }
            true
        })
        .unwrap();
    (found, left_out)
}

fn numbers(damage: &[Damage]) -> Vec<u64> {
    damage.iter().flat_map(|d| d.first.0..d.first.0 + d.count).collect()
}

#[test]
fn what_is_around_bad_pages_is_read_and_they_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = outbox(dir.path());
    let leaves = pages(&path, "leaf");
    // Two beside each other, one between sound ones, the last.
    let bad = [leaves[5], leaves[6], leaves[8], *leaves.last().unwrap()];
    bad.iter().for_each(|page| destroy(&path, *page));
    let mut outbox = SqliteOutbox::open_read_only(&path).unwrap();
    let (found, left_out) = exported(&mut outbox);
    assert_eq!(left_out.len(), 3, "{left_out:?}");
    let lost = numbers(&left_out);
    assert!((8..=20).contains(&lost.len()), "as many as fit on four pages: {lost:?}");
    let mut all = [found, lost.clone()].concat();
    all.sort_unstable();
    assert_eq!(all, (0..RECORDS).collect::<Vec<_>>(), "each number once");
    let verdict = outbox.verify().unwrap();
    let of_logs: Vec<Damage> = verdict.unreadable.iter().filter(|d| d.stream == "logs").cloned().collect();
    assert_eq!(of_logs, left_out);
    assert!(!verdict.is_sound() && !verdict.structure.is_empty());
}

#[test]
fn a_stream_stands_still_before_a_bad_page_and_says_where() {
    let dir = tempfile::tempdir().unwrap();
    let path = outbox(dir.path());
    destroy(&path, pages(&path, "leaf")[9]);
    let mut outbox = SqliteOutbox::open(&path, &Options::default()).unwrap();
    let loaded = outbox.read("logs", RecordNumber(0), 1 << 20).unwrap();
    let next = loaded.last().unwrap().run.end();
    assert!(next.0 > 10 && next.0 < 60, "what is before it goes out: {next:?}");
    let halt = outbox.read("logs", next, 1 << 20).unwrap_err();
    let StoreError::Corrupt { what } = &halt else { panic!("{halt}") };
    assert!(what.contains(&format!("record {} of stream 'logs'", next.0)), "{what}");
    assert_eq!(outbox.read("before", RecordNumber(0), 100).unwrap().len(), 1, "other streams go on");
}

#[test]
fn salvage_keeps_what_can_be_read_and_the_rest_are_gaps() {
    for kind in ["leaf", "internal", "cut"] {
        let dir = tempfile::tempdir().unwrap();
        let path = outbox(dir.path());
        if kind == "cut" {
            let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
            file.set_len(file.metadata().unwrap().len() * 2 / 3 / 2048 * 2048).unwrap();
        } else {
            let pages = pages(&path, kind);
            destroy(&path, pages[pages.len() / 2]);
        }
        let (id, found, lost) = {
            let mut damaged = SqliteOutbox::open_read_only(&path).unwrap();
            let (found, lost) = exported(&mut damaged);
            (damaged.store_id(), found, lost)
        };
        assert!(found.len() > 30 && !lost.is_empty(), "{kind}: {lost:?}");
        let salvaged = SqliteOutbox::salvage(&path, &LinkLock::take(&path).unwrap()).unwrap();
        assert_eq!(salvaged.lost.iter().filter(|d| d.stream == "logs").cloned().collect::<Vec<_>>(), lost, "{kind}");
        assert!(salvaged.damaged.exists());

        let mut outbox = SqliteOutbox::open(&path, &Options::default()).unwrap();
        assert_eq!(outbox.store_id(), id);
        let mut at = RecordNumber(0);
        let (mut records, mut gaps) = (Vec::new(), Vec::new());
        while at.0 < RECORDS {
            for loaded in outbox.read("logs", at, 1 << 20).unwrap() {
                at = loaded.run.end();
                loaded.run.iter().for_each(|item| match item {
                    Item::Record(number, _) => records.push(number.0),
                    Item::Hole(number, hole) => {
                        assert_eq!(hole, Hole::Gap);
                        gaps.push(number.0);
                    }
                });
            }
        }
        assert_eq!((records, gaps), (found, numbers(&lost)), "{kind}");
        assert_eq!(outbox.append("logs", &[b"next"]).unwrap().first.0, RECORDS, "{kind}: no number comes twice");
        assert!(outbox.verify().unwrap().structure.is_empty(), "{kind}");
        let names: Vec<_> = outbox.tails().unwrap().iter().map(|tail| tail.stream.to_string()).collect();
        assert_eq!(names, ["before", "logs", "other"]);
    }
}

#[test]
fn a_process_that_appends_notices_a_salvage() {
    let dir = tempfile::tempdir().unwrap();
    let path = outbox(dir.path());
    let mut other = SqliteOutbox::open(&path, &Options::default()).unwrap();
    other.append("logs", &[b"more"]).unwrap();
    let salvaged = SqliteOutbox::salvage(&path, &LinkLock::take(&path).unwrap()).unwrap();
    assert!(salvaged.lost.is_empty());
    assert!(other.append("logs", &[b"lost"]).unwrap_err().to_string().contains("no longer where it was opened"));
    let mut outbox = SqliteOutbox::open(&path, &Options::default()).unwrap();
    assert_eq!(outbox.append("logs", &[b"more"]).unwrap().first.0, RECORDS + 1);
    drop(other);
    assert_eq!(outbox.append("logs", &[b"more"]).unwrap().first.0, RECORDS + 2, "its end takes nothing along");
    drop(outbox);
    let mut outbox = SqliteOutbox::open(&path, &Options::default()).unwrap();
    assert_eq!(outbox.read("logs", RecordNumber(RECORDS + 1), 100).unwrap()[0].run.len(), 2);
}

#[test]
fn a_file_of_an_application_is_not_salvaged() {
    let dir = tempfile::tempdir().unwrap();
    let path = outbox(dir.path());
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE orders (what TEXT)").unwrap();
    let refused = SqliteOutbox::salvage(&path, &LinkLock::take(&path).unwrap()).unwrap_err();
    assert!(refused.to_string().contains("orders"), "{refused}");
}

#[test]
fn looking_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = outbox(dir.path());
    let before = std::fs::read(&path).unwrap();
    let mut looking = SqliteOutbox::open_read_only(&path).unwrap();
    assert_eq!(looking.streams().unwrap().len(), 3);
    assert!(looking.verify().unwrap().is_sound());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "neither a log nor an index of one");
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert!(looking.append("logs", &[b"x"]).is_err() && looking.trim("logs", RecordNumber(1)).is_err());
    // Somebody begins to write: what is seen from now on may be half of it.
    let mut writer = SqliteOutbox::open(&path, &Options::default()).unwrap();
    writer.append("logs", &[b"x"]).unwrap();
    assert_eq!(looking.streams(), Err(StoreError::Busy));
    assert_eq!(SqliteOutbox::open_read_only(&path).unwrap().streams().unwrap()[1].next.0, RECORDS + 1);
}
