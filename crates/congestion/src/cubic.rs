use crate::curve::Curve;
use crate::hystart::{Advice, Hystart};
use crate::{Acked, Controller, Signal, State};
use core::time::Duration;
use stayfast_units::Time;

/// What a loss leaves of the window (RFC 9438, 4.6).
const BETA_LOSS: f64 = 0.7;
/// What a CE mark leaves of it (RFC 8511, 3.1): a marking queue is short, a gentler answer keeps it busy.
const BETA_ECN: f64 = 0.85;
/// Far beyond any path, and whole bytes are still exact in an `f64`.
pub(crate) const MAX_WINDOW: f64 = (1_u64 << 40) as f64;

/// CUBIC (RFC 9438) with HyStart++ (RFC 9406).
///
/// ```
/// use core::time::Duration;
/// use stayfast_congestion::{Controller, Cubic};
/// use stayfast_units::Time;
///
/// let cubic = Cubic::new(1_200, Time::ZERO);
/// assert_eq!(cubic.window(), 12_000);
/// assert!(cubic.in_slow_start());
/// assert_eq!(cubic.pacing_rate(Duration::from_millis(100)).bytes_per_sec(), 240_000);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Cubic {
    datagram: u16,
    /// Up to here time has been counted, or passed over because the window could not grow.
    counted_to: Time,
    pub(crate) current: Vars,
    /// The largest flight since the last cut, and in the time between the two cuts before: windows that were in use.
    used: [u64; 2],
    /// What `current` was before the open episode.
    pub(crate) before: Option<Vars>,
}

/// All that an episode changes and an undo returns. Windows in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Vars {
    pub window: f64,
    /// Infinite before the first sign of congestion.
    pub threshold: f64,
    /// None while there was neither an event nor an end of slow start.
    pub curve: Option<Curve>,
    /// When the window was last cut. What was sent until then tells nothing new.
    pub cut: Option<Time>,
    pub hystart: Hystart,
}

impl Vars {
    fn predates_cut(&self, sent: Time) -> bool {
        self.cut.is_some_and(|cut| sent <= cut)
    }
}

impl Cubic {
    /// A controller for datagrams of at most `max_datagram` bytes of UDP payload, with ten of them as the
    /// window, or less if they are larger than Ethernet's (RFC 9002, 7.2).
    pub fn new(max_datagram: u16, now: Time) -> Cubic {
        let datagram = max_datagram.max(1);
        let segment = f64::from(datagram);
        let window = (10.0 * segment).min((2.0 * segment).max(14_720.0));
        let current = Vars { window, threshold: f64::INFINITY, curve: None, cut: None, hystart: Hystart::default() };
        Cubic { datagram, counted_to: now, used: [0; 2], current, before: None }
    }

    fn segment(&self) -> f64 {
        f64::from(self.datagram)
    }

    fn min_window(&self) -> f64 {
        2.0 * self.segment()
    }

    fn start(&mut self, acked: &Acked) {
        let vars = &mut self.current;
        // Only the first slow start looks for its end; a later one knows the threshold (RFC 9406, 4.3).
        let advice = if vars.threshold.is_finite() { Advice::Grow } else { vars.hystart.on_acked(acked) };
        if acked.limited {
            return;
        }
        // Late acknowledgements of a larger, earlier flight must not more than double the window at once.
        let bytes = (acked.bytes as f64).min(vars.window);
        match advice {
            Advice::Grow => vars.window += bytes,
            Advice::Hold => {}
            Advice::Leave => vars.threshold = vars.window,
        }
        vars.window = vars.window.min(vars.threshold).min(MAX_WINDOW);
    }

    /// Growth beyond slow start. While the window is not full it grows no further than to what was in use lately: that
    /// much the path has carried (RFC 9002, 7.8, forbids more).
    fn avoid(&mut self, acked: &Acked, step: Duration) {
        let (segment, used) = (self.segment(), self.used.into_iter().max().unwrap_or(0) as f64);
        let vars = &mut self.current;
        let most = if acked.limited { used.min(MAX_WINDOW) } else { MAX_WINDOW };
        if vars.window >= most {
            return;
        }
        let (bytes, rtt) = (acked.bytes as f64, acked.smoothed_rtt);
        let recovering = vars.predates_cut(acked.newest_sent);
        let curve = vars.curve.get_or_insert(Curve::flat(vars.window));
        curve.pass(step, rtt, segment);
        if !recovering {
            vars.window = curve.grow(vars.window, bytes, step, rtt, segment).min(most);
        }
    }
}

impl Controller for Cubic {
    fn on_sent(&mut self, now: Time, bytes: u64, in_flight: u64) {
        self.used[0] = self.used[0].max(in_flight.saturating_add(bytes));
        // "t MUST NOT include" the time in which the window could not grow (RFC 9438, 5.8): an idle link.
        if in_flight == 0 {
            self.counted_to = self.counted_to.max(now);
        }
    }

    fn on_acked(&mut self, acked: &Acked) {
        let step = acked.now - self.counted_to;
        self.counted_to = self.counted_to.max(acked.now);
        if acked.bytes == 0 {
            return;
        }
        match self.in_slow_start() {
            true if self.current.predates_cut(acked.newest_sent) => {}
            true => self.start(acked),
            false => self.avoid(acked, step),
        }
    }

    fn on_congestion(&mut self, now: Time, sent: Time, signal: Signal) {
        let beta = match signal {
            Signal::Loss => BETA_LOSS,
            Signal::Ecn => {
                self.before = None;
                BETA_ECN
            }
        };
        if self.current.predates_cut(sent) {
            return;
        }
        let (segment, least) = (self.segment(), self.min_window());
        self.used = [0, self.used[0]];
        let vars = &mut self.current;
        let prior = vars.window;
        // Fast convergence: cut again before the old plateau was reached, so leave room for the newcomer (4.7).
        let converging = vars.curve.is_some_and(|curve| prior < curve.w_max);
        let w_max = if converging { prior * (1.0 + beta) / 2.0 } else { prior };
        vars.window = (prior * beta).max(least);
        vars.threshold = vars.window;
        vars.curve = Some(Curve::after_event(prior, vars.window, w_max, segment));
        vars.cut = Some(now);
    }

    fn on_episode_began(&mut self) {
        self.before.get_or_insert(self.current);
    }

    fn on_spurious(&mut self, _now: Time) {
        if let Some(before) = self.before.take()
            && before.window >= self.current.window
        {
            self.current = before;
        }
    }

    fn on_real(&mut self) {
        self.before = None;
    }

    fn on_persistent(&mut self, _now: Time) {
        self.before = None;
        self.current.window = self.min_window();
        // What follows is slow start up to the threshold and then a stage without a plateau (RFC 9438, 4.8).
        self.current.curve = None;
        self.current.cut = None;
    }

    fn window(&self) -> u64 {
        self.current.window as u64
    }

    fn in_slow_start(&self) -> bool {
        self.current.window < self.current.threshold
    }

    fn set_max_datagram(&mut self, bytes: u16) {
        self.datagram = bytes.max(1);
        let least = self.min_window();
        for vars in core::iter::once(&mut self.current).chain(&mut self.before) {
            vars.window = vars.window.max(least);
        }
    }

    fn name(&self) -> &'static str {
        "cubic"
    }

    fn state(&self) -> State {
        let vars = &self.current;
        let mode = match vars.curve {
            _ if self.in_slow_start() && vars.hystart.is_holding() && vars.threshold.is_infinite() => "held slow start",
            _ if self.in_slow_start() => "slow start",
            Some(curve) if curve.elapsed.is_zero() => "recovery",
            _ => "avoidance",
        };
        let ssthresh = vars.threshold.is_finite().then_some(vars.threshold as u64);
        State { window: self.window(), ssthresh, mode }
    }
}

#[cfg(test)]
mod tests;
