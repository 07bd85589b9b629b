//! A kill at each system call that changes a file, and a sync that fails. Both need strace to tamper with the calls;
//! without it these tests say so and look at nothing.
#![cfg(target_os = "linux")]

use stayfast_store::{AppendError, CursorKey, Delivery, Inbox, Item, Outbox, Position, StoreError};
use stayfast_store_sqlite::{Options, SqliteInbox, SqliteOutbox};
use stayfast_units::{RecordNumber, StoreId};
use std::path::Path;
use std::process::{Command, Output};

const DIR: &str = "STAYFAST_SYSCALLS_DIR";
const ROUNDS: u64 = 2;

fn key() -> CursorKey {
    CursorKey { sender: "a".into(), store: StoreId(1), stream: "s".into() }
}

fn body(number: u64) -> Vec<u8> {
    vec![number as u8; 3000]
}

/// The child: makes the store, appends, delivers and trims; says what is durable, or what refused.
#[test]
fn work() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let dir = Path::new(&dir);
    let mut outbox = SqliteOutbox::open(dir.join("outbox.db"), &Options::default()).unwrap();
    let mut inbox = SqliteInbox::open(dir.join("inbox.db"), &Options::default()).unwrap();
    println!("open");
    for n in 0..ROUNDS {
        match outbox.append("s", &[&body(n)]) {
            Ok(_) => println!("appended {}", n + 1),
            Err(AppendError::Store(StoreError::Poisoned)) => {
                let again = outbox.append("s", &[b"x"]);
                assert_eq!(again, Err(AppendError::Store(StoreError::Poisoned)), "not retried");
                assert_eq!(outbox.tails(), Err(StoreError::Poisoned));
                return println!("poisoned {n}");
            }
            Err(e) => panic!("{e:?}"),
        }
        let from = inbox.cursor(&key()).unwrap();
        let loaded = outbox.read("s", from.next, 1 << 20).unwrap().remove(0);
        let to = Position { next: loaded.run.end(), lineage: loaded.origin.lineage };
        let _ = inbox.deliver(&Delivery { key: key(), from, to, run: loaded.run }).unwrap();
        println!("stored {}", n + 1);
        outbox.trim("s", RecordNumber(n)).unwrap();
    }
    println!("end");
}

/// Runs the child with calls tampered with as strace's `inject` says; `None` without strace.
fn tampered(dir: &Path, inject: &str) -> Option<Output> {
    let strace = Command::new("strace").arg("-V").output().is_ok_and(|out| out.status.success());
    if !strace {
        println!("no strace: nothing was looked at");
        return None;
    }
    let exe = std::env::current_exe().unwrap();
    let inject = format!("inject={inject}");
    let child = Command::new("strace")
        .args(["-f", "-o", "/dev/null", "-e", &inject])
        .arg(exe)
        .args(["--exact", "work", "--nocapture"])
        .env(DIR, dir)
        .output();
    Some(child.unwrap())
}

/// The last number said after `word`.
fn said(out: &Output, word: &str) -> Option<u64> {
    let text = String::from_utf8_lossy(&out.stdout);
    text.lines().rev().find_map(|line| line.split_once(word)?.1.trim().parse().ok())
}

#[test]
fn a_kill_at_any_system_call_leaves_a_store_that_opens() {
    for call in ["pwrite64", "fsync,fdatasync", "ftruncate", "unlink"] {
        for when in 1.. {
            let dir = tempfile::tempdir().unwrap();
            let Some(out) = tampered(dir.path(), &format!("{call}:signal=KILL:when={when}")) else { return };
            let text = String::from_utf8_lossy(&out.stdout);
            let mut outbox = SqliteOutbox::open(dir.path().join("outbox.db"), &Options::default()).unwrap();
            let mut inbox = SqliteInbox::open(dir.path().join("inbox.db"), &Options::default()).unwrap();
            let next = outbox.tails().unwrap().first().map_or(0, |tail| tail.next.0);
            let cursor = inbox.cursor(&key()).unwrap().next.0;
            let place = format!("{call} {when}: {text}");
            assert!(next >= said(&out, "appended ").unwrap_or(0), "{place}");
            assert!(cursor >= said(&out, "stored ").unwrap_or(0) && cursor <= next, "{place}");
            assert!(outbox.verify().unwrap().is_sound(), "{place}");
            let from = RecordNumber(cursor.saturating_sub(1));
            outbox.export("s", from, |_, item| item == Item::Record(item.number(), &body(item.number().0))).unwrap();
            assert_eq!(inbox.records(0, 100).unwrap().len() as u64, cursor, "{place}");
            assert_eq!(outbox.append("s", &[b"next"]).unwrap().first.0, next, "{place}");
            if text.contains("end") {
                // All calls of this kind were before.
                break;
            }
        }
    }
}

#[test]
fn a_sync_that_fails_poisons_the_store_and_is_not_retried() {
    // The first syncs make the store; one of those after belongs to an append.
    for when in 1..40 {
        let dir = tempfile::tempdir().unwrap();
        let Some(out) = tampered(dir.path(), &format!("fsync,fdatasync:error=EIO:when={when}")) else { return };
        if let Some(n) = said(&out, "poisoned ") {
            let mut outbox = SqliteOutbox::open(dir.path().join("outbox.db"), &Options::default()).unwrap();
            let next = outbox.tails().unwrap().first().map_or(0, |tail| tail.next.0);
            assert!(next >= n, "what was durable before is there");
            assert!(outbox.append("s", &[b"x"]).is_ok(), "opened again, it works");
            return;
        }
    }
    panic!("no append met the fault");
}
