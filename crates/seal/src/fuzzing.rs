//! Operations on nodes that exchange packets, an oracle that knows what each packet must come to, and a ledger of
//! nonces. Unit tests, fuzzers and corpus replay all call [`check`].

use crate::{Identity, Sessions};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::{boxed::Box, vec, vec::Vec};
use arbitrary::Arbitrary;
use core::time::Duration;
use stayfast_frame::{Header, Kind, Opened, Rejected, Seal, SessionId, Via, layout};
use stayfast_testkit::SplitMix;
use stayfast_units::{PacketNumber, RunId, Time};

/// One step. Nodes and packets are chosen modulo how many there are.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Op {
    /// A node seals a packet: an INIT if `via` is 0 or it has no session, else in one of its sessions.
    Send {
        /// The node.
        node: u8,
        /// The way.
        via: u8,
        /// Bytes of payload.
        len: u8,
    },
    /// A packet arrives, unchanged.
    Deliver {
        /// The packet.
        pick: u8,
        /// The node, among those on the side that it was meant for.
        to: u8,
        /// Whether it can arrive again.
        keep: bool,
    },
    /// A packet arrives, changed. It can arrive again unchanged.
    Damage {
        /// The packet.
        pick: u8,
        /// The node, among all.
        to: u8,
        /// The change.
        how: Damage,
    },
    /// A node dies and begins a new run.
    Restart {
        /// The node.
        node: u8,
        /// Whether its packet numbers begin shortly before 2^32.
        late: bool,
    },
    /// A second node begins to run with the same store, while the first goes on.
    Clone {
        /// The node.
        node: u8,
    },
    /// What the disk of a side holds is replaced by what it held when this last happened.
    Restore {
        /// The side.
        side: bool,
    },
    /// A node skips packet numbers.
    Skip {
        /// The node.
        node: u8,
        /// How many.
        by: u16,
    },
    /// Time passes.
    Wait {
        /// How long.
        millis: u16,
    },
}

/// A change to a packet.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Damage {
    /// One bit is another.
    Flip {
        /// The byte, modulo the length.
        at: u16,
        /// The bit, modulo 8.
        bit: u8,
    },
    /// One byte is this one.
    Set {
        /// The byte, modulo the length.
        at: u8,
        /// Its value.
        byte: u8,
    },
    /// The end is missing.
    Cut {
        /// Bytes that are left, at most all.
        len: u16,
    },
    /// There is more at the end.
    Add {
        /// The bytes.
        bytes: [u8; 3],
    },
    /// The end is that of another packet.
    Splice {
        /// The other packet.
        with: u8,
        /// Where it begins.
        at: u8,
    },
    /// None: it arrives where it was not meant for.
    Reflect,
}

/// What nodes keep from one run to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Nothing, as it must be.
    Fresh,
    /// A mutant: the random bytes begin with the same seed in each run.
    SeededEphemeral,
    /// A mutant: keys are made of the same bytes in each run, and the next packet number is on disk.
    SavedCounter,
}

/// A key took the same nonce twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reused;

/// Runs the operations, and then sees whether the nodes can still talk.
///
/// # Panics
/// If anything comes to what it must not come to.
pub fn check(ops: &[Op]) {
    run(ops, Policy::Fresh).expect("no key takes a nonce twice");
}

/// Runs the operations with nodes that keep what `policy` says. A mutant ends in an error, or has not been caught.
///
/// # Errors
/// [`Reused`], at the first packet that is sealed with a key and a nonce that were used before.
///
/// # Panics
/// As [`check`].
pub fn run(ops: &[Op], policy: Policy) -> Result<(), Reused> {
    let mut world = World::new(policy);
    ops.iter().try_for_each(|op| world.apply(*op))?;
    if policy == Policy::Fresh { world.talk() } else { Ok(()) }
}

/// A packet that some node sealed.
#[derive(Clone)]
struct Packet {
    bytes: Vec<u8>,
    /// The side that it was meant for.
    to: usize,
    number: PacketNumber,
    run: RunId,
    kind: Kind,
    payload: Vec<u8>,
}

/// One run of a node, and what it must know.
struct Node {
    side: usize,
    run: RunId,
    sessions: Sessions,
    /// Numbers opened, by session.
    opened: BTreeMap<SessionId, BTreeSet<u64>>,
    /// The session of each message 1 that is known, and of each message 2 that was taken, by its index.
    asked: BTreeMap<Vec<u8>, SessionId>,
    taken: BTreeMap<u32, (SessionId, Vec<u8>)>,
    answering: BTreeMap<u32, SessionId>,
    /// The indices as last told.
    indices: BTreeSet<u32>,
}

struct World {
    policy: Policy,
    identities: [Identity; 2],
    nodes: Vec<Node>,
    flight: Vec<Packet>,
    sealed: BTreeMap<Vec<u8>, Packet>,
    ledger: BTreeSet<([u8; 32], [u8; 12])>,
    /// The next packet number of each side, as it is on disk and as it is in the backup.
    disk: [u64; 2],
    backup: [u64; 2],
    runs: u64,
    now: Time,
}

const MAX_NODES: usize = 5;
const MAX_FLIGHT: usize = 64;

impl World {
    fn new(policy: Policy) -> World {
        let identities = [1, 2].map(|seed| Identity::generate(&mut SplitMix(seed)));
        let (nodes, flight, sealed, ledger) = Default::default();
        let now = Time::from_millis(1_000);
        let (disk, backup, runs) = ([0; 2], [0; 2], 0);
        let mut world = World { policy, identities, nodes, flight, sealed, ledger, disk, backup, runs, now };
        for side in [0, 1] {
            let node = world.start(side);
            world.nodes.push(node);
        }
        world
    }

    fn start(&mut self, side: usize) -> Node {
        self.runs += 1;
        let run = RunId(self.runs);
        let seed = if self.policy == Policy::Fresh { self.runs } else { 0 };
        let entropy = Box::new(SplitMix((seed * 2 + side as u64) << 32));
        let peer = self.identities[1 - side].public();
        let mut sessions = Sessions::new(&self.identities[side], peer, Some([7; 32]), run, side == 0, entropy);
        if self.policy == Policy::SavedCounter {
            sessions.set_next_number(self.disk[side]);
        }
        let (opened, asked, taken, answering, indices) = Default::default();
        Node { side, run, sessions, opened, asked, taken, answering, indices }
    }

    fn apply(&mut self, op: Op) -> Result<(), Reused> {
        let nodes = self.nodes.len();
        match op {
            Op::Send { node, via, len } => {
                let node = usize::from(node) % nodes;
                let via = self.nodes[node].via(via);
                self.send(node, via, len.into())?;
            }
            Op::Deliver { pick, to, keep } if !self.flight.is_empty() => {
                let pick = usize::from(pick) % self.flight.len();
                let packet = if keep { self.flight[pick].clone() } else { self.flight.remove(pick) };
                let on_side = |node: &usize| self.nodes[*node].side == packet.to;
                let there: Vec<usize> = (0..nodes).filter(on_side).collect();
                self.deliver(there[usize::from(to) % there.len()], &packet);
            }
            Op::Damage { pick, to, how } if !self.flight.is_empty() => {
                let bytes = self.damage(usize::from(pick) % self.flight.len(), how);
                self.arrive(usize::from(to) % nodes, bytes);
            }
            Op::Restart { node, late } => {
                let node = usize::from(node) % nodes;
                self.nodes[node] = self.start(self.nodes[node].side);
                if late && self.policy == Policy::Fresh {
                    self.nodes[node].sessions.set_next_number((1 << 32) - 20);
                }
            }
            Op::Clone { node } if nodes < MAX_NODES => {
                let clone = self.start(self.nodes[usize::from(node) % nodes].side);
                self.nodes.push(clone);
            }
            Op::Restore { side } => {
                let side = usize::from(side);
                core::mem::swap(&mut self.disk[side], &mut self.backup[side]);
            }
            Op::Skip { node, by } => {
                let sessions = &mut self.nodes[usize::from(node) % nodes].sessions;
                sessions.set_next_number(sessions.next_number().0 + u64::from(by));
            }
            Op::Wait { millis } => self.now += Duration::from_millis(millis.into()),
            Op::Deliver { .. } | Op::Damage { .. } | Op::Clone { .. } => {}
        }
        Ok(())
    }

    fn send(&mut self, from: usize, via: Via, len: usize) -> Result<Packet, Reused> {
        let node = &mut self.nodes[from];
        let kind = node.sessions.kind(via).expect("sessions are chosen among those that are there");
        let payload: Vec<u8> = (0..len).map(|i| (i + self.sealed.len()) as u8).collect();
        let mut bytes = vec![0xaa; kind.overhead() + len];
        bytes[kind.header_len()..][..len].copy_from_slice(&payload);
        let number = node.sessions.next_number();
        assert_eq!(node.sessions.seal(via, &mut bytes), Ok(number));
        assert_eq!(node.sessions.next_number(), number.next());
        if via == Via::Init {
            node.indices = node.sessions.indices().collect();
        }
        if self.policy == Policy::Fresh {
            node.check_indices();
        }
        self.disk[node.side] = number.0 + 1;
        let used = node.sessions.last_nonce().expect("a packet was sealed");
        if !self.ledger.insert(used) {
            return Err(Reused);
        }
        let packet = Packet { bytes, to: 1 - node.side, number, run: node.run, kind, payload };
        assert!(self.sealed.insert(packet.bytes.clone(), packet.clone()).is_none());
        if self.flight.len() == MAX_FLIGHT {
            self.flight.remove(0);
        }
        self.flight.push(packet.clone());
        Ok(packet)
    }

    fn damage(&self, pick: usize, how: Damage) -> Vec<u8> {
        let mut bytes = self.flight[pick].bytes.clone();
        let len = bytes.len();
        match how {
            Damage::Flip { at, bit } => bytes[usize::from(at) % len] ^= 1 << (bit % 8),
            Damage::Set { at, byte } => bytes[usize::from(at) % len] = byte,
            Damage::Cut { len } => bytes.truncate(len.into()),
            Damage::Add { bytes: more } => bytes.extend(more),
            Damage::Splice { with, at } => {
                let other = &self.flight[usize::from(with) % self.flight.len()].bytes;
                let at = usize::from(at).min(len).min(other.len());
                bytes.truncate(at);
                bytes.extend(&other[at..]);
            }
            Damage::Reflect => {}
        }
        bytes
    }

    /// Anything at all arrives at a node.
    fn arrive(&mut self, at: usize, mut bytes: Vec<u8>) {
        match self.sealed.get(&bytes) {
            Some(packet) if packet.to == self.nodes[at].side => {
                let packet = packet.clone();
                self.deliver(at, &packet);
            }
            _ => {
                let node = &mut self.nodes[at];
                let current = node.sessions.current();
                node.sessions.open(self.now, &mut bytes).expect_err("nobody sealed this for this end");
                assert_eq!(node.sessions.current(), current);
                node.check_indices();
            }
        }
    }

    /// What a node sealed arrives at one that it was meant for.
    fn deliver(&mut self, at: usize, packet: &Packet) -> Option<Opened> {
        let node = &mut self.nodes[at];
        if self.policy != Policy::Fresh {
            // The oracle does not know mutants. They are only asked about nonces.
            let opened = node.sessions.open(self.now, &mut packet.bytes.clone()).ok()?;
            node.opened.entry(opened.session).or_default();
            return Some(opened);
        }
        let (expected, current) = (node.expected(packet), node.sessions.current());
        let mut bytes = packet.bytes.clone();
        let result = node.sessions.open(self.now, &mut bytes);
        match (&result, expected) {
            (Ok(opened), Expected::Open(session)) => {
                assert!(session.is_none_or(|session| session == opened.session));
                assert_eq!((opened.number, opened.run, opened.kind), (packet.number, packet.run, packet.kind));
                assert_eq!(opened.bound, packet.kind != Kind::Init);
                assert_eq!(bytes[opened.payload.clone()], packet.payload);
                assert_eq!(opened.newly_current, node.sessions.current() != current);
                assert!(
                    current.is_none() || opened.session == node.sessions.current().unwrap() || !opened.newly_current
                );
                node.note(packet, opened);
            }
            (Err(reason), Expected::Reject(expected)) => assert_eq!(*reason, expected),
            // Whether a candidate must give way depends on its age. The sessions' own tests know.
            (Err(Rejected::Limit), Expected::Open(None)) if node.asked.contains_key(packet.message1()) => {}
            (result, expected) => panic!("{result:?} where {expected:?} was expected, {:?}", packet.kind),
        }
        if result.is_err() {
            assert_eq!(node.sessions.current(), current);
        }
        node.check_indices();
        result.ok()
    }

    /// Whatever has happened, the first packet of each side is opened, and so is what follows.
    fn talk(&mut self) -> Result<(), Reused> {
        self.now += Duration::from_secs(60);
        for (from, to) in [(0, 1), (1, 0)] {
            let mut opened = self.exchange(from, to, Via::Init)?;
            for (from, to) in [(to, from), (from, to), (to, from)] {
                opened = self.exchange(from, to, Via::Session(opened.session))?;
                assert!(opened.bound);
                assert!(self.nodes[to].sessions.current().is_some());
            }
        }
        Ok(())
    }

    fn exchange(&mut self, from: usize, to: usize, via: Via) -> Result<Opened, Reused> {
        let packet = self.send(from, via, 9)?;
        Ok(self.deliver(to, &packet).expect("a good packet is opened"))
    }
}

#[derive(Debug)]
enum Expected {
    /// In this session, if it is known which.
    Open(Option<SessionId>),
    Reject(Rejected),
}

impl Packet {
    fn message1(&self) -> &[u8] {
        if self.kind == Kind::Init { &self.bytes[layout::init::NOISE] } else { &[] }
    }
}

impl Node {
    fn via(&self, choice: u8) -> Via {
        let sessions: Vec<SessionId> = self.opened.keys().copied().filter(|id| self.lives(*id)).collect();
        match usize::from(choice) % (sessions.len() + 1) {
            0 => Via::Init,
            n => Via::Session(sessions[n - 1]),
        }
    }

    fn lives(&self, session: SessionId) -> bool {
        self.sessions.kind(Via::Session(session)).is_some()
    }

    fn check_indices(&self) {
        assert!(
            self.sessions.indices().eq(self.sessions.indices().collect::<BTreeSet<_>>()) || !self.indices.is_empty()
        );
        let indices: Vec<u32> = self.sessions.indices().collect();
        assert!(indices.len() <= 6);
        assert_eq!(indices.len(), self.indices.len(), "indices differ from each other");
        assert!(indices.iter().all(|index| self.indices.contains(index)), "a change was told");
    }

    /// What a packet that was sealed for this side must come to.
    fn expected(&self, packet: &Packet) -> Expected {
        let fresh = |session: SessionId| match &self.opened[&session] {
            seen if seen.contains(&packet.number.0) => Expected::Reject(Rejected::Replay),
            seen if seen.last().is_some_and(|last| packet.number.0 + 4096 <= *last) => {
                Expected::Reject(Rejected::Replay)
            }
            _ => Expected::Open(Some(session)),
        };
        match Header::parse(&packet.bytes).expect("it was sealed") {
            Header::Init { .. } => match self.asked.get(packet.message1()).filter(|session| self.lives(**session)) {
                Some(session) => fresh(*session),
                None => Expected::Open(None),
            },
            Header::Reply { index, .. } | Header::Data { index } if !self.indices.contains(&index) => {
                Expected::Reject(Rejected::Index)
            }
            Header::Reply { index, .. } => match self.taken.get(&index) {
                Some((_, message2)) if *message2 != packet.bytes[layout::reply::NOISE] => {
                    Expected::Reject(Rejected::Replay)
                }
                Some((session, _)) => fresh(*session),
                None => Expected::Open(None),
            },
            Header::Data { index } => {
                let session = self.taken.get(&index).map(|(session, _)| *session);
                fresh(session.unwrap_or_else(|| self.answering[&index]))
            }
        }
    }

    fn note(&mut self, packet: &Packet, opened: &Opened) {
        let session = opened.session;
        let new = !self.opened.contains_key(&session);
        assert!(self.opened.entry(session).or_default().insert(packet.number.0));
        if packet.kind == Kind::Init {
            self.asked.insert(packet.message1().to_vec(), session);
        }
        if let (Ok(Header::Reply { index, .. }), true) = (Header::parse(&packet.bytes), new) {
            self.taken.insert(index, (session, packet.bytes[layout::reply::NOISE].to_vec()));
        }
        if opened.indices_changed {
            let indices: BTreeSet<u32> = self.sessions.indices().collect();
            if packet.kind == Kind::Init {
                self.answering.extend(indices.difference(&self.indices).map(|index| (*index, session)));
            }
            assert_ne!(indices, self.indices, "a change was told that is none");
            self.indices = indices;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn whatever_happens_packets_come_to_what_they_must() {
        bolero::check!().with_arbitrary::<Vec<Op>>().with_test_time(Duration::from_secs(2)).for_each(|ops| check(ops));
    }

    /// Schedules of kills, restored disks and clones, with traffic between them.
    fn schedules() -> impl Iterator<Item = Vec<Op>> {
        (0..100).map(|seed| {
            let mut random = SplitMix(seed);
            let mut bytes = [0; 4];
            (0..60)
                .map(|_| {
                    random.fill(&mut bytes);
                    let [what, node, a, b] = bytes;
                    match what % 16 {
                        0..=6 => Op::Send { node, via: a, len: b % 32 },
                        7..=11 => Op::Deliver { pick: a, to: b, keep: b > 200 },
                        12 | 13 => Op::Restart { node, late: false },
                        14 => Op::Restore { side: a % 2 == 0 },
                        _ => Op::Clone { node },
                    }
                })
                .collect()
        })
    }

    #[test]
    fn no_key_takes_a_nonce_twice() {
        schedules().for_each(|ops| check(&ops));
    }

    #[test]
    fn mutants_are_caught() {
        for mutant in [Policy::SeededEphemeral, Policy::SavedCounter] {
            let caught = schedules().filter(|ops| run(ops, mutant) == Err(Reused)).count();
            assert!(caught > 70, "{mutant:?}: {caught} of 100");
        }
    }

    #[test]
    fn a_saved_counter_looks_right_until_a_disk_is_restored() {
        let send = Op::Send { node: 0, via: 0, len: 1 };
        let restart = Op::Restart { node: 0, late: false };
        assert_eq!(run(&[send, send, restart, send], Policy::SavedCounter), Ok(()));
        let restore = Op::Restore { side: false };
        assert_eq!(run(&[send, send, restore, restart, send], Policy::SavedCounter), Err(Reused));
        assert_eq!(run(&[send, restart, send], Policy::SeededEphemeral), Err(Reused));
    }

    #[test]
    fn the_oracle_knows_a_forgery_from_a_packet() {
        let mut world = World::new(Policy::Fresh);
        let packet = world.send(0, Via::Init, 3).unwrap();
        let mut lie = packet.clone();
        lie.payload[0] ^= 1;
        assert!(catch_unwind(AssertUnwindSafe(|| world.deliver(1, &lie))).is_err());
    }
}
