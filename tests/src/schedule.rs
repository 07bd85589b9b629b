//! Any schedule of loss, reordering, duplication, kills, restored copies and clones, against an oracle that knows
//! what was appended: what is delivered is a prefix of one history, what is STORED is in it, and a history that
//! lost is told so. One function serves property tests, the fuzzer and the replay of its findings.

use crate::{Machine, Pair};
use arbitrary::{Arbitrary, Unstructured};
use stayfast_sim::{Element, Handle, Limit, Path, Probability};
use stayfast_store::Memory;
use stayfast_units::Rate;
use std::time::Duration;

/// One step of a schedule. Small numbers on purpose: what matters is how steps interleave.
#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// The sender appends so many records (plus one) of about so many times eight bytes.
    Append {
        /// One less than how many.
        records: u8,
        /// Eighths of their size in bytes.
        size: u8,
    },
    /// The clone appends.
    AppendClone {
        /// One less than how many.
        records: u8,
    },
    /// Time passes: that many milliseconds.
    Run(u8),
    /// kill -9 of the sender.
    KillSender,
    /// kill -9 of the receiver.
    KillReceiver,
    /// A copy of the sender's store is made.
    Snapshot,
    /// The sender is killed and its store replaced by the copy.
    RestoreSender,
    /// A copy of the sending machine runs beside it.
    CloneSender,
    /// The path breaks for that many times four milliseconds.
    Outage(u8),
    /// The receiving application takes that many milliseconds for a batch.
    SlowStore(u8),
}

/// Most steps of a schedule.
const MAX_OPS: usize = 48;

/// Operations from bytes: as many as there are bytes for.
pub fn ops(bytes: &[u8]) -> Vec<Op> {
    let mut bytes = Unstructured::new(bytes);
    let mut ops = Vec::new();
    while !bytes.is_empty() && ops.len() < MAX_OPS {
        ops.extend(Op::arbitrary(&mut bytes));
    }
    ops
}

/// As [`check`], with the seed in the first bytes.
pub fn check_bytes(bytes: &[u8]) {
    let (seed, rest) = bytes.split_at(bytes.len().min(8));
    let mut first = [0; 8];
    first[..seed.len()].copy_from_slice(seed);
    check(u64::from_be_bytes(first), &ops(rest));
}

/// What was appended to one store, in order. Bodies begin with a number that no other record has.
type History = Vec<Vec<u8>>;

struct Model {
    pair: Pair,
    main: History,
    clone: Option<History>,
    snapshot: Option<(Memory, History)>,
    /// Histories that a restored copy has replaced.
    past: Vec<History>,
    next_body: u64,
}

const STREAM: &str = "orders";

fn path(loss: u32) -> Path {
    let loss = Probability::ppm(loss);
    let rate = Rate::from_bits_per_sec(20_000_000);
    Path::new()
        .outage()
        .loss(loss)
        .duplicate(Probability::percent(2))
        .jitter(Duration::from_millis(4))
        .delay(Duration::from_millis(10))
        .rate(rate, Limit::Bytes(50_000))
}

/// Runs the schedule and then lets the network heal.
///
/// # Panics
/// If an invariant is broken; the message names the seed.
pub fn check(seed: u64, ops: &[Op]) {
    let mut model = Model {
        pair: Pair::new(seed, path(30_000), path(30_000)),
        main: History::new(),
        clone: None,
        snapshot: None,
        past: Vec::new(),
        next_body: 0,
    };
    for op in ops {
        model.apply(*op);
        model.check_prefix(seed);
    }
    model.settle(seed);
}

impl Model {
    fn apply(&mut self, op: Op) {
        match op {
            Op::Append { records, size } => {
                let bodies = self.bodies(records % 32, usize::from(size) * 8);
                append(self.pair.sending(), &bodies);
                self.main.extend(bodies);
            }
            Op::AppendClone { records } => {
                let bodies = self.bodies(records % 8, 64);
                if let (Some(handle), Some(history)) = (self.pair.clone, &mut self.clone)
                    && let Some(machine) = self.pair.world.node_mut(handle)
                {
                    append(machine, &bodies);
                    history.extend(bodies);
                }
            }
            Op::Run(ms) => self.run(ms.into()),
            Op::KillSender => self.pair.kill_sender(),
            Op::KillReceiver => self.pair.kill_receiver(),
            Op::Snapshot => self.snapshot = Some((self.pair.sending().store.clone(), self.main.clone())),
            Op::RestoreSender => self.restore(),
            Op::CloneSender => {
                if self.clone.is_none() {
                    self.pair.clone_sender(path(30_000), path(30_000));
                    self.clone = Some(self.main.clone());
                }
            }
            Op::Outage(ms) => {
                self.cut(true);
                self.run(u64::from(ms) * 4);
                self.cut(false);
            }
            Op::SlowStore(ms) => self.pair.receiving().store_delay = Duration::from_millis(ms.into()),
        }
    }

    fn bodies(&mut self, records: u8, size: usize) -> Vec<Vec<u8>> {
        (0..=records)
            .map(|_| {
                self.next_body += 1;
                let mut body = self.next_body.to_be_bytes().to_vec();
                body.resize(8 + size, self.next_body as u8);
                body
            })
            .collect()
    }

    fn run(&mut self, ms: u64) {
        let until = self.pair.world.now() + Duration::from_millis(ms);
        self.pair.world.run_until(until);
    }

    fn cut(&mut self, cut: bool) {
        for path in self.pair.paths {
            self.pair.world.set(path, Element::Outage(cut));
        }
    }

    fn restore(&mut self) {
        let Some((store, history)) = self.snapshot.clone() else { return };
        self.pair.kill_sender_with(|current, seed| current.restore(&store, seed));
        self.past.push(std::mem::replace(&mut self.main, history));
    }

    /// What the application has stored is a prefix of one history that there was.
    fn check_prefix(&self, seed: u64) {
        let stored = self.pair.stored(STREAM);
        let is_prefix = |history: &History| {
            stored.len() <= history.len() && stored.iter().zip(history).all(|(s, h)| s.as_ref() == Some(h))
        };
        let known = self.past.iter().chain([&self.main]).chain(&self.clone).any(is_prefix);
        assert!(known, "seed {seed}: {} records stored are no prefix of any history", stored.len());
    }

    /// The network heals and time passes: every history is stored whole, or its sender knows why not.
    fn settle(&mut self, seed: u64) {
        self.cut(false);
        self.pair.receiving().store_delay = Duration::ZERO;
        let machines: Vec<_> = [Some(self.pair.sender), self.pair.clone].into_iter().flatten().collect();
        let until = self.pair.world.now() + Duration::from_secs(120);
        while self.pair.world.now() < until {
            self.run(200);
            self.check_prefix(seed);
            if machines.iter().all(|machine| self.is_settled(*machine)) {
                break;
            }
        }
        let receiver = (self.pair.receiving().status(), self.pair.receiving().rejected());
        let stored = self.pair.stored(STREAM);
        for (machine, history) in
            machines.into_iter().zip([Some(&self.main), self.clone.as_ref()].into_iter().flatten())
        {
            let Some(node) = self.pair.world.node(machine) else { continue };
            let whole = stored.len() >= history.len() && stored.iter().zip(history).all(|(s, h)| s.as_ref() == Some(h));
            assert!(
                whole || node.has_trouble(),
                "seed {seed}: {} of {} records stored, and the sender does not know why: {:?} {:?}, the receiver {receiver:?}",
                stored.len(),
                history.len(),
                node.events,
                node.status(),
            );
            let told = node.stored.get(STREAM).map_or(0, |next| next.0 as usize);
            let kept = stored.iter().zip(history).take_while(|(s, h)| s.as_ref() == Some(h)).count();
            assert!(told <= kept, "seed {seed}: reported {told} as stored, {kept} are");
        }
    }

    fn is_settled(&self, machine: Handle<Machine>) -> bool {
        self.pair.world.node(machine).is_some_and(|node| {
            node.has_trouble() || node.status().streams.iter().all(|stream| stream.stored == stream.next)
        })
    }
}

fn append(machine: &mut Machine, bodies: &[Vec<u8>]) {
    let bodies: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
    machine.append(STREAM, &bodies);
}
