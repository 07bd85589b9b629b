use super::Source;
use crate::element::Limit;
use crate::path::Packet;
use alloc::collections::VecDeque;
use stayfast_units::Time;

/// Packets in the order in which they came, each with the time.
#[derive(Debug, Default)]
pub(crate) struct Fifo {
    packets: VecDeque<(Time, Packet)>,
    bytes: u64,
}

impl Fifo {
    /// Is there room for one more?
    pub(super) fn has_room(&self, limit: Limit, packet: &Packet) -> bool {
        limit.allows(self.packets.len() + 1, self.bytes + packet.datagram.wire_size())
    }

    pub(super) fn push(&mut self, now: Time, packet: Packet) {
        self.bytes += packet.datagram.wire_size();
        self.packets.push_back((now, packet));
    }

    pub(super) fn len(&self) -> usize {
        self.packets.len()
    }
}

impl Source for Fifo {
    fn pop(&mut self) -> Option<(Time, Packet)> {
        let next = self.packets.pop_front()?;
        self.bytes -= next.1.datagram.wire_size();
        Some(next)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}
