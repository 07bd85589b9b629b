use core::time::Duration;
use stayfast_units::Time;

/// The finest step of time the loss rules trust (RFC 9002, 6.1.2: kGranularity).
pub(crate) const GRANULARITY: Duration = Duration::from_millis(1);

/// Longest initial estimate that is believed: keeps the sums of a nonsensical configuration in range.
const MAX_INITIAL: Duration = Duration::from_secs(60);

/// Estimate of the path's round-trip time (RFC 9002, section 5).
///
/// ```
/// use core::time::Duration;
/// use stayfast_recovery::Rtt;
/// use stayfast_units::Time;
///
/// let mut rtt = Rtt::new(Duration::from_millis(100));
/// assert!(!rtt.is_measured());
/// rtt.update(Time::from_millis(20), Duration::from_millis(20), Duration::ZERO);
/// assert_eq!(rtt.smoothed(), Duration::from_millis(20));
/// assert_eq!(rtt.variation(), Duration::from_millis(10));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rtt {
    latest: Duration,
    smoothed: Duration,
    variation: Duration,
    min: Duration,
    mean: Duration,
    first_sample: Option<Time>,
    restart_min: bool,
}

impl Rtt {
    /// An estimate without a sample. Until there is one, `initial` (at most 60 s) stands for it
    /// (RFC 9002, 6.2.2: `smoothed_rtt = kInitialRtt`, `rttvar = kInitialRtt / 2`).
    pub fn new(initial: Duration) -> Rtt {
        let initial = initial.min(MAX_INITIAL);
        Rtt {
            latest: Duration::ZERO,
            smoothed: initial,
            variation: initial / 2,
            min: initial,
            mean: initial,
            first_sample: None,
            restart_min: false,
        }
    }

    /// Takes in a sample: the time since the largest newly acknowledged packet was sent.
    /// `ack_delay` is what the peer says it held the acknowledgement back, at most its announced maximum.
    pub fn update(&mut self, now: Time, sample: Duration, ack_delay: Duration) {
        self.latest = sample;
        if self.first_sample.is_none() {
            // RFC 9002, 5.3: on the first sample, smoothed_rtt = latest_rtt and rttvar = latest_rtt / 2.
            self.first_sample = Some(now);
            (self.min, self.smoothed, self.variation) = (sample, sample, sample / 2);
            self.mean = sample;
            return;
        }
        // RFC 9002, 5.2: min_rtt SHOULD be set to the newest sample after persistent congestion, and
        // "MUST be set to the lesser of min_rtt and latest_rtt" otherwise. The delay of the acknowledgement
        // is not taken off, lest it be under-estimated.
        self.min = if core::mem::take(&mut self.restart_min) { sample } else { self.min.min(sample) };
        // RFC 9002, 5.3: "MUST NOT subtract the acknowledgment delay from the RTT sample if the resulting
        // value is smaller than the min_rtt".
        let adjusted = if sample >= self.min.saturating_add(ack_delay) { sample - ack_delay } else { sample };
        // RFC 9002, 5.3: rttvar = 3/4 rttvar + 1/4 |smoothed_rtt - adjusted_rtt|,
        // then smoothed_rtt = 7/8 smoothed_rtt + 1/8 adjusted_rtt.
        let deviation = self.smoothed.abs_diff(adjusted);
        self.variation = (self.variation * 3 + deviation) / 4;
        self.smoothed = (self.smoothed * 7 + adjusted) / 8;
    }

    /// Takes in how long the packets of one acknowledgement were under way, on average.
    pub(crate) fn took(&mut self, mean: Duration) {
        self.mean = (self.mean * 7 + mean) / 8;
    }

    /// The next sample begins a new minimum (RFC 9002, 5.2).
    pub(crate) fn restart_min(&mut self) {
        self.restart_min = true;
    }

    /// The newest sample; zero before the first.
    pub fn latest(&self) -> Duration {
        self.latest
    }

    /// The smoothed estimate; the initial value before the first sample.
    pub fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// The mean time from sending to acknowledgement over all packets, smoothed as the estimate is. Where packets
    /// overtake each other it is longer than the estimate: samples come from the newest packet that has arrived (RFC
    /// 9002, 5.1), which is one that was quick.
    pub fn mean(&self) -> Duration {
        self.mean
    }

    /// Mean deviation of the samples (`rttvar`).
    pub fn variation(&self) -> Duration {
        self.variation
    }

    /// The smallest sample; the initial value before the first.
    pub fn min(&self) -> Duration {
        self.min
    }

    /// Whether there has been a sample.
    pub fn is_measured(&self) -> bool {
        self.first_sample.is_some()
    }

    /// When the first sample was taken.
    pub(crate) fn first_sample(&self) -> Option<Time> {
        self.first_sample
    }

    /// `smoothed_rtt + max(4 * rttvar, kGranularity)` (RFC 9002, 6.2.1).
    pub(crate) fn with_variation(&self) -> Duration {
        self.smoothed + (self.variation * 4).max(GRANULARITY)
    }
}
