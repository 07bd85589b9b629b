use core::time::Duration;
use stayfast_units::Time;

/// RFC 9002, 7.6.1: kPersistentCongestionThreshold.
const THRESHOLD: u32 = 3;

/// An unbroken run of packets that are gone, in the order they were sent (RFC 9002, 7.6).
///
/// Packets leave the ring in that order, so it is enough to remember when the run's first was sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct GoneRun {
    first_sent: Option<Time>,
}

impl GoneRun {
    /// An ack-eliciting packet is gone. Says whether the run now spans persistent congestion.
    ///
    /// RFC 9002, 7.6.1: the span is `(smoothed_rtt + max(4 * rttvar, kGranularity) + max_ack_delay) *
    /// kPersistentCongestionThreshold`; `pto` is the first factor. 7.6.2: it may not begin before the first
    /// RTT sample, and none of the packets in it may have been acknowledged.
    pub(crate) fn gone(&mut self, sent: Time, pto: Duration, first_sample: Option<Time>) -> bool {
        if first_sample.is_none_or(|at| sent < at) {
            return false;
        }
        let first = *self.first_sent.get_or_insert(sent);
        let spans = sent - first > pto.saturating_mul(THRESHOLD);
        if spans {
            self.first_sent = Some(sent);
        }
        spans
    }

    /// A packet of the run was acknowledged, or the run means nothing any more.
    pub(crate) fn interrupted(&mut self) {
        self.first_sent = None;
    }
}
