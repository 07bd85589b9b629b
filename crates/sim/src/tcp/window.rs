use super::cubic::{self, Cubic};
use super::hystart::{Hystart, Sign};
use super::{WINDOW_MAX, reno};
use core::time::Duration;
use stayfast_units::Time;

/// The window at the beginning, in segments (RFC 6928).
const INITIAL: f64 = 10.0;
/// No loss makes the threshold lower (RFC 5681, equation 4).
const THRESHOLD_MIN: u64 = 2;

/// How a TCP sender's window grows and what a loss leaves of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TcpControl {
    /// CUBIC (RFC 9438) as Linux has it: Reno-friendly growth of 0.53 segments per round trip, fast convergence, and
    /// HyStart.
    #[default]
    Cubic,
    /// Reno (RFC 5681).
    Reno,
}

/// The congestion window, in segments, and all that its growth depends on: an undo puts back an earlier one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) size: f64,
    /// Where slow start ends; infinite before the first loss.
    pub(super) threshold: f64,
    law: Law,
}

#[derive(Clone, Copy, Debug)]
enum Law {
    Reno,
    Cubic(Cubic, Hystart),
}

impl Window {
    pub(super) fn new(control: TcpControl) -> Window {
        let law = match control {
            TcpControl::Reno => Law::Reno,
            TcpControl::Cubic => Law::Cubic(Cubic::default(), Hystart::default()),
        };
        Window { size: INITIAL, threshold: f64::INFINITY, law }
    }

    pub(super) fn in_slow_start(&self) -> bool {
        self.size < self.threshold
    }

    /// Whole segments that may be in flight.
    pub(super) fn segments(&self) -> u64 {
        self.size as u64
    }

    /// Grows for segments that were delivered while the window was in use.
    pub(super) fn grow(&mut self, now: Time, delivered: u64, rtt: Duration) {
        let mut acked = delivered as f64;
        if self.in_slow_start() {
            let step = acked.min(self.threshold - self.size);
            self.size += step;
            acked -= step;
        }
        if acked > 0.0 {
            self.size = match &mut self.law {
                Law::Reno => reno::grow(self.size, acked),
                Law::Cubic(cubic, _) => cubic.grow(now, self.size, acked.min(self.size), rtt),
            };
        }
        self.size = self.size.min(WINDOW_MAX as f64);
    }

    /// Slow start asks whether to end; only the first one does, later ones know where.
    pub(super) fn look_for_end(&mut self, sign: &Sign) {
        if let Law::Cubic(_, hystart) = &mut self.law
            && self.threshold == f64::INFINITY
            && hystart.leave(self.size, sign)
        {
            self.threshold = self.size;
        }
    }

    /// A loss: sets the threshold. The window follows in its own way: at once, by PRR, or by slow start.
    pub(super) fn on_loss(&mut self) {
        let beta = match &mut self.law {
            Law::Reno => reno::BETA,
            Law::Cubic(cubic, _) => {
                cubic.on_loss(self.size);
                cubic::BETA
            }
        };
        // Rounded down to whole segments, as Linux counts: at 5 % loss that takes a quarter of the rate.
        let whole = (self.segments() as f64 * beta) as u64;
        self.threshold = whole.max(THRESHOLD_MIN) as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    #[test]
    fn slow_start_stops_at_the_threshold_and_the_rest_counts_as_avoidance() {
        let mut window = Window::new(TcpControl::Reno);
        window.grow(Time::ZERO, 10, RTT);
        assert_eq!((window.size, window.in_slow_start()), (20.0, true));
        window.threshold = 25.0;
        window.grow(Time::ZERO, 15, RTT);
        assert_eq!((window.size, window.in_slow_start()), (25.0 + 10.0 / 25.0, false));
    }

    #[test]
    fn each_law_has_its_cut_and_a_floor() {
        for (control, beta) in [(TcpControl::Reno, 0.5), (TcpControl::Cubic, 0.7)] {
            let mut window = Window::new(control);
            window.on_loss();
            assert_eq!((window.size, window.threshold), (10.0, 10.0 * beta));
            window.size = 7.9;
            window.on_loss();
            assert_eq!(window.threshold, if control == TcpControl::Reno { 3.0 } else { 4.0 }, "of 7 segments");
            window.size = 1.0;
            window.on_loss();
            assert_eq!(window.threshold, 2.0);
        }
    }

    #[test]
    fn there_is_a_largest_window() {
        for control in [TcpControl::Reno, TcpControl::Cubic] {
            let mut window = Window::new(control);
            (0..20).for_each(|n| window.grow(Time::from_millis(n * 100), window.segments(), RTT));
            assert_eq!(window.segments(), WINDOW_MAX);
        }
    }
}
