//! Ours as an application has it: the library's face, SQLite on both ends.

use super::Task;
use super::board::{Board, Sampler, Taker, Trouble};
use super::execute::Ends;
use crate::peers::Sample;
use stayfast::rusqlite::Connection;
use stayfast::{Authorized, Cursors, Fresh, Identity, Inbox, Item, Link, Outbox, Settings};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

const STREAM: &str = "log";
/// Bytes that the sending application is ahead of what the other end has stored: several times what 200 Mbit/s and
/// 100 ms have on the way.
const AHEAD: usize = 16 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn start(ends: &Ends, task: &Task, board: &Arc<Board>) -> Result<Sampler, Trouble> {
    let (edge, hub) = (Identity::generate()?, Identity::generate()?);
    let allowed = Authorized { keys: vec![edge.public()], name: "edge".into(), patterns: vec!["*".into()] };
    let key = hub.public().to_string();
    let file = |name: &str| ends.folder.join(format!("{name}-{}.db", ends.port));
    let (at_hub, at_edge) = (file("hub"), file("edge"));
    let cursors = Cursors::sqlite(&at_hub)?;
    let (here, there) = (ends.left.address(), ends.right.address());
    let inbox = ends.right.within(|| Inbox::spawn(settings(there, ends.port), hub, cursors))??.allow(&allowed)?;
    let outbox = Outbox::open(at_edge)?;
    let spawn =
        || Link::new(edge, outbox).to(format!("{there}:{}", ends.port), &key).settings(settings(here, 0)).spawn();
    let link = Arc::new(ends.left.within(spawn)??);

    let (size, task, status) = (task.size, task.clone(), link.clone());
    let db = Connection::open(at_hub)?;
    board.spawn("receiver", move |board| receive(board, inbox, db, size))?;
    board.spawn("sender", move |board| {
        let (mut receipts, batches) = (VecDeque::new(), AHEAD / stayfast_bench::records::BATCH);
        board.feed(&task, |records| {
            receipts.push_back(link.put_many(STREAM, records)?);
            match receipts.len() > batches {
                true => Ok(receipts.pop_front().map_or(Ok(()), |receipt| receipt.stored(PATIENCE))?),
                false => Ok(()),
            }
        })
    })?;
    Ok(Box::new(move || {
        let link = status.status().link;
        Sample {
            window: link.window,
            in_flight: link.in_flight,
            rtt_us: link.rtt.as_micros() as u64,
            lost: link.lost,
            late: link.late,
            episodes: link.episodes,
            undone: link.undos,
            resent: link.bytes_resent,
        }
    }))
}

fn settings(address: Ipv4Addr, port: u16) -> Settings {
    Settings { bind: vec![SocketAddr::from((address, port))], segmentation: false, ..Settings::default() }
}

/// The receiving application: takes a batch, moves the cursor in a transaction of its own, answers.
fn receive(board: &Board, mut inbox: Inbox, mut db: Connection, size: usize) -> Result<(), Trouble> {
    let mut taker = Taker::new(board, size);
    loop {
        let batch = inbox.next()?;
        if !batch.items().all(|item| matches!(item, Item::Record(_))) {
            return Err("a record is missing".into());
        }
        taker.take(batch.iter().map(|record| record.bytes()))?;
        let tx = db.transaction()?;
        let Fresh(delivery) = batch.accept(&tx)? else { return Err("a batch came twice".into()) };
        tx.commit()?;
        delivery.stored();
    }
}
