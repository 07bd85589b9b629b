//! The operations a controller can meet and what must hold after each: one [`check`] for property
//! tests, fuzz targets and corpus replay.

use crate::cubic::MAX_WINDOW;
use crate::{Acked, Controller, Cubic, Signal};
use arbitrary::Arbitrary;
use core::time::Duration;
use stayfast_units::Time;

/// One call. Times are relative, so that most sequences make sense and some do not.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Op {
    /// Time passes.
    Wait {
        /// Microseconds.
        micros: u32,
    },
    /// A packet leaves.
    Sent {
        /// Its size.
        bytes: u16,
        /// Nothing else is in flight.
        idle: bool,
    },
    /// An acknowledgement arrives.
    Acked {
        /// Bytes newly acknowledged.
        bytes: u32,
        /// Microseconds since the newest packet was sent: also the round-trip time.
        rtt: u32,
        /// The window was not full.
        limited: bool,
    },
    /// A whole window is acknowledged in steps of two datagrams, one round trip of `millis` later.
    Round {
        /// The round-trip time.
        millis: u8,
    },
    /// The network is congested.
    Congestion {
        /// Microseconds since the newest lost packet was sent.
        age: u32,
        /// A mark, not a loss.
        ecn: bool,
    },
    /// An episode begins.
    Began,
    /// It was spurious.
    Spurious,
    /// It was real.
    Real,
    /// Persistent congestion.
    Persistent,
    /// The largest datagram changes.
    Datagram(u16),
}

/// Operations to the end of the input.
pub type Ops = stayfast_testkit::Ops<Op>;

/// Runs `ops` on [`Cubic`] and panics where a rule is broken:
///
/// * the window stays between two datagrams and its upper bound;
/// * an acknowledgement never lowers it, and not at all moves it for packets from before the last cut; while limited
///   it grows no further than to the largest flight since the last cut but one; more bytes acknowledged never make a
///   smaller window; one acknowledgement at most doubles it;
/// * congestion never raises it, and cuts by the signal's factor or not at all;
/// * a spurious episode returns exactly the state before its first event, unless the window has grown
///   beyond; what a mark, a gone packet or persistent congestion closed is never undone.
pub fn check(ops: &[Op]) {
    let mut world = World::new();
    for op in ops {
        world.apply(*op);
        world.bounds();
    }
}

struct World {
    now: Time,
    datagram: u16,
    cubic: Cubic,
    /// The controller as it was when the open episode began.
    saved: Option<Cubic>,
    last_cut: Option<Time>,
    /// The largest flights: since the last cut, and between the two before.
    flights: [u64; 2],
}

impl World {
    fn new() -> World {
        let now = Time::from_millis(1);
        World { now, datagram: 1_200, cubic: Cubic::new(1_200, now), saved: None, last_cut: None, flights: [0; 2] }
    }

    fn bounds(&self) {
        let window = self.cubic.window();
        let least = 2 * u64::from(self.datagram);
        assert!(window >= least, "{window} is under two datagrams of {}", self.datagram);
        assert!(window <= MAX_WINDOW as u64);
        let state = self.cubic.state();
        assert_eq!(state.window, window);
        assert_eq!(self.cubic.in_slow_start(), state.mode.ends_with("slow start"));
        assert!(
            self.cubic.pacing_rate(Duration::from_secs(1)).bytes_per_sec() >= window,
            "the pacer holds the window back"
        );
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Wait { micros } => self.now += Duration::from_micros(u64::from(micros)),
            Op::Sent { bytes, idle } => {
                let before = self.cubic.current;
                let in_flight = if idle { 0 } else { self.cubic.window() };
                self.flights[0] = self.flights[0].max(in_flight + u64::from(bytes));
                self.cubic.on_sent(self.now, u64::from(bytes), in_flight);
                assert_eq!(self.cubic.current, before, "sending moves nothing");
            }
            Op::Acked { bytes, rtt, limited } => self.acked(u64::from(bytes), micros(rtt), limited),
            Op::Round { millis } => self.round(Duration::from_millis(u64::from(millis))),
            Op::Congestion { age, ecn } => self.congestion(self.now - micros(age), ecn),
            Op::Began => {
                self.saved.get_or_insert_with(|| self.cubic.clone());
                self.cubic.on_episode_began();
            }
            Op::Spurious => self.spurious(),
            Op::Real => {
                let before = self.cubic.current;
                self.cubic.on_real();
                self.saved = None;
                assert_eq!(self.cubic.current, before, "a real episode changes nothing more");
            }
            Op::Persistent => {
                self.cubic.on_persistent(self.now);
                self.saved = None;
                self.last_cut = None;
                assert_eq!(self.cubic.window(), 2 * u64::from(self.datagram));
            }
            Op::Datagram(bytes) => {
                let before = self.cubic.window();
                self.datagram = bytes.max(1);
                for cubic in core::iter::once(&mut self.cubic).chain(&mut self.saved) {
                    cubic.set_max_datagram(bytes);
                }
                assert_eq!(self.cubic.window(), before.max(2 * u64::from(self.datagram)));
            }
        }
    }

    fn round(&mut self, rtt: Duration) {
        let sent = self.now;
        self.now += rtt;
        let step = (2 * u64::from(self.datagram)).max(self.cubic.window() / 16);
        for _ in 0..self.cubic.window() / step {
            self.acked_sent_at(sent, step, rtt, false);
        }
    }

    fn acked(&mut self, bytes: u64, rtt: Duration, limited: bool) {
        self.acked_sent_at(self.now - rtt, bytes, rtt, limited);
    }

    fn acked_sent_at(&mut self, newest_sent: Time, bytes: u64, rtt: Duration, limited: bool) {
        let acked = Acked {
            now: self.now,
            bytes,
            newest_sent,
            latest_rtt: rtt,
            smoothed_rtt: rtt,
            min_rtt: rtt,
            in_flight: self.cubic.window(),
            limited,
            rate: None,
        };
        let before = self.cubic.current.window;
        let mut other = self.cubic.clone();
        other.on_acked(&Acked { bytes: bytes / 2, ..acked });
        self.cubic.on_acked(&acked);
        let after = self.cubic.current.window;

        assert!(other.current.window <= after, "more bytes, a smaller window");
        assert!(after >= before, "an acknowledgement lowered the window");
        assert!(after <= 2.0 * before, "one acknowledgement more than doubled the window");
        if bytes == 0 || self.last_cut.is_some_and(|cut| newest_sent <= cut) {
            assert_eq!(after, before, "the window grew when it must not");
        }
        if limited {
            let used = self.flights[0].max(self.flights[1]) as f64;
            assert!(after <= before.max(used), "the window grew beyond what was used");
        }
    }

    fn congestion(&mut self, sent: Time, ecn: bool) {
        let before = self.cubic.current.window;
        let signal = if ecn { Signal::Ecn } else { Signal::Loss };
        self.cubic.on_congestion(self.now, sent, signal);
        if ecn {
            self.saved = None;
        }
        let factor = if ecn { 0.85 } else { 0.7 };
        let expected = if self.last_cut.is_some_and(|cut| sent <= cut) {
            before
        } else {
            self.last_cut = Some(self.now);
            self.flights = [0, self.flights[0]];
            (before * factor).max(2.0 * f64::from(self.datagram))
        };
        assert_eq!(self.cubic.current.window, expected);
    }

    fn spurious(&mut self) {
        let before = self.cubic.current;
        self.cubic.on_spurious(self.now);
        let mut expected = before;
        if let Some(saved) = self.saved.take()
            && saved.current.window >= before.window
        {
            expected = saved.current;
            self.last_cut = expected.cut;
        }
        assert_eq!(self.cubic.current, expected);
        assert_eq!(self.cubic.before, None, "an episode ends once");
    }
}

fn micros(n: u32) -> Duration {
    Duration::from_micros(u64::from(n))
}
