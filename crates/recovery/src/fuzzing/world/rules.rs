//! Every rule in its simplest form, over all packets ever sent: what must come of an operation.

use super::{Fate, Packet, Told, World};
use crate::fuzzing::CAPACITY;
use crate::fuzzing::controller::{Kind, Reduction};
use crate::{Deadline, EpisodeChange, Outcome, Report, Sent, Timeout};
use alloc::vec::Vec;
use core::time::Duration;
use stayfast_units::{PacketNumber, Time};

impl World {
    pub(super) fn acknowledge(&mut self, ranges: &[(u64, u64)], delay: Duration) {
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

    pub(super) fn timeout(&mut self) {
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
                assert!(report.lost_bytes > 0 || told.iter().any(|(_, sent)| sent.bytes == 0 || sent.size_probe));
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
        for number in &lost {
            self.packets[*number as usize].told = Told::Lost { at: self.now };
        }
        let answered = lost.into_iter().filter(|n| !self.packets[*n as usize].size_probe);
        self.follow_losses(&answered.collect::<Vec<_>>(), report);
    }

    fn follow_end(&mut self, gone: &[u64], restored: Option<Vec<Reduction>>, report: &Report) {
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
            self.packets[*number as usize].answer = self.controller.newest();
        }
    }

    /// Does with the controller what the ledger says, and knows whether it was right.
    pub(super) fn follow(&mut self, change: EpisodeChange) {
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
            let counts = |packet: &Packet| packet.eliciting && !packet.size_probe;
            let mut eliciting = run.filter(|packet| counts(packet) && packet.told == Told::Gone);
            let newest = self.packets[last as usize].time;
            counts(&self.packets[last as usize]) && eliciting.any(|first| newest - first.time > span)
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
        self.round_trip().max(self.ledger.rtt().latest())
    }

    fn round_trip(&self) -> Duration {
        let rtt = self.ledger.rtt();
        if self.reordering_seen { rtt.smoothed().max(rtt.mean()) } else { rtt.smoothed() }
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

    pub(super) fn loss_deadline(&self) -> Option<Time> {
        let overtaken = self.packets.iter().take(self.largest_acked? as usize).filter(|p| p.told == Told::InFlight);
        overtaken.map(|packet| packet.time + self.loss_delay()).min()
    }

    pub(super) fn probe_deadline(&self) -> Option<Time> {
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

    pub(super) fn places(&self) -> usize {
        self.ring().len()
    }

    /// After each operation.
    pub(in crate::fuzzing) fn compare(&self) {
        let in_flight = self.packets.iter().filter(|packet| packet.told == Told::InFlight);
        assert_eq!(self.ledger.in_flight(), in_flight.map(|packet| u64::from(packet.bytes)).sum::<u64>());
        assert_eq!(self.ledger.is_full(), self.places() >= CAPACITY);
        assert_eq!(self.ledger.probes_in_a_row(), self.probes);
        assert!(self.ledger.reordering_window() <= self.round_trip());
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
