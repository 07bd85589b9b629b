//! Once everything has grown to its size, a packet costs no allocation at either end. Batches for the store do, a few
//! each: they are counted apart.

mod common;

use common::{Dice, at, identity, sessions};
use stayfast_link::{Config, Inbound, Node, Outbound, PeerId, Role};
use stayfast_seal::Sessions;
use stayfast_store::{Level, Loaded, Origin, Run, StoreDone, StoreOp, Tail};
use stayfast_units::{Lineage, RecordNumber, StoreId, Time};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Adds what `f` allocates to `sum`.
fn counted<T>(sum: &mut u64, f: impl FnOnce() -> T) -> T {
    let mut result = None;
    *sum += allocation_counter::measure(|| result = Some(f())).count_total;
    result.expect("it has run")
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    /// Allocations while packets were taken, made and timed.
    packets: u64,
    /// Allocations while the machines dealt with their stores, and how often they did.
    store: u64,
    ops: u64,
    sent: u64,
}

const STREAM: &str = "readings";
const ORIGIN: Origin = Origin { first: RecordNumber(0), lineage: Lineage(7), parent: Lineage(0) };

/// How long a delivery takes to be durable.
const SYNC: Duration = Duration::from_millis(5);

/// An endless outbox of records of one size at one end, an application with a disk at the other. Every 97th datagram is
/// lost, if `lossy`.
struct Rig {
    now: Time,
    nodes: [(Node<Sessions>, PeerId); 2],
    size: usize,
    appended: RecordNumber,
    stored: RecordNumber,
    lossy: bool,
    syncing: Option<(Time, StoreDone)>,
    wire: Vec<(Time, usize, u8, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
    counts: Counts,
}

impl Rig {
    fn new(size: usize, lossy: bool) -> Rig {
        let now = Time::from_millis(1_000);
        let (a, b) = (identity(1), identity(2));
        let node = |own, peer, seed, outbound, inbound, addresses: Vec<SocketAddr>| {
            // On a path without loss the window grows for ever: the ledger shall reach its size soon.
            let mut node = Node::new(Config { ledger: 512, ..Config::default() }, seed);
            let role = Role { name: "peer".into(), outbound, inbound, addresses };
            let id = node.add_peer(now, sessions(own, peer, Dice(seed).draw()), role);
            (node, id)
        };
        let tails = vec![Tail { stream: STREAM.into(), trimmed: RecordNumber(0), next: RecordNumber(0) }];
        let inbound = Inbound { allow: vec!["*".into()], cursors: vec![], level: Level::Power };
        let nodes = [
            node(&a, b.public(), 3, Some(Outbound { store: StoreId(9), tails }), None, vec![at(2)]),
            node(&b, a.public(), 4, None, Some(inbound), vec![]),
        ];
        let (appended, stored) = (RecordNumber(0), RecordNumber(0));
        Rig {
            now,
            nodes,
            size,
            appended,
            stored,
            lossy,
            syncing: None,
            wire: Vec::new(),
            spare: Vec::new(),
            counts: Counts::default(),
        }
    }

    fn read(&self, from: RecordNumber, max_bytes: usize) -> Vec<Loaded> {
        let mut run = Run::new(from);
        while run.end() < self.appended && (run.is_empty() || run.byte_len() + self.size <= max_bytes) {
            run.push(&vec![run.end().0 as u8; self.size]).expect("it fits");
        }
        vec![Loaded { origin: ORIGIN, run }]
    }

    fn answer(&mut self, op: StoreOp) -> Option<StoreDone> {
        match op {
            StoreOp::Read { stream, from, max_bytes } => {
                let result = Ok(self.read(from, max_bytes));
                Some(StoreDone::Read { stream, from, result })
            }
            StoreOp::Deliver(delivery) => {
                let done = StoreDone::Delivered { key: delivery.key, level: Level::Power, to: delivery.to };
                self.syncing = Some((self.now + SYNC, done));
                None
            }
            StoreOp::ReadCursor { key, nonce } => {
                let position = stayfast_store::Position { next: self.stored, lineage: Lineage(7) };
                Some(StoreDone::Cursor { key, nonce, position })
            }
            StoreOp::Trim { .. } => None,
        }
    }

    fn store(&mut self, end: usize) {
        if end == 1
            && let Some((_, done)) = self.syncing.take_if(|(at, _)| *at <= self.now)
        {
            if let StoreDone::Delivered { to, .. } = &done {
                self.stored = to.next;
            }
            let (now, (node, id)) = (self.now, &mut self.nodes[1]);
            counted(&mut self.counts.store, || node.handle_store(now, *id, done));
        }
        loop {
            let (node, id) = &mut self.nodes[end];
            let Some((_, op)) = counted(&mut self.counts.store, || node.poll_store()) else { break };
            self.counts.ops += 1;
            let id = *id;
            if let Some(done) = self.answer(op) {
                let (now, node) = (self.now, &mut self.nodes[end].0);
                counted(&mut self.counts.store, || node.handle_store(now, id, done));
            }
        }
        while self.nodes[end].0.poll_event().is_some() {}
    }

    fn serve(&mut self, end: usize, buf: &mut [u8]) {
        let now = self.now;
        counted(&mut self.counts.packets, || _ = self.nodes[end].0.handle_timeout(now));
        self.store(end);
        loop {
            let node = &mut self.nodes[end].0;
            let Some(transmit) = counted(&mut self.counts.packets, || node.poll_transmit(now, buf, 16)) else { break };
            for packet in buf[..transmit.len].chunks(transmit.segment) {
                self.counts.sent += 1;
                if self.lossy && self.counts.sent.is_multiple_of(97) {
                    continue;
                }
                let mut bytes = self.spare.pop().unwrap_or_default();
                bytes.clear();
                bytes.extend_from_slice(packet);
                self.wire.push((now + Duration::from_millis(5), 1 - end, transmit.ecn, bytes));
            }
            self.store(end);
        }
    }

    /// Appends so many records more and lets them all be stored.
    fn run(&mut self, records: u64) {
        let stream: Arc<str> = STREAM.into();
        self.appended = self.appended.plus(records);
        let (next, mut buf) = (self.appended, [0; 16 * 1200]);
        self.nodes[0].0.appended(self.now, self.nodes[0].1, &stream, next);
        let deadline = self.now + Duration::from_secs(600);
        while self.stored < next {
            assert!(self.now < deadline, "stalled at {} of {next}", self.stored);
            self.serve(0, &mut buf);
            self.serve(1, &mut buf);
            let timeouts = [0, 1].map(|end| self.nodes[end].0.next_timeout().map(|(at, _)| at));
            let arrival = self.wire.first().map(|(at, ..)| *at);
            let synced = self.syncing.as_ref().map(|(at, _)| *at);
            self.now = timeouts.into_iter().chain([arrival, synced]).flatten().min().expect("something to wait for");
            let due = self.wire.partition_point(|(at, ..)| *at <= self.now);
            for (_, to, ecn, mut bytes) in self.wire.drain(..due) {
                let (now, from, node) = (self.now, at([2, 1][to]), &mut self.nodes[to].0);
                let from = if to == 0 { at(2) } else { from };
                counted(&mut self.counts.packets, || node.handle_datagram(now, from, ecn, &mut bytes));
                self.spare.push(bytes);
            }
        }
    }

    /// Counts of `records` records, after eight times as many of a warm-up that everything grows in.
    fn measure(&mut self, records: u64) -> Counts {
        self.run(8 * records);
        self.counts = Counts::default();
        self.run(records);
        self.counts
    }
}

#[test]
fn no_packet_costs_an_allocation() {
    for (size, records) in [(61, 200_000), (1_000, 30_000), (16_384, 3_000)] {
        let counts = Rig::new(size, false).measure(records);
        // Where records come in parts, a buffer or two of the reassembler grow when traffic begins anew.
        let growth = if size > 1_000 { 2 } else { 0 };
        assert!(counts.packets <= growth, "{size} B: {counts:?}");
        let per_record = counts.store as f64 / records as f64;
        let per_packet = counts.store as f64 / counts.sent as f64;
        println!(
            "{size} B: {per_record:.4} allocations a record, {per_packet:.4} a packet, all for batches: {counts:?}"
        );
        assert!(size > 1_000 || per_record < 0.05, "{size} B: {per_record} a record, {counts:?}");
        assert!(per_packet < 0.15, "{size} B: {per_packet} a packet, {counts:?}");
    }
}

#[test]
fn nor_does_a_lost_one() {
    let counts = Rig::new(400, true).measure(60_000);
    println!("{counts:?}");
    // Out of order, records wait in buffers of their own, of which there is now and then one more.
    assert!(counts.packets * 1_000 < counts.sent, "{counts:?}");
}
