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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Datagram;

    fn packet(ordinal: u64) -> Packet {
        Packet { ordinal, datagram: Datagram::blank(std::vec![]) }
    }

    #[test]
    fn in_a_line_nobody_leaves_before_the_one_in_front() {
        let mut line = Line::default();
        for (ordinal, due) in [(0, 10), (1, 3), (2, 12)] {
            line.push(Time::from_millis(due), packet(ordinal));
        }
        for (ordinal, due) in [(0, 10), (1, 10), (2, 12)] {
            assert_eq!(line.due(), Some(Time::from_millis(due)));
            assert_eq!(line.pop().map(|packet| packet.ordinal), Some(ordinal));
        }
        assert_eq!(line.due(), None);
    }

    #[test]
    fn in_a_crowd_each_leaves_at_its_time_and_equals_as_they_came() {
        let mut crowd = Crowd::default();
        for (ordinal, due) in [(0, 10), (1, 3), (2, 10), (3, 10)] {
            crowd.push(Time::from_millis(due), packet(ordinal));
        }
        for (ordinal, due) in [(1, 3), (0, 10), (2, 10), (3, 10)] {
            assert_eq!(crowd.due(), Some(Time::from_millis(due)));
            assert_eq!(crowd.pop().map(|packet| packet.ordinal), Some(ordinal));
        }
        assert_eq!(crowd.due(), None);
    }
}
