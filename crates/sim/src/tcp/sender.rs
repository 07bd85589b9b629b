use super::episode::Episode;
use super::prr::Prr;
use super::rack::Rack;
use super::rtt::Rtt;
use super::scoreboard::Scoreboard;
use super::segment::{Segment, TCP_PAYLOAD};
use super::timers::Timers;
use super::window::{TcpControl, Window};
use super::{WINDOW_MAX, WIRE_SIZE};
use crate::{Datagram, Node, Poll};
use alloc::boxed::Box;
use core::fmt;
use core::net::SocketAddr;
use core::time::Duration;
use stayfast_units::{Rate, Time};

/// What a [`TcpSender`] is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpConfig {
    /// Where its receiver is. Segments have the sizes of TCP over IPv4.
    pub to: SocketAddr,
    /// How it reacts to losses.
    pub control: TcpControl,
    /// Spread the segments over the round trip as Linux does with `fq`: at 2 times the window per round trip in slow
    /// start, 1.2 times afterwards.
    pub paced: bool,
    /// When it begins.
    pub start: Time,
    /// After so many bytes, rounded up to whole segments, it has nothing more to send.
    pub bytes: u64,
    /// From then on it sends nothing new.
    pub stop: Time,
}

impl TcpConfig {
    /// CUBIC, not paced, from the beginning and without end.
    pub const fn to(receiver: SocketAddr) -> TcpConfig {
        TcpConfig {
            to: receiver,
            control: TcpControl::Cubic,
            paced: false,
            start: Time::ZERO,
            bytes: u64::MAX,
            stop: Time::MAX,
        }
    }
}

/// A sender's inner state, for a curve over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpState {
    /// The congestion window, in segments.
    pub window: f64,
    /// Where slow start ends, in segments; infinite before that is known.
    pub threshold: f64,
    /// Segments on their way, as far as the sender can know.
    pub in_flight: u64,
    /// It repairs losses: the window is on its way down, or comes from one after a timeout.
    pub recovering: bool,
}

/// The sending end of a bulk TCP flow, which always has something to send until it ends.
///
/// Losses are found by RACK-TLP (RFC 8985), repaired by SACK with proportional rate reduction (RFC 6675, RFC 6937), and
/// taken back when time stamps or duplicates prove them wrong (RFC 4015, RFC 3708); the timeout is that of Linux
/// (RFC 6298, with 200 ms). The [receiver](crate::TcpReceiver)'s documentation has an example.
pub struct TcpSender {
    pub(super) config: TcpConfig,
    pub(super) board: Scoreboard,
    pub(super) window: Window,
    pub(super) rtt: Rtt,
    pub(super) rack: Rack,
    pub(super) phase: Phase,
    /// The last reduction of the window, as long as it can be taken back.
    pub(super) episode: Option<Episode>,
    pub(super) timers: Timers,
    pub(super) probe: Probe,
    /// When the window was last full.
    pub(super) full: Time,
    pub(super) counts: Counts,
    watcher: Option<Box<dyn FnMut(Time, TcpState)>>,
}

/// What the sender is at.
#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    Open,
    /// Repairs losses until everything before `end` is acknowledged.
    Recovery {
        end: u64,
        prr: Prr,
    },
    /// The same after a timeout, in slow start.
    Timeout {
        end: u64,
    },
}

/// A tail loss probe (RFC 8985, 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    None,
    /// It is to be sent.
    Due,
    /// It was sent, and is answered when everything before `end` is acknowledged.
    Sent {
        end: u64,
        again: bool,
    },
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) sent: u64,
    pub(super) resent: u64,
    pub(super) probes: u64,
    pub(super) timeouts: u64,
    pub(super) recoveries: u64,
    pub(super) undone: u64,
    pub(super) malformed: u64,
}

/// What leaves next.
enum Next {
    New,
    Again(u64),
}

impl TcpSender {
    /// A sender that will begin at [`TcpConfig::start`].
    pub fn new(config: TcpConfig) -> TcpSender {
        TcpSender {
            config,
            board: Scoreboard::default(),
            window: Window::new(config.control),
            rtt: Rtt::default(),
            rack: Rack::new(),
            phase: Phase::Open,
            episode: None,
            timers: Timers::default(),
            probe: Probe::None,
            full: Time::ZERO,
            counts: Counts::default(),
            watcher: None,
        }
    }

    /// Calls `watcher` after each acknowledgement and timeout that it has dealt with.
    #[must_use]
    pub fn watched(mut self, watcher: impl FnMut(Time, TcpState) + 'static) -> TcpSender {
        self.watcher = Some(Box::new(watcher));
        self
    }

    /// How it stands.
    pub fn state(&self) -> TcpState {
        TcpState {
            window: self.window.size,
            threshold: self.window.threshold,
            in_flight: self.board.in_flight(),
            recovering: !matches!(self.phase, Phase::Open),
        }
    }

    /// The smoothed round-trip time; zero before there is a sample.
    pub fn rtt(&self) -> Duration {
        self.rtt.smoothed().unwrap_or_default()
    }

    /// Segments sent, each time counted.
    pub fn sent(&self) -> u64 {
        self.counts.sent
    }

    /// Segments sent again.
    pub fn resent(&self) -> u64 {
        self.counts.resent
    }

    /// Tail loss probes sent.
    pub fn probes(&self) -> u64 {
        self.counts.probes
    }

    /// Retransmission timeouts.
    pub fn timeouts(&self) -> u64 {
        self.counts.timeouts
    }

    /// Times that losses made it reduce its window, timeouts not counted.
    pub fn recoveries(&self) -> u64 {
        self.counts.recoveries
    }

    /// Reductions of the window, of both kinds, that turned out wrong and were taken back.
    pub fn undone(&self) -> u64 {
        self.counts.undone
    }

    /// Datagrams that were no acknowledgements of this flow, or damaged.
    pub fn malformed(&self) -> u64 {
        self.counts.malformed
    }

    /// Has everything been acknowledged?
    pub fn is_done(&self, now: Time) -> bool {
        self.board.is_empty() && !self.has_new(now)
    }

    /// Is there something that was never sent, and room for it in the receiver's window?
    pub(super) fn has_new(&self, now: Time) -> bool {
        let room = self.board.next() - self.board.first() < WINDOW_MAX;
        room && now < self.config.stop && self.board.next() < self.config.bytes.div_ceil(TCP_PAYLOAD)
    }

    fn next(&mut self, now: Time) -> Option<Next> {
        if self.probe == Probe::Due {
            self.probe = Probe::None;
            let probe = if self.has_new(now) { Some(Next::New) } else { self.board.last().map(Next::Again) };
            if probe.is_some() {
                self.counts.probes += 1;
                let again = matches!(probe, Some(Next::Again(_)));
                self.probe = Probe::Sent { end: self.board.next() + u64::from(!again), again };
                return probe;
            }
        }
        if self.board.in_flight() >= self.window.segments() {
            self.full = now;
            return None;
        }
        if now < self.timers.pace {
            return None;
        }
        let lost = self.board.first_lost().map(Next::Again);
        lost.or_else(|| self.has_new(now).then_some(Next::New))
    }

    /// Books the segment and returns its number.
    fn book(&mut self, now: Time, next: &Next) -> u64 {
        self.counts.sent += 1;
        let number = match *next {
            Next::New => {
                let number = self.board.next();
                self.board.send(now);
                number
            }
            Next::Again(number) => {
                self.board.resend(number, now);
                self.counts.resent += 1;
                if let Some(episode) = &mut self.episode {
                    episode.on_resent(now);
                }
                number
            }
        };
        if let Phase::Recovery { prr, .. } = &mut self.phase {
            prr.on_sent();
        }
        // RFC 6298, 5.1, and as Linux also when the first segment leaves again.
        if self.timers.timeout.is_none() || number == self.board.first() {
            self.timers.timeout = Some(now + self.rtt.timeout());
        }
        self.timers.pace = now + self.gap();
        number
    }

    /// Pacing: the time that a segment takes.
    fn gap(&self) -> Duration {
        let Some(rtt) = self.rtt.smoothed().filter(|_| self.config.paced) else { return Duration::ZERO };
        let rate = Rate::per(self.window.segments().max(1) * WIRE_SIZE, rtt);
        // As in Linux, the slow start's rate ends before slow start does.
        let starting = self.window.size < self.window.threshold / 2.0;
        let rate = if starting { rate.scaled(2, 1) } else { rate.scaled(6, 5) };
        rate.time_for(WIRE_SIZE)
    }

    pub(super) fn tell(&mut self, now: Time) {
        let state = self.state();
        if let Some(watcher) = &mut self.watcher {
            watcher(now, state);
        }
    }
}

impl Node for TcpSender {
    fn handle(&mut self, now: Time, datagram: &mut Datagram) {
        match Segment::decode(&datagram.bytes) {
            Some(Segment::Ack(ack)) if ack.next <= self.board.next() && ack.echo <= now => {
                self.on_ack(now, &ack);
                self.tell(now);
            }
            _ => self.counts.malformed += 1,
        }
    }

    fn poll(&mut self, now: Time, out: &mut Datagram) -> Poll {
        if now < self.config.start {
            return Poll::WakeAt(self.config.start);
        }
        self.on_time(now);
        let Some(next) = self.next(now) else {
            let paced = now < self.timers.pace && self.board.in_flight() < self.window.segments();
            let pace = (paced && (self.board.lost() > 0 || self.has_new(now))).then_some(self.timers.pace);
            return self.timers.next(pace).map_or(Poll::Idle, Poll::WakeAt);
        };
        let number = self.book(now, &next);
        self.plan_probe(now);
        out.to = self.config.to;
        Segment::Data { number, stamp: now }.encode(&mut out.bytes);
        Poll::Transmit
    }
}

impl fmt::Debug for TcpSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TcpSender { config, phase, counts, .. } = self;
        f.debug_struct("TcpSender")
            .field("config", config)
            .field("state", &self.state())
            .field("phase", phase)
            .field("counts", counts)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::segment::{Ack, BLOCKS_MAX, Block};
    use alloc::vec::Vec;

    fn host() -> SocketAddr {
        "10.0.0.1:1".parse().unwrap()
    }

    /// Sends what may be sent, and counts it.
    fn drain(sender: &mut TcpSender, now: Time) -> u64 {
        let mut out = Datagram::blank(Vec::new());
        let mut count = 0;
        while sender.poll(now, &mut out) == Poll::Transmit {
            out.bytes.clear();
            count += 1;
        }
        count
    }

    fn acknowledge(sender: &mut TcpSender, now: Time, next: u64, block: Option<(u64, u64)>) {
        let mut blocks = [None; BLOCKS_MAX];
        blocks[0] = block.map(|(start, end)| Block { start, end });
        let mut datagram = Datagram::new(host(), host(), Vec::new());
        Segment::Ack(Ack { next, echo: Time::ZERO, blocks }).encode(&mut datagram.bytes);
        sender.handle(now, &mut datagram);
    }

    #[test]
    fn no_more_than_the_receivers_window_is_outstanding() {
        let mut sender = TcpSender::new(TcpConfig::to(host()));
        sender.window.size = 1e6;
        assert_eq!(drain(&mut sender, Time::ZERO), WINDOW_MAX);
    }

    #[test]
    fn pacing_spreads_a_window_over_half_a_round_trip_in_slow_start() {
        let mut sender = TcpSender::new(TcpConfig { paced: true, ..TcpConfig::to(host()) });
        assert_eq!(drain(&mut sender, Time::ZERO), 10, "no round trip is known yet");
        let mut now = Time::from_millis(100);
        acknowledge(&mut sender, now, 10, None);
        let (mut sent, mut out) = (0, Datagram::blank(Vec::new()));
        while now < Time::from_millis(149) {
            out.bytes.clear();
            match sender.poll(now, &mut out) {
                Poll::Transmit => sent += 1,
                Poll::WakeAt(time) => now = time,
                Poll::Idle => panic!("20 segments fit the window"),
            }
        }
        // One every 2.5 ms, the first at once.
        assert_eq!(sent, 20);
    }

    #[test]
    fn what_the_sender_never_sent_cannot_be_acknowledged() {
        let mut sender = TcpSender::new(TcpConfig::to(host()));
        drain(&mut sender, Time::ZERO);
        acknowledge(&mut sender, Time::from_millis(20), 11, None);
        assert_eq!((sender.malformed(), sender.state().in_flight), (1, 10));
        acknowledge(&mut sender, Time::from_millis(20), 0, Some((8, 1_000)));
        assert_eq!((sender.malformed(), sender.state().in_flight), (1, 8));
    }

    #[test]
    fn a_late_segment_takes_the_reduction_back() {
        let mut sender = TcpSender::new(TcpConfig::to(host()));
        drain(&mut sender, Time::ZERO);
        acknowledge(&mut sender, Time::from_millis(20), 0, Some((1, 5)));
        let state = sender.state();
        assert_eq!((state.recovering, state.threshold, sender.recoveries()), (true, 7.0, 1));
        drain(&mut sender, Time::from_millis(20));
        assert_eq!(sender.resent(), 1);
        // The original arrives: the echo is older than the copy.
        acknowledge(&mut sender, Time::from_millis(21), 5, None);
        let state = sender.state();
        assert_eq!((state.recovering, state.threshold, sender.undone()), (false, f64::INFINITY, 1));
        assert!(state.window >= 10.0);
    }
}
