mod steps;

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

/// What the owner says of a packet that it sends.
struct Packet<C> {
    number: PacketNumber,
    bytes: u16,
    eliciting: bool,
    size_probe: bool,
    carried: C,
}

/// What one acknowledgement newly acknowledges.
struct Newly<C> {
    newest: Option<Sent<C>>,
    eliciting: bool,
    /// When the oldest of the late packets was sent, of those that were overtaken.
    late_sent: Option<Time>,
    /// When they were sent, all added up, and how many they are.
    sent_ns: u128,
    packets: u32,
}

impl<C> Newly<C> {
    /// How long they took, on average.
    fn mean_age(&self, now: Time) -> Duration {
        let mean = self.sent_ns / u128::from(self.packets.max(1));
        now - Time::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX))
    }
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
        let packet = Packet { number, bytes, eliciting, size_probe: false, carried };
        self.record(now, packet, app_limited)
    }

    /// Records a probe of the path's size that is sent now (RFC 8899, 4.1). It is eliciting and counts as in flight like any
    /// other packet, but its loss is no sign of congestion (RFC 9000, 14.4): no episode begins or ends with it.
    ///
    /// # Errors
    ///
    /// As [`sent`](Self::sent).
    ///
    /// ```
    /// use stayfast_recovery::{Config, Ledger};
    /// use stayfast_units::{PacketNumber, Time};
    /// let mut ledger = Ledger::new(Config::default());
    /// ledger.sent_size_probe(PacketNumber(0), Time::ZERO, 1472, false, ()).unwrap();
    /// assert!(ledger.outstanding().next().unwrap().size_probe);
    /// ```
    pub fn sent_size_probe(
        &mut self,
        number: PacketNumber,
        now: Time,
        bytes: u16,
        app_limited: bool,
        carried: C,
    ) -> Result<(), Full> {
        let packet = Packet { number, bytes, eliciting: true, size_probe: true, carried };
        self.record(now, packet, app_limited)
    }

    fn record(&mut self, now: Time, packet: Packet<C>, limited: bool) -> Result<(), Full> {
        let Packet { number, bytes, eliciting, size_probe, carried } = packet;
        let full = self.ring.len() >= self.capacity.saturating_add(PROBE_ROOM);
        if full || self.largest_used.is_some_and(|used| number <= used) {
            return Err(Full);
        }
        let time = self.clock(now);
        let snapshot = self.delivery.sent(time, self.in_flight, u64::from(bytes), limited);
        self.ring.push(Sent { number, time, bytes, eliciting, size_probe, carried, limited, snapshot });
        self.largest_used = Some(number);
        self.in_flight += u64::from(bytes);
        self.stats.sent += 1;
        if eliciting {
            self.eliciting += 1;
            self.probe.sent(time);
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
            self.rtt.took(newly.mean_age(now));
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
    /// that were in flight (the lost ones have been told before). It is no sign of congestion, and the probe
    /// timeout starts afresh. An open episode ends here as [`EpisodeChange::Real`], because the fate of its losses
    /// will never be known: its reduction stays, and the saved state must be dropped.
    pub fn abandon(&mut self, sink: &mut impl FnMut(&Sent<C>)) -> EpisodeChange {
        for sent in self.ring.in_flight() {
            self.stats.abandoned += 1;
            sink(sent);
        }
        self.ring.clear();
        (self.in_flight, self.eliciting) = (0, 0);
        self.gone_run.interrupted();
        self.probe.acknowledged();
        self.episodes.close()
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
