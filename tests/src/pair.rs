use crate::machine::{Entropy, Machine, Part};
use stayfast_seal::Identity;
use stayfast_sim::{Handle, Path, PathId, World};
use stayfast_store::{CursorKey, Item, Memory, Outbox};
use stayfast_units::{RecordNumber, Time};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The sender's address.
pub const SENDER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 4711);
/// The receiver's address.
pub const RECEIVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 4711);

/// The address of a clone of the sender.
pub const CLONE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3)), 4711);

/// A sender and a receiver on a path, either of which can be killed and started again.
pub struct Pair {
    /// The network.
    pub world: World,
    /// The sending machine.
    pub sender: Handle<Machine>,
    /// The receiving machine.
    pub receiver: Handle<Machine>,
    /// A live clone of the sender, once there is one.
    pub clone: Option<Handle<Machine>>,
    /// The path of the data and that of the answers.
    pub paths: [PathId; 2],
    sending: Identity,
    receiving: Identity,
    seed: u64,
    runs: u64,
}

impl Pair {
    /// A pair with empty stores; `there` is the path of the data, `back` that of the answers.
    pub fn new(seed: u64, there: Path, back: Path) -> Pair {
        Pair::with_outbox(seed, there, back, |_| {})
    }

    /// A pair whose sender starts with a backlog.
    pub fn with_outbox(seed: u64, there: Path, back: Path, fill: impl FnOnce(&mut Memory)) -> Pair {
        let sending = Identity::generate(&mut Entropy::new(seed, 1));
        let receiving = Identity::generate(&mut Entropy::new(seed, 2));
        let mut outbox = Memory::new(seed ^ 0x5e4d);
        fill(&mut outbox);
        let mut world = World::new(seed);
        let keys = (&sending, receiving.public());
        let part = Part::Sender(RECEIVER);
        let sender = world.add("sender", SENDER, Machine::new(Time::ZERO, part, keys, outbox, Entropy::new(seed, 3)));
        let keys = (&receiving, sending.public());
        let inbox = Memory::new(seed ^ 0x4ec1);
        let machine = Machine::new(Time::ZERO, Part::Receiver(None), keys, inbox, Entropy::new(seed, 4));
        let receiver = world.add("receiver", RECEIVER, machine);
        let paths = [world.connect(sender, receiver, there), world.connect(receiver, sender, back)];
        Pair { world, sender, receiver, clone: None, paths, sending, receiving, seed, runs: 4 }
    }

    /// A pair whose sender starts with `count` records of `size` bytes in stream `log`. Each begins with its
    /// number, so it has 8 bytes at least.
    pub fn with_backlog(seed: u64, (there, back): (Path, Path), count: u64, size: usize) -> Pair {
        Pair::with_outbox(seed, there, back, |outbox| {
            let mut body = vec![7; size];
            for n in 0..count {
                body[..8].copy_from_slice(&n.to_be_bytes());
                outbox.append("log", &[&body]).expect("memory");
            }
        })
    }

    fn entropy(&mut self) -> Entropy {
        self.runs += 1;
        Entropy::new(self.seed, self.runs)
    }

    /// kill -9 of the sender: the machine is dropped, the store keeps what was synced and any part of the rest.
    /// The next run starts at once.
    pub fn kill_sender(&mut self) {
        self.kill_sender_with(|store, seed| store.crash(seed));
    }

    /// Kills the sender and does something else to its store: restores a copy, say.
    pub fn kill_sender_with(&mut self, change: impl FnOnce(&mut Memory, u64)) {
        let Some(machine) = self.world.stop(self.sender) else { return };
        let (mut store, mut entropy) = (machine.store, self.entropy());
        change(&mut store, entropy.draw());
        let keys = (&self.sending, self.receiving.public());
        let machine = Machine::new(self.world.now(), Part::Sender(RECEIVER), keys, store, entropy);
        self.world.start(self.sender, machine);
    }

    /// kill -9 of the receiver. Its next run remembers where the sender was.
    pub fn kill_receiver(&mut self) {
        let Some(machine) = self.world.stop(self.receiver) else { return };
        let delay = machine.store_delay;
        let (mut store, mut entropy) = (machine.store, self.entropy());
        store.crash(entropy.draw());
        let keys = (&self.receiving, self.sending.public());
        let mut machine = Machine::new(self.world.now(), Part::Receiver(Some(SENDER)), keys, store, entropy);
        machine.store_delay = delay;
        self.world.start(self.receiver, machine);
    }

    /// A copy of the sending machine, store and key, runs beside it from now on. Does nothing if there is one.
    pub fn clone_sender(&mut self, there: Path, back: Path) {
        let Some(machine) = self.world.node(self.sender).filter(|_| self.clone.is_none()) else { return };
        let mut store = machine.store.clone();
        let mut entropy = self.entropy();
        store.reopen(entropy.draw());
        let keys = (&self.sending, self.receiving.public());
        let machine = Machine::new(self.world.now(), Part::Sender(RECEIVER), keys, store, entropy);
        let clone = self.world.add("clone", CLONE, machine);
        self.world.connect(clone, self.receiver, there);
        self.world.connect(self.receiver, clone, back);
        self.clone = Some(clone);
    }

    /// The sending machine.
    pub fn sending(&mut self) -> &mut Machine {
        self.world.node_mut(self.sender).expect("the sender runs")
    }

    /// The receiving machine.
    pub fn receiving(&mut self) -> &mut Machine {
        self.world.node_mut(self.receiver).expect("the receiver runs")
    }

    /// What the receiving application has stored of a stream: bodies, holes as `None`.
    pub fn stored(&self, stream: &str) -> Vec<Option<Vec<u8>>> {
        let Some(sender) = self.world.node(self.sender) else { return Vec::new() };
        let Some(receiver) = self.world.node(self.receiver) else { return Vec::new() };
        let key = CursorKey { sender: "peer".into(), store: sender.store.store_id(), stream: stream.into() };
        let effects = receiver.store.effects(&key);
        effects
            .map(|item| match item {
                Item::Record(_, body) => Some(body.to_vec()),
                Item::Hole(..) => None,
            })
            .collect()
    }

    /// The backlog has arrived: all records, once, in order.
    ///
    /// # Panics
    /// If not.
    pub fn assert_whole(&self, count: u64) {
        let stored = self.stored("log");
        assert_eq!(stored.len() as u64, count);
        for (n, body) in stored.iter().enumerate() {
            assert_eq!(body.as_ref().map(|b| &b[..8]), Some(&(n as u64).to_be_bytes()[..]), "record {n}");
        }
    }

    /// How many records of the stream the receiving application has stored.
    pub fn stored_count(&self, stream: &str) -> u64 {
        let Some(sender) = self.world.node(self.sender) else { return 0 };
        let Some(receiver) = self.world.node(self.receiver) else { return 0 };
        let key = CursorKey { sender: "peer".into(), store: sender.store.store_id(), stream: stream.into() };
        receiver.store.effects(&key).count() as u64
    }

    /// Runs until all records below `next` are known to be stored, or `until`. Returns when that was.
    pub fn run_until_stored(&mut self, stream: &str, next: RecordNumber, until: Time) -> Option<Time> {
        while self.world.now() < until {
            let sender = self.world.node(self.sender);
            let done = sender.and_then(|machine| machine.stored.get(stream)).is_some_and(|stored| *stored >= next);
            if done {
                return Some(self.world.now());
            }
            self.world.step()?;
        }
        None
    }
}
