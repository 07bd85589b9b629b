//! Two nodes at a bench: real sessions, model stores, a wire that delays, drops and repeats as it is told.
#![allow(dead_code, reason = "every test file uses a part of it")]

use stayfast_link::{Config, Event, Inbound, Node, Outbound, PeerId, Role};
use stayfast_seal::{Identity, PublicKey, Sessions};
use stayfast_store::{CursorKey, Inbox, Item, Memory, Outbox, StoreOp, perform};
pub use stayfast_testkit::SplitMix as Dice;
use stayfast_units::{RecordNumber, RunId, Time};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

pub const MS: Duration = Duration::from_millis(1);
pub const SECOND: Duration = Duration::from_secs(1);
/// One way.
pub const DELAY: Duration = Duration::from_millis(10);

pub fn identity(seed: u64) -> Identity {
    Identity::generate(&mut Dice(seed))
}

pub fn sessions(own: &Identity, peer: PublicKey, seed: u64) -> Sessions {
    let mut dice = Dice(seed);
    let run = RunId(dice.draw() | 1);
    Sessions::new(own, peer, None, run, true, Box::new(dice))
}

pub fn at(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// What one end does; its stores outlive its node.
#[derive(Clone)]
pub struct Plan {
    pub config: Config,
    pub sends: bool,
    pub allow: Option<Vec<&'static str>>,
    pub addresses: Vec<SocketAddr>,
}

impl Plan {
    pub fn sender() -> Plan {
        Plan { config: Config::default(), sends: true, allow: None, addresses: vec![at(2)] }
    }

    pub fn receiver() -> Plan {
        Plan { config: Config::default(), sends: false, allow: Some(vec!["*"]), addresses: vec![] }
    }
}

pub struct End {
    pub node: Node<Sessions>,
    pub peer: PeerId,
    pub address: SocketAddr,
    pub plan: Plan,
    pub outbox: Memory,
    pub inbox: Memory,
    pub events: Vec<Event>,
    /// Store operations done so far, and those of them that read the outbox.
    pub ops: usize,
    pub reads: usize,
    /// The application answers nothing for now.
    pub stalled: bool,
    waiting: VecDeque<StoreOp>,
    pub packets: usize,
    pub bytes: usize,
    keys: (u64, PublicKey),
    dice: Dice,
}

impl End {
    fn new(now: Time, address: SocketAddr, plan: Plan, keys: (u64, PublicKey), seed: u64) -> End {
        let mut dice = Dice(seed);
        let (outbox, inbox) = (Memory::new(dice.draw()), Memory::new(dice.draw()));
        End::with_stores(now, address, plan, keys, dice, outbox, inbox)
    }

    fn with_stores(
        now: Time,
        address: SocketAddr,
        plan: Plan,
        keys: (u64, PublicKey),
        mut dice: Dice,
        mut outbox: Memory,
        mut inbox: Memory,
    ) -> End {
        let mut node = Node::new(plan.config.clone(), dice.draw());
        let tails = outbox.tails().expect("readable");
        let outbound = plan.sends.then(|| Outbound { store: outbox.store_id(), tails });
        let allow = plan.allow.clone();
        let inbound = allow.map(|allow| Inbound {
            allow: allow.into_iter().map(String::from).collect(),
            cursors: inbox.cursors().expect("readable"),
            level: inbox.level(),
        });
        let seal = sessions(&identity(keys.0), keys.1, dice.draw());
        let role = Role { name: "peer".into(), outbound, inbound, addresses: plan.addresses.clone() };
        let peer = node.add_peer(now, seal, role);
        let (events, waiting) = (Vec::new(), VecDeque::new());
        let (ops, reads, stalled, packets, bytes) = (0, 0, false, 0, 0);
        End {
            node,
            peer,
            address,
            plan,
            outbox,
            inbox,
            events,
            ops,
            reads,
            stalled,
            waiting,
            packets,
            bytes,
            keys,
            dice,
        }
    }

    /// kill -9, and the next run.
    pub fn restart(&mut self, now: Time, change: impl FnOnce(&mut Plan)) {
        change(&mut self.plan);
        let mut dice = self.dice.clone();
        self.outbox.reopen(dice.draw());
        self.inbox.reopen(dice.draw());
        let (address, plan, keys) = (self.address, self.plan.clone(), self.keys);
        let (outbox, inbox) = (self.outbox.clone(), self.inbox.clone());
        *self = End::with_stores(now, address, plan, keys, dice, outbox, inbox);
    }

    pub fn append(&mut self, now: Time, stream: &str, records: &[&[u8]]) {
        let appended = self.outbox.append(stream, records).expect("taken");
        self.node.appended(now, self.peer, &stream.into(), appended.end());
    }

    /// Bodies of a stream that the application here has stored.
    pub fn stored(&self, stream: &str, store: stayfast_units::StoreId) -> Vec<Vec<u8>> {
        let key = CursorKey { sender: "peer".into(), store, stream: stream.into() };
        let body = |item: Item<'_>| match item {
            Item::Record(_, body) => body.to_vec(),
            Item::Hole(..) => b"hole".to_vec(),
        };
        self.inbox.effects(&key).map(body).collect()
    }

    pub fn is_stored(&self, stream: &str, next: u64) -> bool {
        let status = self.node.status(self.peer).expect("the peer is there");
        status.streams.iter().any(|s| &*s.name == stream && s.stored >= RecordNumber(next))
    }

    /// Does what the machines ask of their stores.
    pub fn work(&mut self, now: Time) {
        let mut bound = 100_000;
        while let Some((_, op)) = self.node.poll_store() {
            bound -= 1;
            assert!(bound > 0, "the store is asked for ever: {op:?}");
            self.ops += 1;
            self.reads += usize::from(matches!(op, StoreOp::Read { .. }));
            match self.stalled && matches!(op, StoreOp::Deliver(_)) {
                true => self.waiting.push_back(op),
                false => self.perform(now, op),
            }
        }
        while !self.stalled {
            let Some(op) = self.waiting.pop_front() else { break };
            self.perform(now, op);
        }
        while let Some((_, event)) = self.node.poll_event() {
            self.events.push(event);
        }
    }

    fn perform(&mut self, now: Time, op: StoreOp) {
        if let Some(done) = perform(op, Some(&mut self.outbox), Some(&mut self.inbox)) {
            self.node.handle_store(now, self.peer, done);
        }
    }

    /// Does all there is to do now.
    fn serve(&mut self, now: Time, wire: &mut Vec<Flight>) {
        self.node.handle_timeout(now);
        self.work(now);
        let mut buf = [0; 16 * 1472];
        let mut bound = 10_000;
        while let Some(transmit) = self.node.poll_transmit(now, &mut buf, 16) {
            bound -= 1;
            assert!(bound > 0, "sends for ever");
            let alone = transmit.len == transmit.segment;
            for packet in buf[..transmit.len].chunks(transmit.segment) {
                self.packets += 1;
                self.bytes += packet.len();
                let (at, from, to) = (now + DELAY, self.address, transmit.to);
                wire.push(Flight { at, from, to, bytes: packet.to_vec(), alone, ecn: transmit.ecn });
            }
            self.work(now);
        }
        self.work(now);
        let next = self.node.next_timeout();
        assert!(next.is_none_or(|(at, _)| at > now), "{next:?} is due at {now} and nothing was done");
    }
}

/// A datagram on the wire.
pub struct Flight {
    at: Time,
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub bytes: Vec<u8>,
    /// It was the only one in its transmit.
    pub alone: bool,
    /// Its ECN bits; [`Bench::passes`] may change them.
    pub ecn: u8,
}

pub struct Bench {
    pub now: Time,
    pub a: End,
    pub b: End,
    /// Says of each datagram whether it arrives.
    pub passes: Box<dyn FnMut(&mut Flight) -> bool>,
    pub wire: VecDeque<Flight>,
    /// What arrived at `b`, and what was sent to neither end.
    pub seen: Vec<Vec<u8>>,
    pub strays: Vec<(SocketAddr, usize)>,
}

impl Bench {
    pub fn new(seed: u64, a: Plan, b: Plan) -> Bench {
        let (ka, kb) = (seed ^ 0xa, seed ^ 0xb);
        let (pa, pb) = (identity(ka).public(), identity(kb).public());
        let now = Time::from_millis(1_000);
        Bench {
            now,
            a: End::new(now, at(1), a, (ka, pb), seed ^ 0x1a),
            b: End::new(now, at(2), b, (kb, pa), seed ^ 0x1b),
            passes: Box::new(|_| true),
            wire: VecDeque::new(),
            seen: Vec::new(),
            strays: Vec::new(),
        }
    }

    /// Lets `duration` pass.
    pub fn run(&mut self, duration: Duration) {
        let end = self.now + duration;
        loop {
            self.serve();
            let arrival = self.wire.front().map(|flight| flight.at);
            let timeouts = [&self.a, &self.b].map(|end| end.node.next_timeout().map(|(at, _)| at));
            let next = timeouts.into_iter().chain([arrival]).flatten().min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            self.arrive();
        }
        self.now = end;
    }

    /// Runs until `done`, at most `limit`. Returns whether it was.
    pub fn until(&mut self, limit: Duration, mut done: impl FnMut(&Bench) -> bool) -> bool {
        let end = self.now + limit;
        while self.now < end && !done(self) {
            self.run(5 * MS);
        }
        done(self)
    }

    fn serve(&mut self) {
        let mut out = Vec::new();
        self.a.serve(self.now, &mut out);
        self.b.serve(self.now, &mut out);
        for mut flight in out {
            if (self.passes)(&mut flight) {
                self.wire.push_back(flight);
            }
        }
    }

    fn arrive(&mut self) {
        while self.wire.front().is_some_and(|flight| flight.at <= self.now) {
            let Some(mut flight) = self.wire.pop_front() else { break };
            let end = match flight.to {
                to if to == self.a.address => &mut self.a,
                to if to == self.b.address => {
                    self.seen.push(flight.bytes.clone());
                    &mut self.b
                }
                to => {
                    self.strays.push((to, flight.bytes.len()));
                    continue;
                }
            };
            end.node.handle_datagram(self.now, flight.from, flight.ecn, &mut flight.bytes);
        }
    }

    /// The records of `a` that `b` has stored.
    pub fn stored(&self, stream: &str) -> Vec<Vec<u8>> {
        self.b.stored(stream, self.a.outbox.store_id())
    }

    pub fn rejected(end: &End) -> u64 {
        end.node.rejected().map(|(_, n)| n).sum()
    }
}
