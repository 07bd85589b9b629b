mod rules;

use super::controller::{Controller, Kind};
use super::episode::Episodes;
use super::{CAPACITY, Op, Rare};
use crate::{Full, Ledger, Stats};
use alloc::vec::Vec;
use core::time::Duration;
use stayfast_units::{PacketNumber, Time};

/// The unit of waiting.
const STEP: Duration = Duration::from_micros(32);

/// What the network did with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    UnderWay,
    Arrived,
    Dropped,
}

/// What the ledger has said of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Told {
    Unrecorded,
    InFlight,
    Acked,
    Lost { at: Time },
    Late,
    Gone,
    Unsent,
    Abandoned,
}

/// A number that was used. It is its own index.
struct Packet {
    time: Time,
    bytes: u16,
    eliciting: bool,
    size_probe: bool,
    limited: bool,
    fate: Fate,
    told: Told,
    /// It was given a place in the ring, and not taken back from it as never sent.
    placed: bool,
    /// Bytes delivered when it was sent.
    delivered: u64,
    /// The reduction that answers its loss.
    answer: Option<usize>,
}

impl Packet {
    fn is_open(&self) -> bool {
        matches!(self.told, Told::InFlight | Told::Lost { .. })
    }
}

/// The network, the peer and the owner of a ledger.
pub(super) struct World {
    ledger: Ledger<u64>,
    now: Time,
    packets: Vec<Packet>,
    largest_acked: Option<u64>,
    reordering_seen: bool,
    probe_base: Time,
    probes: u32,
    acks: Vec<Vec<(u64, u64)>>,
    controller: Controller,
    episodes: Episodes,
}

impl World {
    pub(super) fn new(ledger: Ledger<u64>) -> World {
        World {
            ledger,
            now: Time::from_millis(1),
            packets: Vec::new(),
            largest_acked: None,
            reordering_seen: false,
            probe_base: Time::ZERO,
            probes: 0,
            acks: Vec::new(),
            controller: Controller::default(),
            episodes: Episodes::default(),
        }
    }

    pub(super) fn apply(&mut self, op: Op) {
        match op {
            Op::Send { count, bytes, limited } => (0..=count % 16).for_each(|_| self.send(bytes, true, limited)),
            Op::SendQuiet => self.send(40, false, false),
            Op::SendSizeProbe { bytes } => self.send_size_probe(bytes),
            Op::SendUnrecorded => self.send_unrecorded(),
            Op::Rarely(Rare::Unsend { count }) => (0..=count % 4).for_each(|_| self.unsend()),
            Op::Arrive { which } => self.decide(which, Fate::Arrived),
            Op::ArriveAll => self.under_way().into_iter().for_each(|n| self.packets[n].fate = Fate::Arrived),
            Op::Drop { which } => self.decide(which, Fate::Dropped),
            Op::Ack { delay } => self.ack(delay),
            Op::AckAgain { which } => self.ack_again(which),
            Op::Rarely(Rare::Claim { behind, more }) => self.claim(behind, more),
            Op::Rarely(Rare::AckUnused { beyond }) => self.ack_unused(beyond),
            Op::Wait { steps } => self.wait(STEP * steps.into()),
            Op::Rarely(Rare::Idle { seconds }) => self.wait(Duration::from_secs(seconds.into())),
            Op::Oversleep { steps } => self.now += STEP * steps.into(),
            Op::Rarely(Rare::Mark) => self.mark(),
            Op::Rarely(Rare::Abandon) => self.abandon(),
            Op::Rarely(Rare::PathChanged) => self.path_changed(),
        }
    }

    /// Lets everything come to its end, and looks at what the end must be.
    pub(super) fn settle(&mut self) -> Stats {
        for number in self.under_way() {
            self.packets[number].fate = Fate::Dropped;
        }
        for _ in 0..4 {
            self.send(1200, true, false);
            self.under_way().into_iter().for_each(|n| self.packets[n].fate = Fate::Arrived);
            self.ack(0);
            self.compare();
            self.wait(Duration::from_secs(3000));
            self.compare();
        }
        assert_eq!((self.ledger.in_flight(), self.ledger.next_timeout()), (0, None), "something never settled");
        for (number, packet) in self.packets.iter().enumerate() {
            assert!(!packet.is_open(), "packet {number} never settled");
            if packet.fate == Fate::Dropped && packet.told == Told::Gone && !packet.size_probe {
                let answer = packet.answer.expect("a loss without an answer");
                assert!(self.controller.holds(answer), "the answer to the true loss of {number} was undone");
            }
        }
        self.ledger.stats()
    }
}

/// The network.
impl World {
    fn under_way(&self) -> Vec<usize> {
        (0..self.packets.len()).filter(|&n| self.packets[n].fate == Fate::UnderWay).collect()
    }

    fn decide(&mut self, which: u8, fate: Fate) {
        let under_way = self.under_way();
        if !under_way.is_empty() {
            self.packets[under_way[usize::from(which) % under_way.len()]].fate = fate;
        }
    }

    fn send(&mut self, bytes: u16, eliciting: bool, limited: bool) {
        let number = self.packets.len() as u64;
        let result = self.ledger.sent(PacketNumber(number), self.now, bytes, eliciting, limited, number);
        self.recorded(result, bytes, eliciting, limited);
    }

    fn send_size_probe(&mut self, bytes: u16) {
        let number = self.packets.len() as u64;
        let result = self.ledger.sent_size_probe(PacketNumber(number), self.now, bytes, false, number);
        self.recorded(result, bytes, true, false);
        if let Some(packet) = self.packets.last_mut().filter(|_| result.is_ok()) {
            packet.size_probe = true;
        }
    }

    fn recorded(&mut self, result: Result<(), Full>, bytes: u16, eliciting: bool, limited: bool) {
        assert_eq!(result.is_ok(), self.places() < CAPACITY + 16, "room in the ring");
        if result.is_err() {
            return;
        }
        if eliciting {
            self.probe_base = self.probe_base.max(self.now);
        }
        self.push(Told::InFlight, bytes, eliciting, limited);
    }

    fn send_unrecorded(&mut self) {
        self.ledger.sent_unrecorded(PacketNumber(self.packets.len() as u64), self.now);
        self.push(Told::Unrecorded, 0, false, false);
    }

    fn push(&mut self, told: Told, bytes: u16, eliciting: bool, limited: bool) {
        let delivered = self.ledger.delivered_bytes();
        let (time, fate, placed) = (self.now, Fate::UnderWay, told == Told::InFlight);
        let (size_probe, answer) = (false, None);
        let packet = Packet { time, bytes, eliciting, size_probe, limited, fate, told, placed, delivered, answer };
        self.packets.push(packet);
    }

    /// The newest packet in flight that has not arrived did not leave at all.
    fn unsend(&mut self) {
        let left = |p: &Packet| p.told == Told::InFlight && p.fate == Fate::UnderWay;
        if let Some(number) = self.packets.iter().rposition(left) {
            self.ledger.unsent(PacketNumber(number as u64));
            self.packets[number].told = Told::Unsent;
            self.packets[number].fate = Fate::Dropped;
        }
        let placed = self.packets.iter_mut().rev().filter(|packet| packet.placed);
        placed.take_while(|packet| packet.told == Told::Unsent).for_each(|packet| packet.placed = false);
    }

    fn ack(&mut self, delay: u16) {
        let arrived = |n: &u64| self.packets[*n as usize].fate == Fate::Arrived;
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for number in (0..self.packets.len() as u64).rev().filter(arrived) {
            match ranges.last_mut() {
                Some((first, _)) if *first == number + 1 => *first = number,
                _ => ranges.push((number, number)),
            }
        }
        self.acks.truncate(7);
        self.acks.insert(0, ranges.clone());
        self.acknowledge(&ranges, Duration::from_micros(delay.into()));
    }

    fn ack_again(&mut self, which: u8) {
        if !self.acks.is_empty() {
            let ranges = self.acks[usize::from(which) % self.acks.len()].clone();
            self.acknowledge(&ranges, Duration::ZERO);
        }
    }

    fn claim(&mut self, behind: u8, more: u8) {
        let Some(last) = (self.packets.len() as u64).checked_sub(1 + u64::from(behind)) else { return };
        let first = last.saturating_sub(more.into());
        for packet in &mut self.packets[first as usize..=last as usize] {
            packet.fate = Fate::Arrived;
        }
        self.acknowledge(&[(first, last)], Duration::ZERO);
    }

    fn ack_unused(&mut self, beyond: u8) {
        let before = (self.ledger.stats(), self.ledger.next_timeout(), self.ledger.in_flight());
        let number = PacketNumber(self.packets.len() as u64 + u64::from(beyond));
        let ranges = [(PacketNumber(0), number)].into_iter();
        let result = self.ledger.acknowledge(self.now, number, Duration::ZERO, ranges, &mut |_, _| {
            panic!("an acknowledgement of an unused number changed something")
        });
        assert_eq!(result.unwrap_err().acked, number);
        assert_eq!(before, (self.ledger.stats(), self.ledger.next_timeout(), self.ledger.in_flight()));
    }

    /// Meets every deadline on time. Each must come to something: time goes on, or fewer packets are open.
    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        let mut fuel = 10_000;
        while let Some((at, _)) = self.ledger.next_timeout().filter(|(at, _)| *at <= end) {
            self.now = self.now.max(at);
            self.timeout();
            self.compare();
            fuel -= 1;
            assert!(fuel > 0, "a deadline that is met again and again");
        }
        self.now = end;
    }

    fn mark(&mut self) {
        let Some(sent) = self.packets.last().map(|packet| packet.time) else { return };
        let expected = self.episodes.close();
        let change = self.ledger.congestion_signalled(self.now, sent);
        self.follow(change);
        self.controller.reduce(self.now, sent, Kind::Mark);
        assert_eq!(change, expected, "a mark closes the episode");
    }

    fn abandon(&mut self) {
        let mut told = Vec::new();
        let change = self.ledger.abandon(&mut |sent| told.push(sent.carried));
        assert_eq!(change, self.episodes.close());
        self.follow(change);
        let in_flight = |n: &u64| self.packets[*n as usize].told == Told::InFlight;
        assert!((0..self.packets.len() as u64).filter(in_flight).eq(told), "abandon tells those in flight");
        self.packets.iter_mut().filter(|p| p.is_open()).for_each(|p| p.told = Told::Abandoned);
        self.packets.iter_mut().for_each(|packet| packet.placed = false);
        self.probes = 0;
    }

    fn path_changed(&mut self) {
        self.ledger.path_changed();
        self.reordering_seen = false;
        self.probes = 0;
    }
}
