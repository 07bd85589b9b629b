use crate::delivery::Delivery;
use crate::detect::Reordering;
use crate::episode::Episodes;
use crate::persistent::GoneRun;
use crate::probe::Probe;
use crate::report::{Bogus, Deadline, EpisodeChange, Full, Outcome, Report, Stats, Timeout};
use crate::ring::{Ring, Sent, State};
use crate::rtt::Rtt;
use core::time::Duration;
use stayfast_units::{PacketNumber, Time};

/// Places in the ring beyond its capacity, for probes: a full ring must still be able to ask.
const PROBE_ROOM: usize = 16;

/// Settings of a [`Ledger`].
///
/// ```
/// use core::time::Duration;
/// use stayfast_recovery::Config;
/// assert_eq!(Config::default().initial_rtt, Duration::from_millis(100));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Packets in the ring, beside some for probes. Memory is taken as the ring grows, up to this.
    pub capacity: usize,
    /// What stands for the round-trip time until there is a sample (RFC 9002, 6.2.2).
    pub initial_rtt: Duration,
    /// The longest the peer holds an acknowledgement back on purpose (RFC 9000, 18.2: `max_ack_delay`).
    pub max_ack_delay: Duration,
}

impl Default for Config {
    fn default() -> Config {
        Config { capacity: 8192, initial_rtt: Duration::from_millis(100), max_ack_delay: Duration::from_millis(25) }
    }
}

/// The packets sent and not yet settled, and everything learned from what became of them.
///
/// `C` is what the owner remembers about what a packet carried. Times given to one ledger must not go back;
/// one that does counts as the newest given so far. The example of the crate shows its use.
///
/// ```
/// use core::time::Duration;
/// use stayfast_recovery::{Config, Deadline, Ledger, Timeout};
/// use stayfast_units::{PacketNumber, Time};
///
/// let mut ledger = Ledger::new(Config::default());
/// ledger.sent(PacketNumber(0), Time::ZERO, 1200, true, false, ()).unwrap();
/// // Nothing arrives. 100 ms + 4 * 50 ms + 25 ms later:
/// let (when, deadline) = ledger.next_timeout().unwrap();
/// assert_eq!((when, deadline), (Time::from_millis(325), Deadline::Probe));
/// let (timeout, _) = ledger.timeout(when, &mut |_, _| {});
/// assert_eq!(timeout, Timeout::Probe { in_a_row: 1 });
/// ```
#[derive(Clone, Debug)]
pub struct Ledger<C> {
    capacity: usize,
    initial_rtt: Duration,
    ring: Ring<C>,
    rtt: Rtt,
    reordering: Reordering,
    episodes: Episodes,
    probe: Probe,
    delivery: Delivery,
    gone_run: GoneRun,
    newest: Time,
    largest_used: Option<PacketNumber>,
    unrecorded: Option<(PacketNumber, Time)>,
    largest_acked: Option<PacketNumber>,
    in_flight: u64,
    eliciting: usize,
    stats: Stats,
}

/// What one acknowledgement newly acknowledges.
struct Newly<C> {
    newest: Option<Sent<C>>,
    eliciting: bool,
    /// When the oldest of the late packets was sent, of those that were overtaken.
    late_sent: Option<Time>,
}

impl<C: Copy> Ledger<C> {
    /// An empty ledger, for a new path.
    pub fn new(config: Config) -> Ledger<C> {
        Ledger {
            capacity: config.capacity.max(1),
            initial_rtt: config.initial_rtt,
            ring: Ring::new(),
            rtt: Rtt::new(config.initial_rtt),
            reordering: Reordering::default(),
            episodes: Episodes::default(),
            probe: Probe::new(config.max_ack_delay),
            delivery: Delivery::default(),
            gone_run: GoneRun::default(),
            newest: Time::ZERO,
            largest_used: None,
            unrecorded: None,
            largest_acked: None,
            in_flight: 0,
            eliciting: 0,
            stats: Stats::default(),
        }
    }

    /// Whether the ring has no place but for probes: send nothing else until something settles.
    pub fn is_full(&self) -> bool {
        self.ring.len() >= self.capacity
    }

    /// Records a packet that is sent now. It counts as in flight.
    ///
    /// `eliciting`: the peer must acknowledge it. `app_limited`: with it the sender has nothing more to send
    /// although the window is not full. Numbers may skip, but tell every number that is used without being
    /// recorded to [`sent_unrecorded`](Self::sent_unrecorded).
    ///
    /// # Errors
    ///
    /// [`Full`], and nothing was changed: the packet must not be sent. A few places beyond
    /// [`is_full`](Self::is_full) are left for the probes that [`Timeout::Probe`] asks for.
    pub fn sent(
        &mut self,
        number: PacketNumber,
        now: Time,
        bytes: u16,
        eliciting: bool,
        app_limited: bool,
        carried: C,
    ) -> Result<(), Full> {
        let full = self.ring.len() >= self.capacity.saturating_add(PROBE_ROOM);
        if full || self.largest_used.is_some_and(|used| number <= used) {
            return Err(Full);
        }
        let now = self.clock(now);
        let snapshot = self.delivery.sent(now, self.in_flight, u64::from(bytes), app_limited);
        self.ring.push(Sent { number, time: now, bytes, eliciting, carried, limited: app_limited, snapshot });
        self.largest_used = Some(number);
        self.in_flight += u64::from(bytes);
        self.stats.sent += 1;
        if eliciting {
            self.eliciting += 1;
            self.probe.sent(now);
        }
        Ok(())
    }

    /// Notes that a number was used by a packet that is not recorded (it elicits no acknowledgement).
    ///
    /// The peer may name it nevertheless, also as the largest; the RTT is then measured with it
    /// (RFC 9002, 5.1), if an eliciting packet is acknowledged with it.
    pub fn sent_unrecorded(&mut self, number: PacketNumber, now: Time) {
        if self.largest_used.is_none_or(|used| number > used) {
            self.largest_used = Some(number);
            self.unrecorded = Some((number, self.clock(now)));
        }
    }

    /// Takes in an acknowledgement that arrived at `now`: of the packets in `ranges`, each (first, last), newest
    /// first. The peer received the `largest` of them and waited for `delay`. Tells `sink` every packet whose
    /// fate it has settled or changed: newest first those that arrived, oldest first those lost or gone.
    ///
    /// The cost grows with what is newly acknowledged and with the number of ranges, not with what the ranges
    /// repeat.
    ///
    /// # Errors
    ///
    /// [`Bogus`], and nothing was changed: a number was acknowledged that was never used.
    pub fn acknowledge(
        &mut self,
        now: Time,
        largest: PacketNumber,
        delay: Duration,
        ranges: impl Iterator<Item = (PacketNumber, PacketNumber)>,
        sink: &mut impl FnMut(Outcome, &Sent<C>),
    ) -> Result<Report, Bogus> {
        if self.largest_used.is_none_or(|used| largest > used) {
            return Err(Bogus { acked: largest, used: self.largest_used });
        }
        let now = self.clock(now);
        let mut report = self.report();
        let newly = self.arrive(ranges, sink, &mut report);
        if let Some(newest) = &newly.newest {
            self.probe.acknowledged();
            report.newest_sent = Some(newest.time);
            report.limited = newest.limited;
            report.rtt = self.measure(now, largest, delay, &newly);
            report.rate = self.delivery.sample(now, newest.time, &newest.snapshot, self.rtt.min());
        }
        if let Some(sent) = newly.late_sent {
            self.reordering.late(now - sent, &self.rtt);
        }
        self.largest_acked = self.largest_acked.max(Some(largest));
        self.retire(now, sink, &mut report);
        self.detect(now, 0, sink, &mut report);
        Ok(report)
    }

    /// Handles the deadline that [`next_timeout`](Self::next_timeout) named; too early, it does nothing.
    /// Tells `sink` every packet that is lost or gone.
    pub fn timeout(&mut self, now: Time, sink: &mut impl FnMut(Outcome, &Sent<C>)) -> (Timeout, Report) {
        let now = self.clock(now);
        let mut report = self.report();
        self.retire(now, sink, &mut report);
        if self.detect(now, 0, sink, &mut report) {
            return (Timeout::LossDetected, report);
        }
        if self.probe_deadline().is_none_or(|deadline| now < deadline) {
            return (Timeout::None, report);
        }
        // The probes of a long outage must find a place: what they have displaced is given up.
        let excess = self.ring.len().saturating_sub(self.capacity) as u64;
        self.detect(now, self.ring.base() + excess, sink, &mut report);
        self.stats.probes += 1;
        (Timeout::Probe { in_a_row: self.probe.fired(now) }, report)
    }

    /// The next deadline and its name. `None`: nothing to wait for.
    pub fn next_timeout(&self) -> Option<(Time, Deadline)> {
        let gone = self.gone_deadline().map(|at| (at, Deadline::Gone));
        let loss = self.loss_deadline().map(|at| (at, Deadline::Loss));
        let probe = self.probe_deadline().map(|at| (at, Deadline::Probe));
        [gone, loss, probe].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// Sending failed on this machine (no buffer, no device): the packet never left, and nothing is charged for
    /// it. Unknown numbers are ignored.
    pub fn unsent(&mut self, number: PacketNumber) {
        let place = self.ring.at_or_after(number);
        let Some(slot) = self.ring.get(place) else { return };
        if slot.sent.number != number || slot.state != State::InFlight {
            return;
        }
        let sent = slot.sent;
        self.leave_flight(&sent);
        self.stats.unsent += 1;
        self.ring.set(place, State::Unsent);
        self.ring.pop_unsent();
        self.drop_settled();
    }

    /// Forgets every packet, because the peer that would have acknowledged it is no more. Tells `sink` those
    /// that were in flight (the lost ones have been told before). It is no sign of congestion: an open episode
    /// ends without a verdict, and the probe timeout starts afresh.
    pub fn abandon(&mut self, sink: &mut impl FnMut(&Sent<C>)) {
        for sent in self.ring.in_flight() {
            self.stats.abandoned += 1;
            sink(sent);
        }
        self.ring.clear();
        (self.in_flight, self.eliciting) = (0, 0);
        self.episodes.close();
        self.gone_run.interrupted();
        self.probe.acknowledged();
    }

    /// Congestion was signalled by something else than a loss: a CE mark, or the controller's own verdict.
    /// `sent` is when the newest packet it concerns was sent. Closes an open episode as [`EpisodeChange::Real`].
    #[must_use]
    pub fn congestion_signalled(&mut self, now: Time, sent: Time) -> EpisodeChange {
        let now = self.clock(now);
        self.episodes.signalled(now, sent)
    }

    /// The path changed: what was learned of its delay and its reordering is void (RFC 9000, 9.4).
    pub fn path_changed(&mut self) {
        self.rtt = Rtt::new(self.initial_rtt);
        self.reordering = Reordering::default();
        self.gone_run.interrupted();
        self.probe.acknowledged();
    }

    /// Bytes in flight: sent, not lost, not acknowledged.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// The packets in flight, oldest first: a probe repeats what the first of them carried.
    pub fn outstanding(&self) -> impl Iterator<Item = &Sent<C>> {
        self.ring.in_flight()
    }

    /// The round-trip time.
    pub fn rtt(&self) -> &Rtt {
        &self.rtt
    }

    /// The probe timeout without back-off (RFC 9002, 6.2.1).
    pub fn pto(&self) -> Duration {
        self.probe.pto(&self.rtt)
    }

    /// Probe timeouts since the last acknowledgement.
    pub fn probes_in_a_row(&self) -> u32 {
        self.probe.in_a_row()
    }

    /// Sets how far the probe timeout backs off (30 s if never set).
    pub fn set_max_pto(&mut self, max: Duration) {
        self.probe.set_max(max);
    }

    /// How long beyond a round trip an overtaken packet is waited for, as far as learned from late ones.
    pub fn reordering_window(&self) -> Duration {
        self.reordering.window(&self.rtt)
    }

    /// Bytes known to have arrived, ever.
    pub fn delivered_bytes(&self) -> u64 {
        self.delivery.delivered()
    }

    /// Counts of what happened so far.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    #[cfg(test)]
    pub(crate) fn ring_steps(&self) -> u64 {
        self.ring.steps
    }

    /// This ledger with a fault, for tests of the tests.
    #[cfg(any(test, feature = "mutants"))]
    #[must_use]
    pub fn with_mutant(mut self, mutant: crate::Mutant) -> Ledger<C> {
        self.episodes.mutant = Some(mutant);
        self
    }
}

/// The steps.
impl<C: Copy> Ledger<C> {
    fn clock(&mut self, now: Time) -> Time {
        self.newest = self.newest.max(now);
        self.newest
    }

    fn report(&self) -> Report {
        Report { in_flight_before: self.in_flight, ..Report::default() }
    }

    fn leave_flight(&mut self, sent: &Sent<C>) {
        self.in_flight -= u64::from(sent.bytes);
        self.eliciting -= usize::from(sent.eliciting);
    }

    /// Settles everything in `ranges` that is still open.
    fn arrive(
        &mut self,
        ranges: impl Iterator<Item = (PacketNumber, PacketNumber)>,
        sink: &mut impl FnMut(Outcome, &Sent<C>),
        report: &mut Report,
    ) -> Newly<C> {
        let mut newly = Newly { newest: None, eliciting: false, late_sent: None };
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
    fn measure(&mut self, now: Time, largest: PacketNumber, delay: Duration, newly: &Newly<C>) -> Option<Duration> {
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
    fn detect(
        &mut self,
        now: Time,
        forced: u64,
        sink: &mut impl FnMut(Outcome, &Sent<C>),
        report: &mut Report,
    ) -> bool {
        let name = self.episodes.name();
        let mut count = 0;
        while let Some((place, sent)) = self.ring.oldest_in_flight() {
            if place >= forced && !self.is_lost(sent, now) {
                break;
            }
            let sent = *sent;
            self.ring.set(place, State::Lost { at: now, episode: name });
            self.leave_flight(&sent);
            count += 1;
            report.lost_bytes += u64::from(sent.bytes);
            report.largest_lost_sent = Some(sent.time);
            sink(Outcome::Lost, &sent);
        }
        self.stats.lost += count;
        if let Some(newest) = report.largest_lost_sent.filter(|_| count > 0) {
            // After a fall to the minimal window there is nothing to save, hence nothing begins.
            let change = match report.persistent {
                true => self.episodes.signalled(now, newest),
                false => self.episodes.lost(now, name, count, newest),
            };
            self.stats.episodes += u64::from(change == EpisodeChange::Began);
            report.began(change);
        }
        count > 0
    }

    fn is_lost(&self, sent: &Sent<C>, now: Time) -> bool {
        let Some(largest) = self.largest_acked.filter(|largest| sent.number < *largest) else { return false };
        let behind = largest.0 - sent.number.0;
        self.reordering.packet_threshold().is_some_and(|threshold| behind >= threshold)
            || now >= sent.time + self.reordering.loss_delay(&self.rtt)
    }

    /// Lets go of settled packets at the old end of the ring, and of lost ones that were waited for long enough.
    fn retire(&mut self, now: Time, sink: &mut impl FnMut(Outcome, &Sent<C>), report: &mut Report) {
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
        if sent.eliciting && self.gone_run.gone(sent.time, self.pto(), self.rtt.first_sample()) {
            self.stats.persistent += 1;
            report.persistent = true;
            report.ended(self.episodes.persistent());
            self.rtt.restart_min();
        }
    }

    fn drop_settled(&mut self) {
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
    fn gone_deadline(&self) -> Option<Time> {
        match self.ring.front()?.state {
            State::Lost { at, .. } => Some(at + Reordering::memory(&self.rtt)),
            _ => None,
        }
    }

    fn loss_deadline(&self) -> Option<Time> {
        let (_, oldest) = self.ring.oldest_in_flight()?;
        let overtaken = self.largest_acked.is_some_and(|largest| oldest.number < largest);
        overtaken.then(|| oldest.time + self.reordering.loss_delay(&self.rtt))
    }

    /// RFC 9002, 6.2.1: "The PTO timer MUST NOT be set if a timer is set for time threshold loss detection".
    fn probe_deadline(&self) -> Option<Time> {
        (self.eliciting > 0 && self.loss_deadline().is_none()).then(|| self.probe.deadline(&self.rtt))
    }
}
