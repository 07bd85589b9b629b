use core::time::Duration;
use stayfast_units::{Rate, Time};

/// How much arrived in how long: a sample of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation-02).
///
/// ```
/// use core::time::Duration;
/// use stayfast_recovery::RateSample;
/// let sample = RateSample { delivered: 1_250, interval: Duration::from_millis(1), app_limited: false };
/// assert_eq!(sample.rate().bits_per_sec(), 10_000_000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Bytes that arrived.
    pub delivered: u64,
    /// In this time: the longer of the time it took to send them and to acknowledge them.
    pub interval: Duration,
    /// The sender had no more to send for a part of that time: the path may be faster than this.
    pub app_limited: bool,
}

impl RateSample {
    /// The rate.
    pub fn rate(&self) -> Rate {
        Rate::per(self.delivered, self.interval)
    }
}

/// What a packet remembers of the moment it was sent (section 3.1.2 of the draft: the `P` variables).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    delivered: u64,
    delivered_time: Time,
    first_sent: Time,
    app_limited: bool,
}

/// Delivery so far (section 3.1.1 of the draft: the `C` variables).
#[derive(Clone, Debug, Default)]
pub(crate) struct Delivery {
    delivered: u64,
    delivered_time: Time,
    first_sent: Time,
    /// The sender ran dry when this many bytes had been delivered or were in flight: until they are all
    /// delivered, samples are too low.
    limited_until: u64,
}

impl Delivery {
    /// A packet is sent, with `in_flight` bytes before it (section 3.2 of the draft).
    pub(crate) fn sent(&mut self, now: Time, in_flight: u64, bytes: u64, app_limited: bool) -> Snapshot {
        if in_flight == 0 {
            (self.first_sent, self.delivered_time) = (now, now);
        }
        if app_limited {
            self.limited_until = self.delivered + in_flight + bytes;
        }
        Snapshot {
            delivered: self.delivered,
            delivered_time: self.delivered_time,
            first_sent: self.first_sent,
            app_limited: self.delivered < self.limited_until,
        }
    }

    /// `bytes` arrived.
    pub(crate) fn arrived(&mut self, bytes: u64) {
        self.delivered += bytes;
    }

    /// After all that arrived with one acknowledgement was counted: the sample of the newest packet in it
    /// (section 3.3 of the draft). None if it spans less than `min_rtt`: so short an interval comes of
    /// acknowledgements that were held up together.
    pub(crate) fn sample(&mut self, now: Time, sent: Time, at: &Snapshot, min_rtt: Duration) -> Option<RateSample> {
        self.first_sent = self.first_sent.max(sent);
        self.delivered_time = now;
        let interval = (sent - at.first_sent).max(now - at.delivered_time);
        let delivered = self.delivered - at.delivered;
        (interval >= min_rtt && !interval.is_zero()).then_some(RateSample {
            delivered,
            interval,
            app_limited: at.app_limited,
        })
    }

    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }
}
