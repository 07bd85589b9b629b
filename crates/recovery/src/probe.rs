use crate::rtt::Rtt;
use core::time::Duration;
use stayfast_units::Time;

/// The probe timeout (RFC 9002, 6.2): when no acknowledgement arrives, ask.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    /// When an ack-eliciting packet was last sent, or the timeout last fired.
    base: Time,
    in_a_row: u32,
    max: Duration,
    max_ack_delay: Duration,
}

impl Probe {
    pub(crate) fn new(max_ack_delay: Duration) -> Probe {
        Probe { base: Time::ZERO, in_a_row: 0, max: Duration::from_secs(30), max_ack_delay }
    }

    /// Without back-off. RFC 9002, 6.2.1: PTO = smoothed_rtt + max(4 * rttvar, kGranularity) + max_ack_delay.
    pub(crate) fn pto(&self, rtt: &Rtt) -> Duration {
        rtt.with_variation().saturating_add(self.max_ack_delay)
    }

    /// RFC 9002, 6.2.1: the period doubles with each timeout in a row. It stops at the maximum, but never
    /// below one plain PTO, or a path slower than the maximum would be probed before it can answer.
    pub(crate) fn deadline(&self, rtt: &Rtt) -> Time {
        let pto = self.pto(rtt);
        let backed_off = pto.saturating_mul(1 << self.in_a_row.min(20));
        self.base + backed_off.min(self.max).max(pto)
    }

    /// RFC 9002, 6.2.1: the timer is restarted by each ack-eliciting packet sent.
    pub(crate) fn sent(&mut self, now: Time) {
        self.base = self.base.max(now);
    }

    /// RFC 9002, 6.2.1: "The PTO backoff factor is reset when an acknowledgment is received".
    pub(crate) fn acknowledged(&mut self) {
        self.in_a_row = 0;
    }

    /// Backs off. The next period starts here even if no probe can be sent, so that the deadline is never
    /// left behind in the past.
    pub(crate) fn fired(&mut self, now: Time) -> u32 {
        self.base = self.base.max(now);
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.in_a_row
    }

    pub(crate) fn in_a_row(&self) -> u32 {
        self.in_a_row
    }

    pub(crate) fn max_ack_delay(&self) -> Duration {
        self.max_ack_delay
    }

    pub(crate) fn set_max(&mut self, max: Duration) {
        self.max = max;
    }
}
