use super::WINDOW_MAX;
use super::gaps::Gaps;
use super::goodput::Goodput;
use super::segment::{Ack, Block, Segment, TCP_PAYLOAD};
use crate::{Datagram, Node, Poll};
use core::net::SocketAddr;
use core::time::Duration;
use stayfast_units::{Rate, Time};

/// How long one segment waits for a second before it is acknowledged alone (RFC 5681, 4.2, allows 500 ms; this is
/// Linux).
const DELAY: Duration = Duration::from_millis(40);

/// The receiving end of a bulk TCP flow.
///
/// It acknowledges every second segment, or one after 40 ms; at once when there is a gap, one is closed, or a
/// segment comes twice (RFC 5681, 4.2). It reports the three blocks that changed last (RFC 2018), duplicates
/// (RFC 2883), and echoes time stamps (RFC 7323, 4.3). Segments that lie more than the largest window ahead are dropped.
///
/// ```
/// use core::time::Duration;
/// use stayfast_sim::{Limit, Path, TcpConfig, TcpReceiver, TcpSender, World};
/// use stayfast_units::{Rate, Time};
///
/// let here = "10.0.0.1:1".parse().unwrap();
/// let there = "10.0.0.2:1".parse().unwrap();
/// let mut world = World::new(1);
/// let sender = world.add("sender", here, TcpSender::new(TcpConfig::to(there)));
/// let receiver = world.add("receiver", there, TcpReceiver::new());
/// let rate = Rate::from_bits_per_sec(10_000_000);
/// let delay = Duration::from_millis(10);
/// world.connect(sender, receiver, Path::new().delay(delay).rate(rate, Limit::Bytes(25_000)));
/// world.connect(receiver, sender, Path::new().delay(delay));
///
/// world.run_until(Time::from_millis(5_000));
/// let goodput = world.node(receiver).unwrap().goodput(Time::from_millis(1_000), Time::from_millis(5_000));
/// assert!(goodput > Rate::from_bits_per_sec(9_000_000));
/// ```
#[derive(Debug)]
pub struct TcpReceiver {
    /// The first segment that is missing.
    next: u64,
    gaps: Gaps,
    goodput: Goodput,
    duplicates: u64,
    malformed: u64,
    reply: Reply,
}

/// What is to be said, and when.
#[derive(Debug, Default)]
struct Reply {
    to: Option<SocketAddr>,
    /// When the acknowledgement is due; none if all has been said.
    due: Option<Time>,
    /// Segments since the last one.
    unsaid: u64,
    /// What it acknowledged.
    said: u64,
    /// The time stamp to echo.
    echo: Time,
    duplicate: Option<u64>,
}

impl TcpReceiver {
    /// A receiver that has nothing yet.
    pub fn new() -> TcpReceiver {
        TcpReceiver {
            next: 0,
            gaps: Gaps::default(),
            goodput: Goodput::new(),
            duplicates: 0,
            malformed: 0,
            reply: Reply::default(),
        }
    }

    /// Bytes that have arrived in order.
    pub fn delivered(&self) -> u64 {
        self.goodput.total()
    }

    /// The rate at which bytes arrived in order between two times. Both are rounded down to a step that is a millisecond
    /// in the first 16 s of virtual time and then doubles with each doubling of the time.
    pub fn goodput(&self, from: Time, to: Time) -> Rate {
        self.goodput.between(from, to)
    }

    /// Segments that came again.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Datagrams that were no segments, or damaged, or lay beyond the largest window.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    fn receive(&mut self, now: Time, number: u64, stamp: Time) {
        let had_gap = !self.gaps.is_empty();
        let before = self.next;
        let fresh = if number < self.next {
            false
        } else if number > self.next {
            self.gaps.insert(number)
        } else {
            self.next = self.gaps.take(number + 1);
            true
        };
        if self.next > before {
            self.goodput.add(now, (self.next - before) * TCP_PAYLOAD);
        }
        if !fresh {
            self.duplicates += 1;
            self.reply.duplicate = Some(number);
        }
        // Whatever is not simply the next one is told at once.
        let ordinary = fresh && !had_gap && number == before;
        self.reply.owe(now, number, stamp, !ordinary);
    }

    fn ack(&mut self) -> Ack {
        let duplicate = self.reply.duplicate.take();
        let again = duplicate.map(|number| Block { start: number, end: number + 1 });
        let around = duplicate.and_then(|number| self.gaps.around(number));
        let others = self.gaps.newest().filter(|block| Some(*block) != around);
        let mut blocks = again.into_iter().chain(around).chain(others);
        Ack { next: self.next, echo: self.reply.echo, blocks: core::array::from_fn(|_| blocks.next()) }
    }
}

impl Reply {
    /// Notes that a segment has come and when that must be said.
    fn owe(&mut self, now: Time, number: u64, stamp: Time, at_once: bool) {
        // The stamp of the segment that the next acknowledgement begins with, never an older one (RFC 7323, 4.3).
        if number <= self.said {
            self.echo = self.echo.max(stamp);
        }
        self.unsaid += 1;
        let due = if at_once || self.unsaid >= 2 { now } else { now + DELAY };
        self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
    }
}

impl Default for TcpReceiver {
    fn default() -> TcpReceiver {
        TcpReceiver::new()
    }
}

impl Node for TcpReceiver {
    fn handle(&mut self, now: Time, datagram: &mut Datagram) {
        match Segment::decode(&datagram.bytes) {
            Some(Segment::Data { number, stamp }) if number < self.next + WINDOW_MAX => {
                self.reply.to = Some(datagram.from);
                self.receive(now, number, stamp);
            }
            _ => self.malformed += 1,
        }
    }

    fn poll(&mut self, now: Time, out: &mut Datagram) -> Poll {
        let (Some(to), Some(due)) = (self.reply.to, self.reply.due) else { return Poll::Idle };
        if now < due {
            return Poll::WakeAt(due);
        }
        let ack = self.ack();
        (self.reply.due, self.reply.unsaid, self.reply.said) = (None, 0, ack.next);
        out.to = to;
        Segment::Ack(ack).encode(&mut out.bytes);
        Poll::Transmit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// Gives a receiver these segments at these milliseconds, and says what it acknowledges and when.
    fn acks(segments: &[(u64, u64)]) -> Vec<(u64, Ack)> {
        let host = "10.0.0.1:1".parse().unwrap();
        let mut receiver = TcpReceiver::new();
        let mut acks = Vec::new();
        let mut segments = segments.iter().peekable();
        for ms in 0..200 {
            let now = Time::from_millis(ms);
            while let Some((_, number)) = segments.next_if(|(at, _)| *at == ms) {
                let mut datagram = Datagram::new(host, host, Vec::new());
                Segment::Data { number: *number, stamp: now }.encode(&mut datagram.bytes);
                receiver.handle(now, &mut datagram);
            }
            let mut out = Datagram::blank(Vec::new());
            while receiver.poll(now, &mut out) == Poll::Transmit {
                let Some(Segment::Ack(ack)) = Segment::decode(&out.bytes) else { panic!("no acknowledgement") };
                acks.push((ms, ack));
                out.bytes.clear();
            }
        }
        acks
    }

    #[test]
    fn every_second_segment_is_acknowledged_and_a_single_one_after_40_ms() {
        let said: Vec<_> = acks(&[(1, 0), (2, 1), (3, 2)]).iter().map(|(ms, ack)| (*ms, ack.next)).collect();
        assert_eq!(said, [(2, 2), (43, 3)]);
    }

    #[test]
    fn around_a_gap_everything_is_told_at_once() {
        let block = |start, end| Some(Block { start, end });
        let said = acks(&[(1, 0), (2, 2), (3, 2), (4, 1), (5, 0)]);
        let said: Vec<_> = said.iter().map(|(ms, ack)| (*ms, ack.next, ack.blocks)).collect();
        assert_eq!(
            said,
            [
                (2, 1, [block(2, 3), None, None]),
                (3, 1, [block(2, 3), block(2, 3), None]),
                (4, 3, [None; 3]),
                (5, 3, [block(0, 1), None, None]),
            ]
        );
    }

    #[test]
    fn the_stamp_is_that_of_the_segment_that_was_waited_for() {
        let said = acks(&[(1, 0), (2, 1), (3, 3), (9, 2), (10, 4), (11, 5)]);
        let echoes: Vec<_> = said.iter().map(|(_, ack)| ack.echo.as_micros() / 1_000).collect();
        // The first of two, the last in order before a gap, the one that closed it, and the first of two again.
        assert_eq!(echoes, [1, 1, 9, 10]);
    }

    #[test]
    fn what_lies_beyond_the_window_is_refused() {
        let host = "10.0.0.1:1".parse().unwrap();
        let mut receiver = TcpReceiver::new();
        for number in [WINDOW_MAX - 1, WINDOW_MAX, u64::MAX] {
            let mut datagram = Datagram::new(host, host, Vec::new());
            Segment::Data { number, stamp: Time::ZERO }.encode(&mut datagram.bytes);
            receiver.handle(Time::ZERO, &mut datagram);
        }
        assert_eq!(receiver.malformed(), 2);
        assert!(receiver.gaps.around(WINDOW_MAX - 1).is_some() && receiver.gaps.around(WINDOW_MAX).is_none());
    }
}
