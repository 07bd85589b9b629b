//! The steps that acknowledgements and timeouts are made of.

use super::{Ledger, Newly};
use crate::episode::Episodes;
use crate::report::{EpisodeChange, Outcome, Report};
use crate::ring::{Sent, State};
use core::time::Duration;
use stayfast_units::{PacketNumber, Time};

impl<C: Copy> Ledger<C> {
    pub(super) fn clock(&mut self, now: Time) -> Time {
        self.newest = self.newest.max(now);
        self.newest
    }

    pub(super) fn report(&self) -> Report {
        Report { in_flight_before: self.in_flight, ..Report::default() }
    }

    pub(super) fn leave_flight(&mut self, sent: &Sent<C>) {
        self.in_flight -= u64::from(sent.bytes);
        self.eliciting -= usize::from(sent.eliciting);
    }

    /// Settles everything in `ranges` that is still open.
    pub(super) fn arrive(
        &mut self,
        ranges: impl Iterator<Item = (PacketNumber, PacketNumber)>,
        sink: &mut impl FnMut(Outcome, &Sent<C>),
        report: &mut Report,
    ) -> Newly<C> {
        let mut newly = Newly { newest: None, eliciting: false, late_sent: None, sent_ns: 0, packets: 0 };
        for (first, last) in ranges {
            let mut end = self.ring.at_or_after(last.next());
            if end == self.ring.base() {
                break;
            }
            let start = self.ring.at_or_after(first);
            while let Some(place) = self.ring.newest_open(start, end) {
                self.arrived(place, sink, report, &mut newly);
                end = place;
            }
        }
        newly
    }

    /// The packet at `place` arrived.
    fn arrived(
        &mut self,
        place: u64,
        sink: &mut impl FnMut(Outcome, &Sent<C>),
        report: &mut Report,
        newly: &mut Newly<C>,
    ) {
        let Some(slot) = self.ring.get(place) else { return };
        let (sent, state) = (slot.sent, slot.state);
        let bytes = u64::from(sent.bytes);
        self.ring.set(place, State::Arrived);
        self.delivery.arrived(bytes);
        report.acked_bytes += bytes;
        let overtaken = self.largest_acked.is_some_and(|largest| sent.number < largest);
        if overtaken {
            self.reordering.observed();
        }
        if newly.newest.is_none_or(|newest| sent.number > newest.number) {
            newly.newest = Some(sent);
        }
        newly.eliciting |= sent.eliciting;
        newly.sent_ns += u128::from(sent.time.as_nanos());
        newly.packets += 1;
        if let State::Lost { episode, .. } = state {
            self.stats.late += 1;
            report.late_bytes += bytes;
            // One that only had to make room was not overtaken: it says nothing about reordering.
            if overtaken {
                newly.late_sent = Some(newly.late_sent.map_or(sent.time, |oldest| oldest.min(sent.time)));
            }
            let change = self.episodes.late(episode);
            self.stats.spurious += u64::from(change == EpisodeChange::Spurious);
            report.ended(change);
            sink(Outcome::Late, &sent);
        } else {
            self.stats.acked += 1;
            self.leave_flight(&sent);
            sink(Outcome::Acked, &sent);
        }
    }

    /// RFC 9002, 5.1: a sample is taken only if "the largest acknowledged packet number is newly acknowledged,
    /// and at least one of the newly acknowledged packets was ack-eliciting".
    pub(super) fn measure(
        &mut self,
        now: Time,
        largest: PacketNumber,
        delay: Duration,
        newly: &Newly<C>,
    ) -> Option<Duration> {
        let first_time = self.largest_acked.is_none_or(|before| largest > before);
        let recorded = newly.newest.as_ref().filter(|sent| sent.number == largest).map(|sent| sent.time);
        let unrecorded = self.unrecorded.filter(|(number, _)| *number == largest).map(|(_, time)| time);
        let sent = recorded.or(unrecorded).filter(|_| first_time && newly.eliciting)?;
        // RFC 9002, 5.3: "MUST use the lesser of the acknowledgment delay and the peer's max_ack_delay".
        self.rtt.update(now, now - sent, delay.min(self.probe.max_ack_delay()));
        Some(now - sent)
    }

    /// Gives up the packets that a later one has overtaken by too much, and those before place `forced`.
    /// Says whether there were any.
    ///
    /// RFC 9002, 6.1: lost are packets in flight, sent before an acknowledged one, that were sent
    /// kPacketThreshold packets before it or long enough in the past. Both tests pass for every older packet if
    /// they pass for one, so the search ends with the first that is not lost.
    pub(super) fn detect(
        &mut self,
        now: Time,
        forced: u64,
        sink: &mut impl FnMut(Outcome, &Sent<C>),
        report: &mut Report,
    ) -> bool {
        let name = self.episodes.name();
        let before = self.stats.lost;
        let mut count = 0;
        while let Some((place, sent)) = self.ring.oldest_in_flight() {
            if place >= forced && !self.is_lost(sent, now) {
                break;
            }
            let sent = *sent;
            let episode = if sent.size_probe { Episodes::NONE } else { name };
            self.ring.set(place, State::Lost { at: now, episode });
            self.leave_flight(&sent);
            self.stats.lost += 1;
            // RFC 9000, 14.4: the loss of such a probe "is not a reliable indication of congestion".
            if !sent.size_probe {
                count += 1;
                report.lost_bytes += u64::from(sent.bytes);
                report.largest_lost_sent = Some(sent.time);
            }
            sink(Outcome::Lost, &sent);
        }
        if let Some(newest) = report.largest_lost_sent.filter(|_| count > 0) {
            // After a fall to the minimal window there is nothing to save, hence nothing begins.
            let change = match report.persistent {
                true => self.episodes.signalled(now, newest),
                false => self.episodes.lost(now, name, count, newest),
            };
            self.stats.episodes += u64::from(change == EpisodeChange::Began);
            report.began(change);
        }
        self.stats.lost > before
    }

    fn is_lost(&self, sent: &Sent<C>, now: Time) -> bool {
        let Some(largest) = self.largest_acked.filter(|largest| sent.number < *largest) else { return false };
        let behind = largest.0 - sent.number.0;
        self.reordering.packet_threshold().is_some_and(|threshold| behind >= threshold)
            || now >= sent.time + self.reordering.loss_delay(&self.rtt)
    }

    /// Lets go of settled packets at the old end of the ring, and of lost ones that were waited for long enough.
    pub(super) fn retire(&mut self, now: Time, sink: &mut impl FnMut(Outcome, &Sent<C>), report: &mut Report) {
        self.drop_settled();
        while self.gone_deadline().is_some_and(|deadline| now >= deadline) {
            let Some(slot) = self.ring.front() else { return };
            let (sent, state) = (slot.sent, slot.state);
            self.ring.pop_front();
            if let State::Lost { episode, .. } = state {
                self.gone(&sent, episode, report);
                sink(Outcome::Gone, &sent);
            }
            self.drop_settled();
        }
    }

    fn gone(&mut self, sent: &Sent<C>, episode: u64, report: &mut Report) {
        self.stats.gone += 1;
        let (change, quiet) = self.episodes.gone(episode);
        report.ended(change);
        if quiet {
            self.reordering.quiet_episode();
        }
        // RFC 9002, 7.6.2: only ack-eliciting packets establish persistent congestion.
        if sent.eliciting && !sent.size_probe && self.gone_run.gone(sent.time, self.pto(), self.rtt.first_sample()) {
            self.stats.persistent += 1;
            report.persistent = true;
            report.ended(self.episodes.persistent());
            self.rtt.restart_min();
        }
    }

    pub(super) fn drop_settled(&mut self) {
        while let Some(slot) = self.ring.front() {
            match slot.state {
                State::Arrived => self.gone_run.interrupted(),
                State::Unsent => {}
                State::InFlight | State::Lost { .. } => return,
            }
            self.ring.pop_front();
        }
    }

    /// Lost slots stand first in the ring, in the order of their loss: the front is the first to go.
    pub(super) fn gone_deadline(&self) -> Option<Time> {
        match self.ring.front()?.state {
            State::Lost { at, .. } => Some(at + self.reordering.memory(&self.rtt)),
            _ => None,
        }
    }

    pub(super) fn loss_deadline(&self) -> Option<Time> {
        let (_, oldest) = self.ring.oldest_in_flight()?;
        let overtaken = self.largest_acked.is_some_and(|largest| oldest.number < largest);
        overtaken.then(|| oldest.time + self.reordering.loss_delay(&self.rtt))
    }

    /// RFC 9002, 6.2.1: "The PTO timer MUST NOT be set if a timer is set for time threshold loss detection".
    pub(super) fn probe_deadline(&self) -> Option<Time> {
        (self.eliciting > 0 && self.loss_deadline().is_none()).then(|| self.probe.deadline(&self.rtt))
    }
}
