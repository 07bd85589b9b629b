//! `kill -9` at random instants of a process that appends, trims and delivers as fast as it can. What it reported as
//! durable is there, numbers have no gaps, and nothing is stored twice.
#![cfg(unix)]

use stayfast_store::{Accepted, CursorKey, Delivery, Inbox, Item, Outbox, Position};
use stayfast_store_sqlite::{Options, SqliteInbox, SqliteOutbox};
use stayfast_units::{RecordNumber, StoreId};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const DIR: &str = "STAYFAST_KILL_DIR";
const KILLS: u64 = 60;

/// A record says its own number, so that it can be recognized.
fn body(number: u64) -> Vec<u8> {
    let mut body = number.to_be_bytes().to_vec();
    body.resize(8 + (number % 977) as usize, number as u8);
    body
}

fn key() -> CursorKey {
    CursorKey { sender: "a".into(), store: StoreId(1), stream: "s".into() }
}

/// The child: works until it is killed, and reports what is durable, one line each.
#[test]
fn work() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let dir = Path::new(&dir);
    let mut out = std::io::stdout().lock();
    let mut outbox = SqliteOutbox::open(dir.join("outbox.db"), &Options::default()).expect("opens after a kill");
    let _lock = outbox.lock_link().expect("the lock of a killed process is free");
    let mut inbox = SqliteInbox::open(dir.join("inbox.db"), &Options::default()).expect("opens after a kill");
    let mut next = outbox.tails().unwrap().first().map_or(0, |tail| tail.next.0);
    loop {
        let count = 1 + next % 5;
        let bodies: Vec<_> = (next..next + count).map(body).collect();
        let appended = outbox.append("s", &bodies.iter().map(|b| &b[..]).collect::<Vec<_>>()).unwrap();
        assert_eq!(appended.first.0, next);
        next += count;
        writeln!(out, "appended {next} {}", appended.origin.lineage).unwrap();
        let from = inbox.cursor(&key()).unwrap();
        for loaded in outbox.read("s", from.next, 2000).unwrap() {
            let from = inbox.cursor(&key()).unwrap();
            let to = Position { next: loaded.run.end(), lineage: loaded.origin.lineage };
            let delivery = Delivery { key: key(), from, to, run: loaded.run };
            assert_eq!(inbox.deliver(&delivery), Ok(Accepted::Fresh));
            writeln!(out, "stored {}", to.next).unwrap();
        }
        let stored = inbox.cursor(&key()).unwrap().next.0;
        outbox.trim("s", RecordNumber(stored.saturating_sub(20))).unwrap();
    }
}

/// Runs a child, kills it, returns the highest number of each kind that it reported.
fn life(dir: &Path, millis: u64, lineages: &mut BTreeMap<String, u64>, life: u64) -> BTreeMap<String, u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "work", "--nocapture"])
        .env(DIR, dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut said = BTreeMap::new();
    let mut note = |line: String| {
        let mut words = line.split(' ');
        if let (Some(kind @ ("appended" | "stored")), Some(n)) = (words.next(), words.next()) {
            said.insert(kind.to_string(), n.parse().unwrap());
            if let Some(lineage) = words.next() {
                assert_eq!(*lineages.entry(lineage.to_string()).or_insert(life), life, "a lineage in two lives");
            }
        }
    };
    // The clock starts when it works, so that no kill is wasted on its start.
    for line in lines.by_ref().map_while(Result::ok) {
        let works = line.starts_with("appended");
        note(line);
        if works {
            break;
        }
    }
    std::thread::sleep(Duration::from_millis(millis));
    child.kill().unwrap();
    // The last line may be cut short.
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    let whole = rest.len().saturating_sub(1);
    rest.into_iter().take(whole).for_each(&mut note);
    let status = child.wait().unwrap();
    assert!(!status.success() && status.code().is_none(), "it was killed, it did not fail: {status}");
    said
}

#[test]
fn what_was_reported_survives_kills() {
    let dir = tempfile::tempdir().unwrap();
    let (mut lineages, mut appended, mut stored) = (BTreeMap::new(), 0, 0);
    for n in 0..KILLS {
        let said = life(dir.path(), n * 7 % 23, &mut lineages, n);
        appended = said.get("appended").copied().unwrap_or(0).max(appended);
        stored = said.get("stored").copied().unwrap_or(0).max(stored);

        let mut outbox = SqliteOutbox::open(dir.path().join("outbox.db"), &Options::default()).unwrap();
        let mut inbox = SqliteInbox::open(dir.path().join("inbox.db"), &Options::default()).unwrap();
        let tail = outbox.tails().unwrap().remove(0);
        let cursor = inbox.cursor(&key()).unwrap();
        assert!(tail.next.0 >= appended, "kill {n}: {appended} were reported, {} are there", tail.next);
        assert!(cursor.next.0 >= stored, "kill {n}: {stored} were reported, {} are there", cursor.next);
        let verdict = outbox.verify().unwrap();
        assert!(verdict.is_sound(), "kill {n}: {verdict:?}");
        assert_eq!(verdict.records, tail.next.0 - tail.trimmed.0, "no gaps");
        outbox
            .export("s", tail.trimmed, |_, item| {
                let Item::Record(number, found) = item else { panic!("{item:?}") };
                assert_eq!(found, body(number.0));
                true
            })
            .unwrap();
    }
    let mut inbox = SqliteInbox::open(dir.path().join("inbox.db"), &Options::default()).unwrap();
    let records = inbox.records(0, usize::MAX).unwrap();
    assert_eq!(records.len() as u64, inbox.cursor(&key()).unwrap().next.0, "each once");
    for (n, record) in (0..).zip(&records) {
        assert_eq!((record.number.0, record.body.as_deref()), (n, Ok(&body(n)[..])));
    }
    assert!(lineages.len() as u64 == KILLS && appended > KILLS, "every life has worked");
}
