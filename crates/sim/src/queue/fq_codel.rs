use super::codel::{CoDel, Control};
use super::{Arrival, FULL_SIZE, Source};
use crate::Datagram;
use crate::account::{Account, Fate};
use crate::digest::Digest;
use crate::path::Packet;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use stayfast_units::Time;

/// Queues into which flows are hashed (RFC 8290, 5.2.3).
const FLOWS: usize = 1_024;
/// The most that a queue gives up at once when there is no more room (RFC 8290, 4.1).
const BATCH: u32 = 64;

/// A queue for each flow. Those that have something to send stand in one of two lists: new flows go first, once,
/// and then join the old ones, who take turns of a quantum of bytes (RFC 8290, 4).
#[derive(Debug)]
pub(crate) struct FlowQueues {
    flows: Vec<Flow>,
    new: VecDeque<u16>,
    old: VecDeque<u16>,
    slab: Slab,
    packets: usize,
    bytes: u64,
}

#[derive(Clone, Debug, Default)]
struct Flow {
    chain: Chain,
    /// Bytes it may still send in this turn.
    credit: i64,
    /// In one of the lists?
    listed: bool,
    control: Control,
}

impl FlowQueues {
    pub(super) fn new() -> FlowQueues {
        FlowQueues {
            flows: vec![Flow::default(); FLOWS],
            new: VecDeque::with_capacity(FLOWS),
            old: VecDeque::with_capacity(FLOWS),
            slab: Slab::default(),
            packets: 0,
            bytes: 0,
        }
    }

    pub(super) fn waiting(&self) -> (usize, u64) {
        (self.packets, self.bytes)
    }

    /// Puts a packet in the queue of its flow. If that is too much, the longest queue, which may be its own, gives up
    /// half of its packets, oldest first (RFC 8290, 4.1).
    pub(super) fn push(&mut self, at: Arrival, packet: Packet, account: &mut Account) {
        let index = at.dice.below(hash(&packet.datagram), FLOWS as u64) as usize;
        let flow = &mut self.flows[index];
        self.packets += 1;
        self.bytes += packet.datagram.wire_size();
        self.slab.push(&mut flow.chain, at.now, packet);
        if !flow.listed {
            (flow.listed, flow.credit) = (true, FULL_SIZE as i64);
            self.new.push_back(index as u16);
        }
        while at.limit.is_some_and(|limit| !limit.allows(self.packets, self.bytes)) {
            let Some(longest) = self.longest() else { return };
            let chain = &mut self.flows[longest].chain;
            for _ in 0..chain.packets.div_ceil(2).min(BATCH) {
                let Some((_, packet)) = self.slab.pop(chain) else { return };
                self.packets -= 1;
                self.bytes -= packet.datagram.wire_size();
                account.discard(packet.datagram, Fate::Overflowed);
            }
        }
    }

    /// The queue with the most bytes; of equals, the one that is listed first. None if all are empty.
    fn longest(&self) -> Option<usize> {
        let listed = self.new.iter().chain(&self.old).map(|index| usize::from(*index));
        let longest = listed.rev().max_by_key(|index| self.flows[*index].chain.bytes);
        longest.filter(|index| self.flows[*index].chain.packets > 0)
    }

    /// The next packet of the flow whose turn it is (RFC 8290, 4.2).
    pub(super) fn next(&mut self, codel: &CoDel, now: Time, account: &mut Account) -> Option<Packet> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = list.pop_front()?;
            let flow = &mut self.flows[usize::from(index)];
            if flow.credit <= 0 {
                flow.credit += FULL_SIZE as i64;
                self.old.push_back(index);
                continue;
            }
            let mut queue = Head {
                slab: &mut self.slab,
                chain: &mut flow.chain,
                packets: &mut self.packets,
                bytes: &mut self.bytes,
            };
            if let Some(packet) = flow.control.next(codel, now, &mut queue, account) {
                flow.credit -= packet.datagram.wire_size() as i64;
                list.push_front(index);
                return Some(packet);
            }
            // A new flow that runs dry waits behind the old ones, or else it could always come back as a new one.
            if is_new {
                self.old.push_back(index);
            } else {
                flow.listed = false;
            }
        }
    }
}

/// One flow's queue, as CoDel sees it.
struct Head<'a> {
    slab: &'a mut Slab,
    chain: &'a mut Chain,
    packets: &'a mut usize,
    bytes: &'a mut u64,
}

impl Source for Head<'_> {
    fn pop(&mut self) -> Option<(Time, Packet)> {
        let next = self.slab.pop(self.chain)?;
        *self.packets -= 1;
        *self.bytes -= next.1.datagram.wire_size();
        Some(next)
    }

    fn bytes(&self) -> u64 {
        self.chain.bytes
    }
}

/// The same for all datagrams with the same addresses and ports.
fn hash(datagram: &Datagram) -> u64 {
    let mut digest = Digest::new();
    digest.address(datagram.from);
    digest.address(datagram.to);
    digest.value()
}

/// Packets of all flows in one place, so that a flow that grows needs no memory that another has left.
#[derive(Debug, Default)]
struct Slab {
    slots: Vec<Slot>,
    free: Option<u32>,
}

#[derive(Debug)]
struct Slot {
    held: Option<(Time, Packet)>,
    next: Option<u32>,
}

/// The packets of one flow, linked through the slab.
#[derive(Clone, Debug, Default)]
struct Chain {
    head: Option<u32>,
    tail: Option<u32>,
    packets: u32,
    bytes: u64,
}

impl Slab {
    fn push(&mut self, chain: &mut Chain, now: Time, packet: Packet) {
        chain.packets += 1;
        chain.bytes += packet.datagram.wire_size();
        let slot = Slot { held: Some((now, packet)), next: None };
        let index = match self.free {
            Some(index) => {
                let old = core::mem::replace(&mut self.slots[index as usize], slot);
                self.free = old.next;
                index
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
        };
        match chain.tail.replace(index) {
            Some(tail) => self.slots[tail as usize].next = Some(index),
            None => chain.head = Some(index),
        }
    }

    fn pop(&mut self, chain: &mut Chain) -> Option<(Time, Packet)> {
        let index = chain.head?;
        let slot = &mut self.slots[index as usize];
        chain.head = core::mem::replace(&mut slot.next, self.free);
        self.free = Some(index);
        if chain.head.is_none() {
            chain.tail = None;
        }
        let held = slot.held.take()?;
        chain.packets -= 1;
        chain.bytes -= held.1.datagram.wire_size();
        Some(held)
    }
}
