//! How long appends, reads, trims, deliveries and opening take, beside bare writes to a file: `time [DIR]`.
//! Counts of syncs and bytes are in `tests/cost.rs`; these times depend on the machine and the disk.

use stayfast_store::{CursorKey, Delivery, Inbox, Outbox, Position, Run};
use stayfast_store_sqlite::{Options, SqliteInbox, SqliteOutbox};
use stayfast_units::{Lineage, RecordNumber, StoreId};
use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

type Done<T> = Result<T, Box<dyn Error>>;

fn main() -> Done<()> {
    let dir = std::env::args().nth(1).unwrap_or_else(|| ".".to_string());
    let dir = tempfile::tempdir_in(dir)?;
    for (rounds, records, len) in [(5_000, 1, 16 << 10), (20_000, 1, 61), (2_000, 100, 61)] {
        compare(dir.path(), rounds, records, len)?;
    }
    Ok(())
}

fn compare(dir: &Path, rounds: u64, records: usize, len: usize) -> Done<()> {
    let path = dir.join(format!("{rounds}-{records}-{len}.db"));
    let raw = raw(dir, rounds, records * len)?;
    let body = vec![0xa5; len];
    let batch = vec![&body[..]; records];
    let mut outbox = SqliteOutbox::open(&path, &Options::default())?;
    let append = time(|| Ok((0..rounds).try_for_each(|_| outbox.append("orders", &batch).map(drop))?))?;
    drop(outbox);
    let open = time(|| {
        SqliteOutbox::open(&path, &Options::default())?.tails()?;
        Ok(())
    })?;
    let mut outbox = SqliteOutbox::open(&path, &Options::default())?;
    let read = time(|| Ok(outbox.export("orders", RecordNumber(0), |_, _| true).map(drop)?))?;
    let all = RecordNumber(rounds * records as u64);
    let trim = time(|| Ok((1..=10).try_for_each(|i| outbox.trim("orders", RecordNumber(all.0 / 10 * i)))?))?;
    let deliver = deliver(&dir.join(format!("{rounds}-{records}-{len}-inbox.db")), rounds, &batch)?;
    let times = raw.as_secs_f64();
    println!(
        "{rounds} x {records} x {len} B: bare {raw:.2?}, append {append:.2?} ({:.1}x), open {open:.2?}, read {read:.2?}, \
         trim {trim:.2?}, deliver {deliver:.2?}",
        append.as_secs_f64() / times
    );
    Ok(())
}

fn time(f: impl FnOnce() -> Done<()>) -> Done<Duration> {
    let start = Instant::now();
    f()?;
    Ok(start.elapsed())
}

/// What any store must do at least: append and sync.
fn raw(dir: &Path, rounds: u64, len: usize) -> Done<Duration> {
    let mut file = std::fs::File::create(dir.join("raw"))?;
    let body = vec![0xa5; len];
    time(|| {
        for _ in 0..rounds {
            file.write_all(&body)?;
            file.sync_data()?;
        }
        Ok(())
    })
}

fn deliver(path: &Path, rounds: u64, batch: &[&[u8]]) -> Done<Duration> {
    let mut inbox = SqliteInbox::open(path, &Options::default())?;
    let key = CursorKey { sender: "pi3".into(), store: StoreId(1), stream: "orders".into() };
    time(|| {
        let mut from = Position::default();
        for _ in 0..rounds {
            let mut run = Run::new(from.next);
            batch.iter().try_for_each(|body| run.push(body))?;
            let to = Position { next: run.end(), lineage: Lineage(1) };
            let _ = inbox.deliver(&Delivery { key: key.clone(), from, to, run })?;
            from = to;
        }
        Ok(())
    })
}
