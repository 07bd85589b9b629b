use crate::element::Limit;
use crate::path::Packet;
use alloc::collections::VecDeque;
use core::time::Duration;
use stayfast_units::{Rate, Time};

/// A bottleneck with a drop-tail queue: the head is on the wire, the others wait.
///
/// Work is counted in bytes times 10^9: a packet of n bytes is n x 10^9 of work, and each nanosecond does as much
/// as the rate has bytes per second. All of it is whole numbers, and what the last nanosecond of a packet does
/// beyond its end belongs to the next one: a busy hour carries exactly its rate.
#[derive(Debug)]
pub(crate) struct Server {
    rate: Rate,
    limit: Limit,
    queue: VecDeque<Packet>,
    /// Bytes in `queue` behind the head.
    waiting: u64,
    /// Work left of the head at `since`.
    work: u64,
    since: Time,
    due: Option<Time>,
}

impl Server {
    pub(crate) fn new(rate: Rate, limit: Limit) -> Server {
        Server { rate, limit, queue: VecDeque::new(), waiting: 0, work: 0, since: Time::ZERO, due: None }
    }

    /// Takes a packet, or gives it back if the queue is full.
    pub(crate) fn push(&mut self, now: Time, packet: Packet) -> Result<(), Packet> {
        let size = packet.datagram.wire_size();
        if self.queue.is_empty() {
            self.serve(now, work_of(size));
        } else if self.limit.allows(self.queue.len(), self.waiting + size) {
            self.waiting += size;
        } else {
            return Err(packet);
        }
        self.queue.push_back(packet);
        Ok(())
    }

    /// When the head has left the wire; never at rate zero.
    pub(crate) fn due(&self) -> Option<Time> {
        self.due
    }

    /// The head, which leaves at the moment [`Server::due`] names.
    pub(crate) fn pop(&mut self) -> Option<Packet> {
        let done = self.due.take()?;
        let head = self.queue.pop_front()?;
        if let Some(next) = self.queue.front() {
            let size = next.datagram.wire_size();
            let rate = self.rate.bytes_per_sec();
            let beyond = (rate - self.work % rate) % rate;
            self.waiting -= size;
            self.serve(done, work_of(size).saturating_sub(beyond));
        }
        Some(head)
    }

    /// Changes the parameters. The head keeps what has been done of it; what waits beyond a lower limit stays.
    pub(crate) fn set(&mut self, now: Time, rate: Rate, limit: Limit) {
        let done = self.rate.bytes_per_sec().saturating_mul((now - self.since).as_nanos() as u64);
        (self.rate, self.limit) = (rate, limit);
        if !self.queue.is_empty() {
            self.serve(now, self.work.saturating_sub(done));
        }
    }

    /// Datagrams and bytes that wait, without the one on the wire.
    pub(crate) fn waiting(&self) -> (usize, u64) {
        (self.queue.len().saturating_sub(1), self.waiting)
    }

    fn serve(&mut self, now: Time, work: u64) {
        (self.since, self.work) = (now, work);
        self.due = match self.rate.bytes_per_sec() {
            0 => None,
            rate => Some(now + Duration::from_nanos(work.div_ceil(rate))),
        };
    }
}

/// A datagram has at most 65,535 bytes in reality; a longer one made up by a test saturates.
fn work_of(size: u64) -> u64 {
    size.saturating_mul(1_000_000_000)
}
