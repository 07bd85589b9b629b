use stayfast_units::Time;

/// The sender's deadlines.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timers {
    /// Retransmission timeout (RFC 6298, 5).
    pub(super) timeout: Option<Time>,
    /// Tail loss probe (RFC 8985, 7.2).
    pub(super) probe: Option<Time>,
    /// RACK's patience with a segment is over (RFC 8985, 6.2, step 5).
    pub(super) reorder: Option<Time>,
    /// Pacing lets the next segment go.
    pub(super) pace: Time,
}

impl Timers {
    /// The first of them; `pace` counts if something waits for it.
    pub(super) fn next(&self, pace: Option<Time>) -> Option<Time> {
        [self.timeout, self.probe, self.reorder, pace].into_iter().flatten().min()
    }
}
