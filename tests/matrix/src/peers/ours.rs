use super::{Flow, Place, Sample};
use crate::plan::Cell;
use stayfast_seal::Identity;
use stayfast_sim::{Handle, NodeId, World};
use stayfast_store::{Memory, Run};
use stayfast_tests::{Entropy, Machine, Part};
use stayfast_units::{RecordNumber, Time};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Records of one append.
const RUN: u64 = 256;

/// Our two machines with model stores.
pub struct Stayfast {
    sender: Handle<Machine>,
    receiver: Handle<Machine>,
    size: usize,
}

impl Stayfast {
    /// Starts with `records` in the outbox.
    pub fn new(place: &mut Place<'_>, cell: &Cell, records: u64) -> Stayfast {
        let address = |end| SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, place.flow, end)), 4711);
        let entropy = |run| Entropy::new(place.seed, run);
        let (ours, theirs) = (Identity::generate(&mut entropy(1)), Identity::generate(&mut entropy(2)));
        let mut outbox = Memory::new(place.seed ^ 0x5e4d);
        append(&mut outbox, cell.size, records);
        let (now, part) = (place.world.now(), Part::Sender(address(2)));
        let sender = Machine::new(now, part, (&ours, theirs.public()), outbox, entropy(3));
        let inbox = Memory::new(place.seed ^ 0x4ec1).without_effects();
        let receiver = Machine::new(now, Part::Receiver(None), (&theirs, ours.public()), inbox, entropy(4));
        let sender = place.world.add(&format!("stayfast {} sender", place.flow), address(1), sender);
        let receiver = place.world.add(&format!("stayfast {} receiver", place.flow), address(2), receiver);
        place.world.route(sender, receiver, place.there);
        place.world.route(receiver, sender, place.back);
        Stayfast { sender, receiver, size: cell.size }
    }
}

const STREAM: &str = "log";

/// `records` records of `size` bytes, in runs that all share their bodies.
fn append(outbox: &mut Memory, size: usize, records: u64) {
    let body = vec![7; size];
    let mut left = records;
    let mut run = Run::new(RecordNumber::ZERO);
    while left > 0 {
        let count = left.min(RUN);
        if run.len() as u64 != count {
            run = Run::new(RecordNumber::ZERO);
            (0..count).for_each(|_| run.push(&body).expect("a run has room for them"));
        }
        outbox.append_run(STREAM, &run).expect("a model store takes records");
        left -= count;
    }
}

impl Flow for Stayfast {
    fn offer(&mut self, world: &mut World, records: u64) {
        if let Some(machine) = world.node_mut(self.sender) {
            let body = vec![7; self.size];
            machine.append(STREAM, &vec![&body[..]; records as usize]);
        }
    }

    fn taken(&self, world: &World) -> u64 {
        self.log(world).last().map_or(0, |(_, taken)| *taken)
    }

    fn log<'a>(&self, world: &'a World) -> &'a [(Time, u64)] {
        world.node(self.receiver).map_or(&[], |machine| &machine.taken)
    }

    fn sender(&self) -> NodeId {
        self.sender.id()
    }

    fn sample(&self, world: &World) -> Sample {
        let status = world.node(self.sender).map(Machine::status).unwrap_or_default();
        Sample {
            window: status.window,
            in_flight: status.in_flight,
            rtt_us: status.rtt.as_micros() as u64,
            lost: status.lost,
            late: status.late,
            episodes: status.episodes,
            undone: status.undos,
            resent: status.bytes_resent,
        }
    }
}
