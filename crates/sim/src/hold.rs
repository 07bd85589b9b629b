use crate::path::Packet;
use alloc::collections::{BinaryHeap, VecDeque};
use core::cmp::{Ordering, Reverse};
use stayfast_units::Time;

/// Packets that wait for a moment, first in first out.
#[derive(Debug, Default)]
pub(crate) struct Line {
    waiting: VecDeque<(Time, Packet)>,
    last: Time,
}

impl Line {
    /// Holds `packet` until `due`, or until the one before it has left if that is later.
    pub(crate) fn push(&mut self, due: Time, packet: Packet) {
        self.last = self.last.max(due);
        self.waiting.push_back((self.last, packet));
    }

    /// When the next packet leaves.
    pub(crate) fn due(&self) -> Option<Time> {
        self.waiting.front().map(|(due, _)| *due)
    }

    /// The next packet, whether or not it is time.
    pub(crate) fn pop(&mut self) -> Option<Packet> {
        self.waiting.pop_front().map(|(_, packet)| packet)
    }
}

/// Packets that wait each for its own moment.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    waiting: BinaryHeap<Reverse<Held>>,
    pushed: u64,
}

#[derive(Debug)]
struct Held {
    due: Time,
    sequence: u64,
    packet: Packet,
}

impl Crowd {
    /// Holds `packet` until `due`. Those that are due at the same moment leave as they came.
    pub(crate) fn push(&mut self, due: Time, packet: Packet) {
        self.pushed += 1;
        self.waiting.push(Reverse(Held { due, sequence: self.pushed, packet }));
    }

    /// When the next packet leaves.
    pub(crate) fn due(&self) -> Option<Time> {
        self.waiting.peek().map(|Reverse(held)| held.due)
    }

    /// The next packet, whether or not it is time.
    pub(crate) fn pop(&mut self) -> Option<Packet> {
        self.waiting.pop().map(|Reverse(held)| held.packet)
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Held) -> Ordering {
        (self.due, self.sequence).cmp(&(other.due, other.sequence))
    }
}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Held) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Held) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Held {}
