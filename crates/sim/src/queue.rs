//! What waits at a bottleneck, and who decides about it.

mod codel;
mod drop_tail;
mod fq_codel;
mod red;

pub use codel::CoDel;
pub use red::Red;

use crate::account::{Account, Fate};
use crate::chance::Dice;
use crate::element::Limit;
use crate::path::Packet;
use alloc::boxed::Box;
use codel::Control;
use drop_tail::Fifo;
use fq_codel::FlowQueues;
use red::Average;
use stayfast_units::{Rate, Time};

/// A full-size datagram on the wire: 1,500 B and an Ethernet header.
pub(crate) const FULL_SIZE: u64 = 1_514;

/// How a bottleneck decides who waits, who is next, and who is told to slow down.
///
/// A [`Limit`] holds for all of them; what is beyond it is dropped whatever they would say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discipline {
    /// First in, first out; what finds the queue full is dropped.
    #[default]
    DropTail,
    /// Random early detection: drops or marks what arrives, the more likely the longer the queue is on average.
    Red(Red),
    /// Controlled delay: drops or marks what leaves, if everything has waited too long for a while (RFC 8289).
    CoDel(CoDel),
    /// A queue with CoDel for each flow, served in turn (RFC 8290). A flow is what has the same addresses and ports,
    /// hashed to one of 1,024 queues; a turn is 1,514 B. Beyond the limit the longest queue
    /// gives up half of what it has, 64 at most, from its head.
    FqCoDel(CoDel),
}

/// A discipline with its state and what waits in it.
#[derive(Debug)]
pub(crate) enum Queue {
    DropTail(Fifo),
    Red(Red, Average, Fifo),
    CoDel(CoDel, Control, Fifo),
    FqCoDel(CoDel, Box<FlowQueues>),
}

/// What a queue has to know of the bottleneck when something arrives.
#[derive(Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) now: Time,
    pub(crate) dice: Dice,
    pub(crate) rate: Rate,
    /// None if the wire is free: then it need not wait.
    pub(crate) limit: Option<Limit>,
}

impl Queue {
    pub(crate) fn new(discipline: Discipline) -> Queue {
        match discipline {
            Discipline::DropTail => Queue::DropTail(Fifo::default()),
            Discipline::Red(red) => Queue::Red(red, Average::default(), Fifo::default()),
            Discipline::CoDel(codel) => Queue::CoDel(codel, Control::default(), Fifo::default()),
            Discipline::FqCoDel(codel) => Queue::FqCoDel(codel, Box::new(FlowQueues::new())),
        }
    }

    /// Takes the parameters of the same discipline; false for another one.
    pub(crate) fn set(&mut self, discipline: Discipline) -> bool {
        match (self, discipline) {
            (Queue::DropTail(_), Discipline::DropTail) => {}
            (Queue::Red(old, ..), Discipline::Red(new)) => *old = new,
            (Queue::CoDel(old, ..), Discipline::CoDel(new)) => *old = new,
            (Queue::FqCoDel(old, _), Discipline::FqCoDel(new)) => *old = new,
            _ => return false,
        }
        true
    }

    /// A packet arrives: it waits, or it is dropped, or another is in its place.
    pub(crate) fn push(&mut self, at: Arrival, mut packet: Packet, account: &mut Account) {
        let fifo = match self {
            Queue::DropTail(fifo) | Queue::CoDel(.., fifo) => fifo,
            Queue::Red(red, average, fifo) => {
                if average.wants_less(red, &at, fifo.len(), packet.ordinal) && !packet.mark(red.ecn, account) {
                    return account.discard(packet.datagram, Fate::Managed);
                }
                fifo
            }
            Queue::FqCoDel(_, flows) => return flows.push(at, packet, account),
        };
        if at.limit.is_some_and(|limit| !fifo.has_room(limit, &packet)) {
            return account.discard(packet.datagram, Fate::Overflowed);
        }
        fifo.push(at.now, packet);
    }

    /// The wire is free: who is next?
    pub(crate) fn pop(&mut self, now: Time, account: &mut Account) -> Option<Packet> {
        match self {
            Queue::DropTail(fifo) => fifo.pop().map(|(_, packet)| packet),
            Queue::Red(_, average, fifo) => {
                let next = fifo.pop().map(|(_, packet)| packet);
                if next.is_none() {
                    average.idle(now);
                }
                next
            }
            Queue::CoDel(codel, control, fifo) => control.next(codel, now, fifo, account),
            Queue::FqCoDel(codel, flows) => flows.next(codel, now, account),
        }
    }

    /// Datagrams and bytes in it.
    pub(crate) fn waiting(&self) -> (usize, u64) {
        match self {
            Queue::DropTail(fifo) | Queue::Red(.., fifo) | Queue::CoDel(.., fifo) => (fifo.len(), fifo.bytes()),
            Queue::FqCoDel(_, flows) => flows.waiting(),
        }
    }
}

/// Packets of one queue, from its head.
trait Source {
    /// The next one, and since when it has waited.
    fn pop(&mut self) -> Option<(Time, Packet)>;
    /// Bytes that are left.
    fn bytes(&self) -> u64;
}
