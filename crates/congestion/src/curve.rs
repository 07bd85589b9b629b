use core::time::Duration;

/// Scales the cubic, in segments per second cubed (RFC 9438, 4.1).
const C: f64 = 0.4;
/// Reno-friendly increase per round trip, in segments: 3 (1 - beta) / (1 + beta) with beta 0.7 (4.3).
const ALPHA: f64 = 3.0 * (1.0 - 0.7) / (1.0 + 0.7);
/// The shortest round trip that time is divided by.
const MIN_ROUND: Duration = Duration::from_micros(1);

/// One stage of congestion avoidance (RFC 9438, 4.2 to 4.5). Windows in bytes, times in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Curve {
    /// The plateau: the window at the last event, or less under fast convergence.
    pub w_max: f64,
    /// When the cubic reaches the plateau.
    k: f64,
    /// Time spent in this stage while the window was free to grow.
    pub elapsed: Duration,
    /// The window Reno would have by now.
    w_est: f64,
    /// The window just before the last event: from there on Reno's increase is a whole segment.
    prior: f64,
}

impl Curve {
    /// After a congestion event took the window from `prior` to `window`.
    pub fn after_event(prior: f64, window: f64, w_max: f64, segment: f64) -> Curve {
        // The minimum window may lie above the plateau; the cubic then starts at its centre.
        let w_max = w_max.max(window);
        let k = libm::cbrt((w_max - window) / segment / C);
        Curve { w_max, k, elapsed: Duration::ZERO, w_est: window, prior }
    }

    /// After slow start, with no event to tell a plateau: K is zero and `window` is the plateau (4.8, 4.10).
    pub fn flat(window: f64) -> Curve {
        Curve { w_max: window, k: 0.0, elapsed: Duration::ZERO, w_est: window, prior: window }
    }

    /// `W_cubic(t)`, equation 1.
    fn at(&self, t: f64, segment: f64) -> f64 {
        let d = t - self.k;
        self.w_max + C * d * d * d * segment
    }

    /// `step` has passed. The window that Reno would have grows by time, as RFC 8312, 4.2, has it: by acknowledged bytes
    /// (RFC 9438, 4.3) a sender of a few packets would hardly grow.
    pub fn pass(&mut self, step: Duration, rtt: Duration, segment: f64) {
        let rounds = (seconds(step) / seconds(rtt.max(MIN_ROUND))).min(1.0);
        let alpha = if self.w_est >= self.prior { 1.0 } else { ALPHA };
        self.w_est += alpha * rounds * segment;
    }

    /// The window after `bytes` were acknowledged; at least `window`, at most half again as much.
    pub fn grow(&mut self, window: f64, bytes: f64, step: Duration, rtt: Duration, segment: f64) -> f64 {
        self.elapsed = self.elapsed.saturating_add(step);
        let share = (bytes / window).min(1.0);
        // The RFC switches between the two windows; taking the larger is smooth where they cross, and what
        // Linux does.
        let t = seconds(self.elapsed) + seconds(rtt);
        let target = self.at(t, segment).clamp(window, 1.5 * window);
        let cubic = window + (target - window) * share;
        cubic.max(self.w_est.min(1.5 * window))
    }
}

fn seconds(d: Duration) -> f64 {
    d.as_secs() as f64 + f64::from(d.subsec_nanos()) / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: f64 = 1_200.0;

    /// Lets the window grow for `rounds` round trips, each acknowledged in ten parts.
    fn run(curve: &mut Curve, mut window: f64, rtt: Duration, rounds: u32) -> f64 {
        for _ in 0..rounds {
            let flight = window;
            for _ in 0..10 {
                curve.pass(rtt / 10, rtt, SEGMENT);
                window = curve.grow(window, flight / 10.0, rtt / 10, rtt, SEGMENT);
            }
        }
        window
    }

    #[test]
    fn k_is_the_cube_root_of_the_cut_over_c() {
        let curve = Curve::after_event(100.0 * SEGMENT, 70.0 * SEGMENT, 100.0 * SEGMENT, SEGMENT);
        assert!((curve.k - 4.217_163_326_508_746).abs() < 1e-12, "{}", curve.k); // (30 / 0.4)^(1/3)
        assert!((curve.at(0.0, SEGMENT) / SEGMENT - 70.0).abs() < 1e-9);
        assert!((curve.at(curve.k, SEGMENT) / SEGMENT - 100.0).abs() < 1e-9);
    }

    #[test]
    fn the_window_follows_the_cubic_concave_then_convex() {
        let rtt = Duration::from_millis(100);
        let mut curve = Curve::after_event(1_000.0 * SEGMENT, 700.0 * SEGMENT, 1_000.0 * SEGMENT, SEGMENT);
        let mut window = 700.0 * SEGMENT;
        for _ in 0..15 {
            window = run(&mut curve, window, rtt, 10);
            let ideal = curve.at(seconds(curve.elapsed), SEGMENT);
            assert!((window / ideal - 1.0).abs() < 0.01, "{window} is far from {ideal} at {:?}", curve.elapsed);
        }
        assert!(window > 1_050.0 * SEGMENT, "15 s are beyond K = 9.1 s");
    }

    #[test]
    fn a_short_path_grows_as_reno_would_with_beta_0_7() {
        let rtt = Duration::from_millis(10);
        let mut curve = Curve::after_event(20.0 * SEGMENT, 14.0 * SEGMENT, 20.0 * SEGMENT, SEGMENT);
        let begin = 14.0 * SEGMENT;
        let after = run(&mut curve, begin, rtt, 10);
        let per_round = (after - begin) / SEGMENT / 10.0;
        assert!((0.50..0.53).contains(&per_round), "{per_round} segments in a round trip");

        let mut curve = Curve { w_est: 21.0 * SEGMENT, ..curve };
        let begin = 21.0 * SEGMENT;
        let per_round = (run(&mut curve, begin, rtt, 10) - begin) / SEGMENT / 10.0;
        assert!((0.95..=1.0).contains(&per_round), "{per_round} segments in a round trip, beyond the old window");
    }

    #[test]
    fn one_round_trip_never_grows_the_window_by_more_than_half() {
        let mut curve = Curve::flat(10.0 * SEGMENT);
        curve.elapsed = Duration::from_secs(3_600);
        let (step, rtt) = (Duration::ZERO, Duration::from_millis(100));
        let window = curve.grow(10.0 * SEGMENT, 10.0 * SEGMENT, step, rtt, SEGMENT);
        assert_eq!(window, 15.0 * SEGMENT);
    }
}
