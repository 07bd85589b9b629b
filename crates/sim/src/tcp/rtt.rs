use core::time::Duration;

/// No timeout before there was a measurement (RFC 6298, 2.1).
const INITIAL: Duration = Duration::from_secs(1);
/// The least that a timeout adds to the smoothed round trip. The RFC has one second for the whole; this is Linux.
const MARGIN_MIN: Duration = Duration::from_millis(200);
/// The most that a timeout becomes by doubling (2.5 allows 60 s or more; Linux has 120 s).
const TIMEOUT_MAX: Duration = Duration::from_secs(120);
/// Doublings after which the timeout is at its most anyway.
const BACKOFF_MAX: u32 = 16;

/// Round-trip times and the retransmission timeout (RFC 6298).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rtt {
    smoothed: Option<Duration>,
    variation: Duration,
    least: Option<Duration>,
    /// How often the timeout has been doubled.
    backoff: u32,
}

impl Rtt {
    /// Takes a measurement that includes the wait for a delayed acknowledgement.
    pub(super) fn sample(&mut self, rtt: Duration) {
        let Some(smoothed) = self.smoothed else {
            self.smoothed = Some(rtt);
            self.variation = rtt / 2;
            return;
        };
        self.variation = self.variation / 4 * 3 + smoothed.abs_diff(rtt) / 4;
        self.smoothed = Some(smoothed / 8 * 7 + rtt / 8);
    }

    /// Takes a measurement of the newest segment, which nothing has delayed.
    pub(super) fn sample_least(&mut self, rtt: Duration) {
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
    }

    pub(super) fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// The least so far; zero before the first.
    pub(super) fn least(&self) -> Duration {
        self.least.unwrap_or_default()
    }

    /// The retransmission timeout.
    pub(super) fn timeout(&self) -> Duration {
        let once = self.smoothed.map_or(INITIAL, |smoothed| smoothed + MARGIN_MIN.max(self.variation * 4));
        once.saturating_mul(1 << self.backoff).min(TIMEOUT_MAX)
    }

    /// A timeout has passed: the next one is twice as long (5.5).
    pub(super) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(BACKOFF_MAX);
    }

    /// Has nothing new been acknowledged since the last timeout?
    pub(super) fn is_backed_off(&self) -> bool {
        self.backoff > 0
    }

    /// Something new was acknowledged.
    pub(super) fn progress(&mut self) {
        self.backoff = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_is_a_second_then_the_round_trip_and_a_margin_and_doubles_up_to_two_minutes() {
        let ms = Duration::from_millis;
        let mut rtt = Rtt::default();
        assert_eq!(rtt.timeout(), ms(1_000));
        rtt.sample(ms(80));
        assert_eq!(rtt.timeout(), ms(280));
        rtt.sample(ms(480));
        // Variation 30 + 100, smoothed 70 + 60.
        assert_eq!(rtt.timeout(), ms(130 + 4 * 130));
        rtt.back_off();
        assert_eq!(rtt.timeout(), ms(2 * 650));
        (0..100).for_each(|_| rtt.back_off());
        assert_eq!(rtt.timeout(), TIMEOUT_MAX);
        rtt.progress();
        assert_eq!(rtt.timeout(), ms(650));
    }

    #[test]
    fn no_measurement_overflows() {
        let mut rtt = Rtt::default();
        for nanos in [u64::MAX, 0, u64::MAX] {
            rtt.sample(Duration::from_nanos(nanos));
            rtt.back_off();
        }
        assert_eq!(rtt.timeout(), TIMEOUT_MAX);
    }
}
