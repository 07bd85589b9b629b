use crate::mutant::Mutant;
use core::time::Duration;
use stayfast_units::Time;

/// What every path is taken to carry, bytes of UDP payload (RFC 8899, 5.1.2: BASE_PLPMTU).
pub const BASE: u16 = 1_200;
/// The largest UDP payload in an IPv4 packet of 1,500 B.
pub const MAX_IPV4: u16 = 1_472;
/// The largest UDP payload in an IPv6 packet of 1,500 B.
pub const MAX_IPV6: u16 = 1_452;

/// Sizes that are tried, bytes of UDP payload, from the top: what the networks there are leave of their MTU.
pub const LADDER: [u16; 12] = [
    8_972, // 9,000 over IPv4
    8_952, // 9,000 over IPv6
    8_452, // 8,500 over IPv6: between data centres
    1_472, // 1,500 over IPv4
    1_464, // 1,492 over IPv4: PPPoE
    1_452, // 1,500 over IPv6; 1,480 over IPv4: IP in IP
    1_444, // 1,492 over IPv6
    1_412, // 1,440 over IPv4, 1,460 over IPv6
    1_392, // 1,420 over IPv4: a tunnel that must hold either
    1_372, // 1,420 over IPv6, 1,400 over IPv4
    1_232, // 1,280 over IPv6: the least there may be
    1_200,
];

/// Rounds of probes after a start or a fall, before the search rests (RFC 8899, 5.1.2: MAX_PROBES). A size that the
/// path takes is missed in all of them once in 300 times if 15 % of the packets are lost.
pub const ROUNDS: u8 = 3;
/// Pause between them.
pub const RETRY: Duration = Duration::from_secs(1);
/// Pause between rounds after that (RFC 8899, 5.1.1: PMTU_RAISE_TIMER).
pub const RETRY_LATER: Duration = Duration::from_secs(600);
/// Checks in a row that must be lost before a doubt becomes a black hole: at 15 % loss a path is wronged in one of
/// four million doubts.
pub const CHECKS: u8 = 8;
/// Packets larger than the base that must be gone, with none of full size acknowledged, for a doubt without a probe
/// timeout.
const MISSED: u8 = 10;

/// The search for the largest datagram that the path takes.
///
/// The owner asks [`probe`](Search::probe) whenever it has more to send than one packet holds, and sends what it is
/// told to: a packet of just that size, alone, that may not be fragmented. It reports the fate of that packet and of all
/// others. Data may use [`limit`](Search::limit) bytes. All sizes are bytes of UDP payload.
///
/// ```
/// use stayfast_pmtud::{MAX_IPV4, Search};
/// use stayfast_units::Time;
///
/// let mut search = Search::new(Time::ZERO, 1_200, MAX_IPV4);
/// let sent = Time::from_millis(1);
/// assert_eq!(search.probe(sent), Some(1_472));
/// search.on_probe_sent(1_472);
/// assert_eq!(search.probe(sent), None, "one at a time");
/// search.on_probe_lost(Time::from_millis(30), 1_472, sent);
/// assert_eq!(search.probe(Time::from_millis(30)), Some(1_464), "the next step down");
/// search.on_probe_sent(1_464);
/// search.on_probe_acked(Time::from_millis(50), 1_464, Time::from_millis(30));
/// assert_eq!((search.size(), search.limit()), (1_464, 1_464));
/// ```
#[derive(Clone, Debug)]
pub struct Search {
    base: u16,
    /// The step the ladder begins at.
    top: u16,
    size: u16,
    /// Probes that were sent earlier say nothing: they went another path, or this one before it shrank.
    since: Time,
    /// The step that this round has come to. Between rounds: none.
    step: Option<u16>,
    /// When the next round begins.
    due: Time,
    /// Rounds left before the search rests.
    rounds: u8,
    /// The size of the probe under way.
    under_way: Option<u16>,
    doubt: Option<Doubt>,
    /// When the newest packet of full size known to have arrived was sent.
    passed: Time,
    /// Packets larger than the base sent later, and gone.
    missed: u8,
    #[cfg(test)]
    pub(crate) mutant: Option<Mutant>,
}

/// Whether the path still takes the size it took is being checked.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    since: Time,
    /// Checks lost in a row. Each is known to be lost because something sent after it has arrived, and nothing larger
    /// than the base is sent then: so small packets pass.
    lost: u8,
}

impl Search {
    /// A search on a new path that is known to take `base` bytes, up to `max`: the least of what the interface, the
    /// sockets and the peer can take, rounded down to a step of the [`LADDER`]. If that is no more than the base there
    /// is nothing to search.
    pub fn new(now: Time, base: u16, max: u16) -> Search {
        Search {
            base,
            top: step_below(max.saturating_add(1), base),
            size: base,
            since: now,
            step: None,
            due: now,
            rounds: ROUNDS,
            under_way: None,
            doubt: None,
            passed: now,
            missed: 0,
            #[cfg(test)]
            mutant: None,
        }
    }

    /// The largest size that the path is known to take (RFC 8899: PLPMTU).
    pub fn size(&self) -> u16 {
        self.size
    }

    /// How large a packet may be now. While it is in doubt that the path still takes [`size`](Search::size), this is
    /// the base.
    pub fn limit(&self) -> u16 {
        if self.doubt.is_some() { self.base } else { self.size }
    }

    /// The size of the probe to send now, if one is due. Then comes [`on_probe_sent`](Search::on_probe_sent), or the
    /// answer stays the same.
    pub fn probe(&self, now: Time) -> Option<u16> {
        match (self.under_way, self.doubt) {
            (Some(_), _) => None,
            (None, Some(_)) => Some(self.size),
            (None, None) if self.size >= self.top => None,
            (None, None) => self.step.or((now >= self.due).then_some(self.top)),
        }
    }

    /// The probe leaves: a packet of `size` bytes that carries nothing else.
    pub fn on_probe_sent(&mut self, size: u16) {
        self.under_way = Some(size);
        if size > self.size {
            self.step = Some(size);
        }
    }

    /// The probe under way has not left, or its fate will never be known. It is as if it had never been due.
    pub fn on_probe_unsent(&mut self) {
        self.under_way = None;
    }

    /// A probe of `size` bytes that was sent at `sent` is lost: it counts, but it is no sign of congestion (RFC 8899, 3,
    /// item 7).
    pub fn on_probe_lost(&mut self, now: Time, size: u16, sent: Time) {
        if sent < self.since || self.under_way.take_if(|probe| *probe == size).is_none() {
            return;
        }
        if self.step == Some(size) {
            match step_below(size, self.size) {
                below if below > self.size => self.step = Some(below),
                _ => self.end_round(now),
            }
        } else if let Some(doubt) = self.doubt.as_mut().filter(|doubt| size == self.size && sent >= doubt.since) {
            doubt.lost += 1;
            let enough = doubt.lost >= CHECKS || self.is(Mutant::OneCheckDecides);
            if enough && !self.is(Mutant::NeverFalls) {
                self.fall(now);
            }
        }
    }

    /// A probe of `size` bytes that was sent at `sent` is acknowledged, be it late.
    pub fn on_probe_acked(&mut self, now: Time, size: u16, sent: Time) {
        if sent < self.since {
            return;
        }
        let in_time = self.under_way.take_if(|probe| *probe == size).is_some();
        if size > self.size && (in_time || !self.is(Mutant::LateIsLost)) {
            self.size = size;
            self.missed = 0;
            // The round came from the top, so larger steps have had their turn.
            if self.step.is_some_and(|step| step <= size) {
                self.end_round(now);
            }
        }
        self.on_acked(size, sent);
    }

    /// A packet of `size` bytes that was sent at `sent` is acknowledged, be it late.
    pub fn on_acked(&mut self, size: u16, sent: Time) {
        if size < self.size {
            return;
        }
        if sent > self.passed {
            self.passed = sent;
            self.missed = 0;
        }
        // One that was sent before may have passed before the path shrank, and only its ACK was lost.
        self.doubt = self.doubt.filter(|doubt| sent < doubt.since && !self.is(Mutant::OldAckConvinces));
    }

    /// A data packet of `size` bytes that was sent at `sent` is lost, and is waited for no longer. One that may still
    /// be late must not be reported.
    pub fn on_gone(&mut self, now: Time, size: u16, sent: Time) {
        if size <= self.base || size > self.size || sent <= self.passed || self.doubt.is_some() {
            return;
        }
        self.missed = self.missed.saturating_add(1);
        if self.missed >= MISSED {
            self.doubt(now);
        }
    }

    /// The probe timeout has fired, the `in_a_row`th time without an acknowledgement (RFC 9002, 6.2). From the second
    /// on, what is sent is small: if that is answered, the size is to blame, or else the path was dead.
    pub fn on_probe_timeout(&mut self, now: Time, in_a_row: u32) {
        if in_a_row >= 2 && self.size > self.base && self.doubt.is_none() {
            self.doubt(now);
        }
    }

    /// The path is another one, which takes at most `max` bytes at its beginning: everything starts anew.
    pub fn on_path_changed(&mut self, now: Time, max: u16) {
        *self = Search {
            #[cfg(test)]
            mutant: self.mutant,
            ..Search::new(now, self.base, max)
        };
    }

    fn doubt(&mut self, now: Time) {
        self.missed = 0;
        self.doubt = Some(Doubt { since: now, lost: 0 });
        if self.is(Mutant::LossAlone) {
            self.fall(now);
        }
    }

    /// A black hole (RFC 8899, 4.3). The search goes on at once below the size that no longer passes; later
    /// rounds begin at the top again.
    fn fall(&mut self, now: Time) {
        let below = step_below(self.size, self.base);
        (self.size, self.since, self.due) = (self.base, now, now);
        (self.doubt, self.missed, self.under_way) = (None, 0, None);
        self.step = Some(below);
        self.rounds = ROUNDS + 1;
        if below == self.base {
            self.end_round(now);
        }
    }

    fn end_round(&mut self, now: Time) {
        self.step = None;
        self.rounds = self.rounds.saturating_sub(1);
        let again = self.rounds > 0 && !self.is(Mutant::OneProbeDecides);
        self.due = now + if again { RETRY } else { RETRY_LATER };
    }

    #[cfg(test)]
    fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    #[cfg(not(test))]
    const fn is(&self, _: Mutant) -> bool {
        false
    }
}

/// The largest step of the ladder below `size`, but not below `least`.
fn step_below(size: u16, least: u16) -> u16 {
    LADDER.into_iter().find(|step| *step < size).map_or(least, |step| step.max(least))
}
