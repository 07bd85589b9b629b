//! Operations on both ends of a flow and the network between them, and what must hold.

use super::segment::{Ack, BLOCKS_MAX, Block, Segment, TCP_PAYLOAD};
use super::sender::Counts;
use super::{TcpConfig, TcpControl, TcpReceiver, TcpSender, WINDOW_MAX};
use crate::{Datagram, Node, Poll};
use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use arbitrary::{Arbitrary, Unstructured};
use core::net::{Ipv4Addr, SocketAddr};
use core::time::Duration;
use stayfast_units::Time;

/// One thing that happens.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub enum Op {
    /// How the flow is; before all others, wherever it stands.
    Setup(Setup),
    /// Time passes, in units of four microseconds.
    Wait(u16),
    /// The network delivers so many, the oldest first.
    Deliver(Way, u8),
    /// The network delivers one of those that are under way.
    Overtake(Way, u8),
    /// The network loses one of them.
    Lose(Way, u8),
    /// The network copies one of them.
    Copy(Way, u8),
    /// The network damages one of them: a bit.
    Damage(Way, u8, u16),
    /// Something else arrives.
    Junk(Way, [u8; 30], u8),
    /// Somebody makes up an acknowledgement, if that is allowed.
    Forge {
        /// Its number, relative to the right one.
        next: i8,
        /// Its block, relative to its number, and how long that is.
        block: (i8, u8),
        /// What it echoes, in milliseconds.
        echo: u8,
    },
}

/// A flow.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub struct Setup {
    /// Reno instead of CUBIC.
    pub reno: bool,
    /// Paced.
    pub paced: bool,
    /// Acknowledgements may be made up, so that nothing need arrive.
    pub forged: bool,
    /// How much there is to send.
    pub segments: u8,
}

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Arbitrary)]
pub enum Way {
    /// Of the data.
    There,
    /// Of the acknowledgements.
    Back,
}

/// Operations up to the end of the input. (`Vec` would toss a coin before each one: one on average.)
pub fn ops(bytes: &[u8]) -> Vec<Op> {
    let mut input = Unstructured::new(bytes);
    core::iter::from_fn(|| if input.is_empty() { None } else { input.arbitrary().ok() }).collect()
}

/// Does what `ops` say, and then lets the network be good, and checks that
///
/// - everything arrives, in order and once, as a set of what the network delivered says;
/// - each acknowledgement says exactly what has arrived, and in time;
/// - but for probes nothing leaves when the window is full, and the sender's account of what is in flight is right;
/// - no more is outstanding than the receiver's window;
/// - what is damaged or made up changes nothing that it should not, and nothing panics.
///
/// # Panics
///
/// If one of these does not hold.
pub fn check(ops: &[Op]) {
    run(ops, Fault::None);
}

/// A mistake that the check must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(test), expect(dead_code, reason = "only tests make mistakes"))]
enum Fault {
    None,
    AcknowledgesTooMuch,
    ReportsTooMuch,
    NeverRepairs,
    IgnoresTheWindow,
}

fn run(ops: &[Op], fault: Fault) -> Counts {
    let setup = ops.iter().find_map(|op| if let Op::Setup(setup) = op { Some(*setup) } else { None });
    let usual = Setup { reno: false, paced: false, forged: false, segments: 100 };
    let mut test = Test::new(setup.unwrap_or(usual), fault);
    test.settle();
    for op in ops {
        test.apply(*op);
        test.settle();
    }
    test.finish();
    test.sender.counts
}

struct Test {
    now: Time,
    sender: TcpSender,
    receiver: TcpReceiver,
    wires: [VecDeque<Datagram>; 2],
    segments: u64,
    /// What the network has delivered; what came twice since the last acknowledgement.
    arrived: BTreeSet<u64>,
    again: BTreeSet<u64>,
    /// The first number that has not arrived.
    missing: u64,
    /// Segments since the last acknowledgement.
    unsaid: u32,
    forged: bool,
    fault: Fault,
}

fn host(n: u8) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(10, 0, 0, n), 1))
}

impl Test {
    fn new(setup: Setup, fault: Fault) -> Test {
        let control = if setup.reno { TcpControl::Reno } else { TcpControl::Cubic };
        let segments = u64::from(setup.segments);
        let config = TcpConfig { control, paced: setup.paced, bytes: segments * TCP_PAYLOAD, ..TcpConfig::to(host(2)) };
        Test {
            now: Time::ZERO,
            sender: TcpSender::new(config),
            receiver: TcpReceiver::new(),
            wires: [VecDeque::new(), VecDeque::new()],
            segments,
            arrived: BTreeSet::new(),
            again: BTreeSet::new(),
            missing: 0,
            unsaid: 0,
            forged: setup.forged,
            fault,
        }
    }

    fn wire(&mut self, way: Way) -> &mut VecDeque<Datagram> {
        &mut self.wires[way as usize]
    }

    fn take(&mut self, way: Way, nth: u8) -> Option<Datagram> {
        let wire = self.wire(way);
        let i = usize::from(nth).checked_rem(wire.len())?;
        wire.remove(i)
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Wait(n) => self.pass(Duration::from_micros(4 * u64::from(n))),
            Op::Deliver(way, count) => (0..=count % 16).for_each(|_| self.deliver(way, 0)),
            Op::Overtake(way, nth) => self.deliver(way, nth),
            Op::Lose(way, nth) => drop(self.take(way, nth)),
            Op::Copy(way, nth) => {
                if let Some(datagram) = self.take(way, nth) {
                    self.wire(way).extend([datagram.clone(), datagram]);
                }
            }
            Op::Damage(way, nth, bit) => {
                if let Some(mut datagram) = self.take(way, nth) {
                    let bit = usize::from(bit) % (datagram.bytes.len() * 8);
                    datagram.bytes[bit / 8] ^= 1 << (bit % 8);
                    self.refused(way, datagram);
                }
            }
            Op::Junk(way, bytes, len) => {
                let bytes = bytes[..usize::from(len) % 31].to_vec();
                if Segment::decode(&bytes).is_none() {
                    self.refused(way, Datagram::new(host(3), host(4), bytes));
                }
            }
            Op::Forge { next, block, echo } if self.forged => self.forge(next, block, echo),
            Op::Setup(_) | Op::Forge { .. } => {}
        }
    }

    /// Something that neither end may take.
    fn refused(&mut self, way: Way, mut datagram: Datagram) {
        let before = (self.sender.malformed(), self.receiver.malformed());
        match way {
            Way::There => self.receiver.handle(self.now, &mut datagram),
            Way::Back => self.sender.handle(self.now, &mut datagram),
        }
        let after = (self.sender.malformed(), self.receiver.malformed());
        assert_eq!(after.0 + after.1, before.0 + before.1 + 1, "{datagram:?}");
    }

    fn forge(&mut self, next: i8, block: (i8, u8), echo: u8) {
        let next = self.missing.saturating_add_signed(i64::from(next));
        let start = next.saturating_add_signed(i64::from(block.0));
        let mut blocks = [None; BLOCKS_MAX];
        blocks[0] = (block.1 > 0).then_some(Block { start, end: start + u64::from(block.1) });
        let ack = Ack { next, echo: Time::from_millis(u64::from(echo)), blocks };
        let mut datagram = Datagram::new(host(2), host(1), Vec::new());
        Segment::Ack(ack).encode(&mut datagram.bytes);
        self.sender.handle(self.now, &mut datagram);
    }

    fn deliver(&mut self, way: Way, nth: u8) {
        let Some(mut datagram) = self.take(way, nth) else { return };
        if way == Way::Back {
            let before = self.sender.malformed();
            self.sender.handle(self.now, &mut datagram);
            assert!(self.forged || self.sender.malformed() == before);
        } else if let Some(Segment::Data { number, .. }) = Segment::decode(&datagram.bytes) {
            if !self.arrived.insert(number) {
                self.again.insert(number);
            }
            while self.arrived.contains(&self.missing) {
                self.missing += 1;
            }
            self.unsaid += 1;
            self.receiver.handle(self.now, &mut datagram);
        }
        // As in a world, a machine is polled after each datagram.
        self.settle();
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(due) = self.due().filter(|due| *due <= end) {
            self.now = due.max(self.now + Duration::from_nanos(1));
            self.settle();
        }
        self.now = self.now.max(end);
    }

    /// When one of the machines wants to be asked. Asking twice changes nothing.
    fn due(&mut self) -> Option<Time> {
        let mut out = Datagram::blank(Vec::new());
        let answers = [self.sender.poll(self.now, &mut out), self.receiver.poll(self.now, &mut out)];
        let times = answers.map(|answer| match answer {
            Poll::WakeAt(time) => Some(time),
            Poll::Idle => None,
            Poll::Transmit => panic!("it had nothing to send a moment ago"),
        });
        times.into_iter().flatten().min()
    }

    /// Lets both machines say all they have to say now.
    fn settle(&mut self) {
        loop {
            let mut out = Datagram::blank(Vec::new());
            let (probes, window) = (self.sender.probes(), self.sender.window.size);
            if self.fault == Fault::IgnoresTheWindow {
                self.sender.window.size *= 2.0;
            }
            let answer = self.sender.poll(self.now, &mut out);
            if self.fault == Fault::IgnoresTheWindow {
                self.sender.window.size = window;
            }
            if answer != Poll::Transmit {
                break;
            }
            self.on_data(out, self.sender.probes() > probes);
        }
        self.sender.board.audit();
        let mut out = Datagram::blank(Vec::new());
        while self.receiver.poll(self.now, &mut out) == Poll::Transmit {
            self.on_reply(core::mem::replace(&mut out, Datagram::blank(Vec::new())));
        }
        assert!(self.unsaid < 2, "every second segment is acknowledged at once");
        assert_eq!(self.receiver.delivered(), self.missing * TCP_PAYLOAD, "in order, and once");
    }

    /// The sender sends.
    fn on_data(&mut self, mut datagram: Datagram, probe: bool) {
        let Some(Segment::Data { number, stamp }) = Segment::decode(&datagram.bytes) else { panic!("no data") };
        assert!(number < self.segments && stamp == self.now && datagram.to == host(2));
        let state = self.sender.state();
        assert!(probe || state.in_flight as f64 <= state.window, "{number} leaves in spite of {state:?}");
        assert!(self.sender.board.next() - self.sender.board.first() <= WINDOW_MAX);
        datagram.from = host(1);
        if self.fault == Fault::NeverRepairs && number + 1 < self.sender.board.next() {
            return;
        }
        self.wires[0].push_back(datagram);
    }

    /// The receiver replies.
    fn on_reply(&mut self, mut datagram: Datagram) {
        let Some(Segment::Ack(mut ack)) = Segment::decode(&datagram.bytes) else { panic!("no acknowledgement") };
        self.plant(&mut ack);
        assert_eq!((ack.next, datagram.to), (self.missing, host(1)));
        assert!(ack.echo <= self.now);
        let has = |number: u64| self.arrived.contains(&number);
        for (i, block) in ack.blocks.iter().flatten().enumerate() {
            if i == 0 && block.end == block.start + 1 && self.again.contains(&block.start) {
                continue;
            }
            assert!((block.start..block.end).all(has), "{block:?} is not there");
            assert!(!has(block.start - 1) && !has(block.end) && block.start > self.missing, "{block:?} is not whole");
        }
        let beyond = self.arrived.range(self.missing..).next().is_some();
        assert!(!beyond || ack.blocks.iter().flatten().any(|block| block.end > ack.next), "SACK is missing");
        (self.unsaid, datagram.from) = (0, host(2));
        self.again.clear();
        datagram.bytes.clear();
        Segment::Ack(ack).encode(&mut datagram.bytes);
        self.wires[1].push_back(datagram);
    }

    /// A good network: everything arrives, in order.
    fn finish(&mut self) {
        // A forged acknowledgement can make the two wait for each other for ever.
        for _ in 0..if self.forged { 100 } else { 10_000 } {
            if self.sender.is_done(self.now) && self.wires.iter().all(VecDeque::is_empty) {
                break;
            }
            let count = self.wires.each_ref().map(VecDeque::len);
            (0..count[0]).for_each(|_| self.deliver(Way::There, 0));
            (0..count[1]).for_each(|_| self.deliver(Way::Back, 0));
            let wait = if self.wires.iter().all(VecDeque::is_empty) { self.due() } else { None };
            let least = self.now + Duration::from_millis(10);
            let next = wait.map_or(least, |due| due.max(least));
            self.pass(next - self.now);
            self.settle();
        }
        if !self.forged {
            assert!(self.sender.is_done(self.now), "{:?} at {}", self.sender, self.now);
            assert_eq!(self.missing, self.segments);
        }
    }

    /// Falsifies a reply, if that is the fault.
    fn plant(&self, ack: &mut Ack) {
        match self.fault {
            Fault::AcknowledgesTooMuch if ack.blocks[0].is_some() => ack.next += 1,
            Fault::ReportsTooMuch => ack.blocks.iter_mut().flatten().for_each(|block| block.end += 1),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::panic::catch_unwind;

    #[test]
    fn any_operations() {
        let [done, recoveries, undone, timeouts, probes] = [const { AtomicU64::new(0) }; 5];
        let bytes = bolero::produce::<Vec<u8>>().with().len(0..1_024usize);
        bolero::check!().with_iterations(2_000).with_generator(bytes).for_each(|bytes: &Vec<u8>| {
            let ops = ops(bytes);
            done.fetch_add(ops.len() as u64, Relaxed);
            let counts = run(&ops, Fault::None);
            recoveries.fetch_add(counts.recoveries, Relaxed);
            undone.fetch_add(counts.undone, Relaxed);
            timeouts.fetch_add(counts.timeouts, Relaxed);
            probes.fetch_add(counts.probes, Relaxed);
        });
        // A generator that gives up, or a network that is too good, would make the test an empty one.
        let counts = [done, recoveries, undone, timeouts, probes].map(AtomicU64::into_inner);
        assert!(
            counts.iter().zip([50_000, 1_000, 1_000, 3_000, 200]).all(|(count, least)| *count > least),
            "{counts:?}"
        );
    }

    /// The network loses, reorders and copies, and works for a while in between.
    fn bad_network() -> Vec<Op> {
        let mut ops = std::vec![Op::Setup(Setup { reno: false, paced: false, forged: false, segments: 250 })];
        for n in 0..120_u8 {
            ops.extend([
                Op::Wait(2_500),
                Op::Lose(Way::There, n),
                Op::Overtake(Way::There, n / 2),
                Op::Deliver(Way::There, 5),
                Op::Copy(Way::There, n),
                Op::Deliver(Way::Back, 5),
            ]);
        }
        ops
    }

    #[test]
    fn a_mistake_is_found() {
        check(&bad_network());
        let faults = [Fault::AcknowledgesTooMuch, Fault::ReportsTooMuch, Fault::NeverRepairs, Fault::IgnoresTheWindow];
        for fault in faults {
            assert!(catch_unwind(|| run(&bad_network(), fault)).is_err(), "{fault:?} is not noticed");
        }
    }
}
