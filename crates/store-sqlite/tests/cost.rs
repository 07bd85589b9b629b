//! What an append, a trim and a delivery cost in syncs and in bytes written: counts, because times do not repeat.
//! Syncs are counted by strace where there is one.
#![cfg(target_os = "linux")]

use stayfast_store::{CursorKey, Delivery, Inbox, Outbox, Position, Run};
use stayfast_store_sqlite::{Options, SqliteInbox, SqliteOutbox};
use stayfast_units::{Lineage, RecordNumber, StoreId};
use std::path::Path;
use std::process::Command;

const ROUNDS: u64 = 400;
/// Names of the work that the child does.
const WORK: &str = "STAYFAST_COST_WORK";
const DIR: &str = "STAYFAST_COST_DIR";

#[derive(Debug)]
struct Cost {
    /// Bytes passed to write calls.
    written: f64,
    /// fsync and fdatasync calls, if they could be counted.
    syncs: Option<u64>,
}

/// Bytes this process has passed to write calls (proc(5), `wchar`).
fn written() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").expect("proc is mounted");
    let line = io.lines().find_map(|line| line.strip_prefix("wchar: ")).expect("wchar is there");
    line.parse().expect("a number")
}

fn append(dir: &Path, records: usize, len: usize, trim: bool) {
    let mut outbox = SqliteOutbox::open(dir.join("store.db"), &Options::default()).unwrap();
    let body = vec![0xa5; len];
    let batch = vec![&body[..]; records];
    for _ in 0..ROUNDS {
        let appended = outbox.append("orders", &batch).unwrap();
        if trim {
            outbox.trim("orders", appended.end()).unwrap();
        }
    }
}

fn deliver(dir: &Path, records: usize, len: usize) {
    let mut inbox = SqliteInbox::open(dir.join("store.db"), &Options::default()).unwrap();
    let key = CursorKey { sender: "pi3".into(), store: StoreId(1), stream: "orders".into() };
    let mut from = Position::default();
    for _ in 0..ROUNDS {
        let mut run = Run::new(from.next);
        (0..records).for_each(|_| run.push(&vec![0xa5; len]).unwrap());
        let to = Position { next: run.end(), lineage: Lineage(1) };
        let _ = inbox.deliver(&Delivery { key: key.clone(), from, to, run }).unwrap();
        from = to;
    }
    assert_eq!(inbox.cursor(&key).unwrap().next, RecordNumber(ROUNDS * records as u64));
}

/// The child: does the work it was asked for and says what it wrote.
#[test]
fn work() {
    let (Ok(work), Ok(dir)) = (std::env::var(WORK), std::env::var(DIR)) else { return };
    let dir = Path::new(&dir);
    let before = written();
    match work.as_str() {
        "small" => append(dir, 100, 61, false),
        "large" => append(dir, 1, 16 << 10, false),
        "one" => append(dir, 1, 61, false),
        "trimmed" => append(dir, 100, 61, true),
        "deliver" => deliver(dir, 100, 61),
        "deliver-large" => deliver(dir, 1, 16 << 10),
        other => panic!("no such work: {other}"),
    }
    println!("written={}", written() - before);
}

fn measure(work: &str) -> Cost {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace");
    let exe = std::env::current_exe().unwrap();
    let strace = Command::new("strace").arg("-V").output().is_ok_and(|out| out.status.success());
    let mut command = if strace {
        let mut command = Command::new("strace");
        command.args(["-f", "-e", "trace=fsync,fdatasync", "-o"]).arg(&trace).arg(exe);
        command
    } else {
        Command::new(exe)
    };
    let out = command.args(["--exact", "work", "--nocapture"]).env(WORK, work).env(DIR, dir.path()).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success(), "{text}{}", String::from_utf8_lossy(&out.stderr));
    let written = text.split("written=").nth(1).and_then(|rest| rest.lines().next()).expect("the child says it");
    let syncs = strace.then(|| {
        let trace = std::fs::read_to_string(&trace).unwrap();
        trace.lines().filter(|line| line.contains("sync(")).count() as u64
    });
    Cost { written: written.trim().parse().expect("a number"), syncs }
}

fn check(work: &str, payload: u64, most_bytes: f64, most_syncs: f64) {
    let cost = measure(work);
    let per_byte = cost.written / (payload * ROUNDS) as f64;
    let per_round = cost.syncs.map(|syncs| syncs as f64 / ROUNDS as f64);
    println!("{work}: {per_byte:.2} bytes written per payload byte, {per_round:.3?} syncs each");
    assert!(per_byte <= most_bytes, "{work}: {per_byte:.2} bytes written per payload byte, at most {most_bytes}");
    assert!(per_round.is_none_or(|n| n <= most_syncs), "{work}: {per_round:?} syncs each, at most {most_syncs}");
    assert!(per_round.is_none_or(|n| n >= 1.0), "{work}: a commit was not synced");
}

#[test]
fn an_append_of_100_small_records() {
    check("small", 6_100, 5.0, 1.1);
}

#[test]
fn an_append_of_one_large_record() {
    check("large", 16 << 10, 2.7, 1.1);
}

#[test]
fn an_append_of_one_small_record() {
    check("one", 61, 100.0, 1.1);
}

#[test]
fn a_trim_costs_no_sync() {
    check("trimmed", 6_100, 5.0, 1.1);
}

#[test]
fn a_delivery_of_100_small_records() {
    check("deliver", 6_100, 6.0, 1.1);
}

#[test]
fn a_delivery_of_one_large_record() {
    check("deliver-large", 16 << 10, 3.0, 1.1);
}
