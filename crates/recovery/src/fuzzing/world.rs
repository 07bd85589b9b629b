use super::controller::{Controller, Kind};
use super::episode::Episodes;
use super::{CAPACITY, Op, Rare};
use crate::{Deadline, EpisodeChange, Ledger, Outcome, Report, Sent, Stats, Timeout};
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
            if packet.fate == Fate::Dropped && packet.told == Told::Gone {
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
        let packet = Packet { time, bytes, eliciting, limited, fate, told, placed, delivered, answer: None };
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
        self.ledger.abandon(&mut |sent| told.push(sent.carried));
        let in_flight = |n: &u64| self.packets[*n as usize].told == Told::InFlight;
        assert!((0..self.packets.len() as u64).filter(in_flight).eq(told), "abandon tells those in flight");
        self.packets.iter_mut().filter(|p| p.is_open()).for_each(|p| p.told = Told::Abandoned);
        self.packets.iter_mut().for_each(|packet| packet.placed = false);
        self.episodes.close();
        self.controller.forget();
        self.probes = 0;
    }

    fn path_changed(&mut self) {
        self.ledger.path_changed();
        self.reordering_seen = false;
        self.probes = 0;
    }
}

/// What must come of it.
impl World {
    fn acknowledge(&mut self, ranges: &[(u64, u64)], delay: Duration) {
        let Some(&(_, largest)) = ranges.first() else { return };
        let covered = |n: &u64| ranges.iter().any(|(first, last)| (first..=last).contains(&n));
        let open = |n: &u64| self.packets[*n as usize].is_open();
        let arriving: Vec<u64> = (0..self.packets.len() as u64).rev().filter(|n| covered(n) && open(n)).collect();

        let mut told = Vec::new();
        let numbers = ranges.iter().map(|(first, last)| (PacketNumber(*first), PacketNumber(*last)));
        let report = self
            .ledger
            .acknowledge(self.now, PacketNumber(largest), delay, numbers, &mut |o, s| told.push((o, *s)))
            .expect("these numbers were used");

        self.expect_arrivals(&arriving, largest, &told, &report);
        if self.largest_acked.is_some_and(|before| arriving.iter().any(|n| *n < before)) {
            self.reordering_seen = true;
        }
        self.largest_acked = self.largest_acked.max(Some(largest));
        if !arriving.is_empty() {
            self.probes = 0;
        }
        self.digest(&told[arriving.len()..], &arriving, &report, 0);
    }

    fn expect_arrivals(&mut self, arriving: &[u64], largest: u64, told: &[(Outcome, Sent<u64>)], report: &Report) {
        assert!(told.len() >= arriving.len(), "an arrival was not told");
        let (mut acked, mut late) = (0, 0);
        for (number, (outcome, sent)) in arriving.iter().zip(told) {
            let packet = &self.packets[*number as usize];
            let expected = if packet.told == Told::InFlight { Outcome::Acked } else { Outcome::Late };
            assert_eq!((*outcome, sent.carried), (expected, *number));
            assert_eq!((sent.time, sent.bytes, sent.eliciting), (packet.time, packet.bytes, packet.eliciting));
            acked += u64::from(packet.bytes);
            late += if expected == Outcome::Late { u64::from(packet.bytes) } else { 0 };
        }
        assert_eq!((report.acked_bytes, report.late_bytes), (acked, late));
        let newest = arriving.first().map(|n| &self.packets[*n as usize]);
        assert_eq!(report.newest_sent, newest.map(|packet| packet.time));
        assert_eq!(report.limited, newest.is_some_and(|packet| packet.limited));
        self.expect_samples(arriving, largest, report);
    }

    fn expect_samples(&self, arriving: &[u64], largest: u64, report: &Report) {
        let eliciting = arriving.iter().any(|n| self.packets[*n as usize].eliciting);
        let last_unrecorded = self.packets.iter().rposition(|p| p.told == Told::Unrecorded) == Some(largest as usize);
        let largest_is_new = self.largest_acked.is_none_or(|before| largest > before)
            && (arriving.first() == Some(&largest) || last_unrecorded);
        let rtt = self.now - self.packets[largest as usize].time;
        assert_eq!(report.rtt, (eliciting && largest_is_new).then_some(rtt), "RTT sample");
        if let Some(rate) = report.rate {
            let before = self.packets[arriving[0] as usize].delivered;
            assert_eq!(rate.delivered, self.ledger.delivered_bytes() - before, "delivered since it was sent");
            assert!(rate.interval >= self.ledger.rtt().min());
        }
    }

    fn timeout(&mut self) {
        let probe = self.probe_deadline();
        let excess = self.places().saturating_sub(CAPACITY);
        let mut told = Vec::new();
        let (timeout, report) = self.ledger.timeout(self.now, &mut |o, s| told.push((o, *s)));
        match timeout {
            Timeout::Probe { in_a_row } => {
                assert!(probe.is_some_and(|at| at <= self.now), "a probe too early");
                self.probes += 1;
                assert_eq!(in_a_row, self.probes);
                self.probe_base = self.now;
                self.digest(&told, &[], &report, excess);
                self.send(1200, true, false);
            }
            Timeout::LossDetected => {
                self.digest(&told, &[], &report, 0);
                assert!(report.lost_bytes > 0 || told.iter().any(|(_, sent)| sent.bytes == 0));
            }
            Timeout::None => {
                self.digest(&told, &[], &report, 0);
                assert!(told.iter().all(|(outcome, _)| *outcome == Outcome::Gone));
            }
        }
    }

    /// Follows a report: arrivals first, then what is gone, then what is lost.
    fn digest(&mut self, told: &[(Outcome, Sent<u64>)], arrived: &[u64], report: &Report, excess: usize) {
        let numbers = |which: Outcome| -> Vec<u64> {
            told.iter().filter(|(outcome, _)| *outcome == which).map(|(_, sent)| sent.carried).collect()
        };
        let (gone, lost) = (numbers(Outcome::Gone), numbers(Outcome::Lost));
        assert!(told.iter().map(|(_, sent)| sent.carried).eq(gone.iter().chain(&lost).copied()), "gone, then lost");

        let mut restored = None;
        for number in arrived {
            let packet = &mut self.packets[*number as usize];
            if packet.told == Told::InFlight {
                packet.told = Told::Acked;
            } else {
                packet.told = Told::Late;
                restored = restored.or(self.episodes.late(*number));
            }
        }
        let expected_gone = self.due_to_go();
        let expected_lost = self.due_to_be_lost(excess);
        assert_eq!(gone, expected_gone, "packets gone");
        assert_eq!(lost, expected_lost, "packets lost");
        self.follow_end(&gone, restored, report);
        self.follow_losses(&lost, report);
    }

    fn follow_end(&mut self, gone: &[u64], restored: Option<Vec<super::controller::Reduction>>, report: &Report) {
        let mut expected = if restored.is_some() { EpisodeChange::Spurious } else { EpisodeChange::None };
        for number in gone {
            self.packets[*number as usize].told = Told::Gone;
            if self.episodes.gone(*number) == EpisodeChange::Real {
                expected = EpisodeChange::Real;
            }
        }
        if report.persistent {
            self.expect_persistent(gone);
            if self.episodes.close() == EpisodeChange::Real {
                expected = EpisodeChange::Real;
            }
        }
        self.follow(report.episode[0]);
        assert_eq!(report.episode[0], expected, "how the episode ended");
        if let Some(before) = restored {
            assert_eq!(self.controller.in_force, before, "the state before the first event of the episode");
        }
        if report.persistent {
            self.controller.reduce(self.now, self.now, Kind::Persistent);
        }
    }

    fn follow_losses(&mut self, lost: &[u64], report: &Report) {
        let newest = lost.last().map(|n| self.packets[*n as usize].time);
        assert_eq!(report.largest_lost_sent, newest);
        assert_eq!(report.lost_bytes, lost.iter().map(|n| u64::from(self.packets[*n as usize].bytes)).sum::<u64>());
        // As an owner must: save before the loss is told.
        self.follow(report.episode[1]);
        let before = self.controller.in_force.len();
        if let Some(newest) = newest {
            self.controller.reduce(self.now, newest, Kind::Loss);
        }
        let reduced = self.controller.in_force.split_off(before);
        let expected = match lost.is_empty() || report.persistent {
            true => EpisodeChange::None,
            false => self.episodes.lost(lost, !reduced.is_empty(), &self.controller),
        };
        self.controller.in_force.extend(reduced);
        // The mutant that saves twice is to be caught by what its undo does, not by this comparison.
        if expected == EpisodeChange::Began || report.episode[1] != EpisodeChange::Began {
            assert_eq!(report.episode[1], expected, "whether an episode began");
        }
        for number in lost {
            self.packets[*number as usize].told = Told::Lost { at: self.now };
            self.packets[*number as usize].answer = self.controller.newest();
        }
    }

    /// Does with the controller what the ledger says, and knows whether it was right.
    fn follow(&mut self, change: EpisodeChange) {
        match change {
            EpisodeChange::None => {}
            EpisodeChange::Began => self.controller.save(),
            EpisodeChange::Real => self.controller.forget(),
            EpisodeChange::Spurious => {
                for undone in self.controller.restore() {
                    assert_eq!(undone.kind, Kind::Loss, "what no loss caused was undone");
                    let answered = self.packets.iter().filter(|packet| packet.answer == Some(undone.id));
                    let truly_lost = answered.filter(|packet| packet.fate != Fate::Arrived).count();
                    assert_eq!(truly_lost, 0, "a true loss was undone");
                }
            }
        }
    }

    /// RFC 9002, 7.6.2, looked up in the whole history: one of the packets just gone, and an earlier one, far
    /// enough apart, both eliciting, with nothing between them that arrived.
    fn expect_persistent(&self, gone: &[u64]) {
        let span = self.ledger.pto() * 3;
        let established = gone.iter().any(|&last| {
            let run = self.packets[..=last as usize].iter().rev().take_while(|packet| {
                matches!(packet.told, Told::Gone | Told::Unsent | Told::Unrecorded | Told::Abandoned)
                    || packet.is_open()
            });
            let mut eliciting = run.filter(|packet| packet.eliciting && packet.told == Told::Gone);
            let newest = self.packets[last as usize].time;
            self.packets[last as usize].eliciting && eliciting.any(|first| newest - first.time > span)
        });
        assert!(established, "persistent congestion that is none");
    }

    fn due_to_go(&self) -> Vec<u64> {
        let due = |n: &u64| self.gone_at(*n as usize).is_some_and(|at| at <= self.now);
        (0..self.packets.len() as u64).filter(due).collect()
    }

    fn due_to_be_lost(&self, excess: usize) -> Vec<u64> {
        let in_excess: Vec<usize> = self.ring().into_iter().take(excess).collect();
        let due = |n: &u64| {
            let packet = &self.packets[*n as usize];
            let overtaken = self.largest_acked.filter(|largest| n < largest);
            let by_count = overtaken.is_some_and(|largest| !self.reordering_seen && largest - n >= 3);
            let by_time = overtaken.is_some() && packet.time + self.loss_delay() <= self.now;
            packet.told == Told::InFlight && (by_count || by_time || in_excess.contains(&(*n as usize)))
        };
        (0..self.packets.len() as u64).filter(due).collect()
    }

    fn cautious(&self) -> Duration {
        self.ledger.rtt().smoothed().max(self.ledger.rtt().latest())
    }

    fn loss_delay(&self) -> Duration {
        let beyond = (self.cautious() / 8).max(self.ledger.reordering_window());
        (self.cautious() + beyond).max(Duration::from_millis(1))
    }

    fn gone_at(&self, number: usize) -> Option<Time> {
        match self.packets[number].told {
            Told::Lost { at } => Some(at + (self.cautious() * 2).max(Duration::from_millis(1))),
            _ => None,
        }
    }

    fn gone_deadline(&self) -> Option<Time> {
        (0..self.packets.len()).filter_map(|n| self.gone_at(n)).min()
    }

    fn loss_deadline(&self) -> Option<Time> {
        let overtaken = self.packets.iter().take(self.largest_acked? as usize).filter(|p| p.told == Told::InFlight);
        overtaken.map(|packet| packet.time + self.loss_delay()).min()
    }

    fn probe_deadline(&self) -> Option<Time> {
        let waits = self.packets.iter().any(|p| p.told == Told::InFlight && p.eliciting);
        let pto = self.ledger.pto();
        let period = (pto * (1 << self.probes.min(20))).min(Duration::from_secs(30)).max(pto);
        (waits && self.loss_deadline().is_none()).then(|| self.probe_base + period)
    }

    /// The numbers that must have a place: from the oldest open one to the newest that left.
    fn ring(&self) -> Vec<usize> {
        let Some(first) = self.packets.iter().position(Packet::is_open) else { return Vec::new() };
        (first..self.packets.len()).filter(|n| self.packets[*n].placed).collect()
    }

    fn places(&self) -> usize {
        self.ring().len()
    }

    /// After each operation.
    pub(super) fn compare(&self) {
        let in_flight = self.packets.iter().filter(|packet| packet.told == Told::InFlight);
        assert_eq!(self.ledger.in_flight(), in_flight.map(|packet| u64::from(packet.bytes)).sum::<u64>());
        assert_eq!(self.ledger.is_full(), self.places() >= CAPACITY);
        assert_eq!(self.ledger.probes_in_a_row(), self.probes);
        assert!(self.ledger.reordering_window() <= self.ledger.rtt().smoothed());
        let deadlines = [
            self.gone_deadline().map(|at| (at, Deadline::Gone)),
            self.loss_deadline().map(|at| (at, Deadline::Loss)),
            self.probe_deadline().map(|at| (at, Deadline::Probe)),
        ];
        assert_eq!(self.ledger.next_timeout(), deadlines.into_iter().flatten().min_by_key(|(at, _)| *at));
        self.compare_counts();
    }

    fn compare_counts(&self) {
        let count = |told: fn(&Told) -> bool| self.packets.iter().filter(|packet| told(&packet.told)).count() as u64;
        let stats = self.ledger.stats();
        assert_eq!(stats.acked, count(|told| *told == Told::Acked));
        assert_eq!(stats.late, count(|told| *told == Told::Late));
        assert_eq!(stats.gone, count(|told| *told == Told::Gone));
        assert_eq!(stats.unsent, count(|told| *told == Told::Unsent));
        assert!(stats.lost >= stats.late + stats.gone);
    }
}
