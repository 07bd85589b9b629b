use core::time::Duration;
use stayfast_units::Time;

/// What a loss leaves of the window (RFC 9438, 4.6).
pub(super) const BETA: f64 = 0.7;
/// Scales the cubic, in segments per second cubed (5.1).
const C: f64 = 0.4;
/// Growth in segments per round trip with which a sender that cuts to `BETA` sends as much as Reno (4.3). It stays so
/// beyond the window of the last loss, where the RFC would go on with a whole segment: Linux does not, and
/// Linux is what the flow shares its path with.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// CUBIC's congestion avoidance (RFC 9438, 4.2 to 4.7). Windows in segments, times in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cubic {
    /// The window at which the last loss happened, or less if room is made for others.
    w_max: f64,
    stage: Option<Stage>,
}

/// Congestion avoidance since the last loss.
#[derive(Clone, Copy, Debug)]
struct Stage {
    began: Time,
    /// How long the cubic takes from the first window to the plateau.
    k: f64,
    plateau: f64,
    /// The window that Reno would have.
    w_est: f64,
}

impl Cubic {
    /// A loss at this window.
    pub(super) fn on_loss(&mut self, window: f64) {
        // Fast convergence (4.7): the last plateau was not reached, so others take more than before.
        self.w_max = if window < self.w_max { window * (1.0 + BETA) / 2.0 } else { window };
        self.stage = None;
    }

    /// The window after `acked` more segments.
    pub(super) fn grow(&mut self, now: Time, window: f64, acked: f64, rtt: Duration) -> f64 {
        let stage = self.stage.get_or_insert_with(|| Stage::begin(now, window, self.w_max));
        let t = seconds(now - stage.began) + seconds(rtt) - stage.k;
        let target = (stage.plateau + C * t * t * t).clamp(window, 1.5 * window);
        stage.w_est += ALPHA * acked / window;
        (window + (target - window) * acked / window).max(stage.w_est.min(1.5 * window))
    }
}

impl Stage {
    fn begin(now: Time, window: f64, w_max: f64) -> Stage {
        let below = (w_max - window).max(0.0);
        Stage { began: now, k: libm::cbrt(below / C), plateau: window + below, w_est: window }
    }
}

fn seconds(d: Duration) -> f64 {
    d.as_secs() as f64 + f64::from(d.subsec_nanos()) / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_back_to_where_the_loss_was_after_k() {
        let rtt = Duration::from_millis(100);
        let mut cubic = Cubic::default();
        cubic.on_loss(1_000.0);
        let (mut window, mut now) = (700.0, Time::ZERO);
        // K = (300 / 0.4)^(1/3) = 9.086 s.
        while now < Time::from_millis(9_086) {
            window = cubic.grow(now, window, 10.0, rtt);
            now += rtt.mul_f64(10.0 / window);
        }
        assert!((999.0..1_001.0).contains(&window), "{window}");
        cubic.on_loss(900.0);
        assert_eq!(cubic.w_max, 765.0);
    }

    #[test]
    fn on_a_short_path_it_grows_like_reno_and_never_by_more_than_half() {
        let mut cubic = Cubic::default();
        cubic.on_loss(20.0);
        let mut window = 14.0;
        for round in 0..10 {
            window = cubic.grow(Time::from_millis(round), window, window, Duration::from_millis(1));
        }
        assert!((window - 14.0 - 10.0 * ALPHA).abs() < 0.01, "{window}");
        let hour = Time::from_millis(3_600_000);
        assert_eq!(cubic.grow(hour, 20.0, 20.0, Duration::ZERO), 30.0);
    }
}
