/// What a loss leaves of the window (RFC 5681, 3.1).
pub(super) const BETA: f64 = 0.5;

/// The window after `acked` segments in congestion avoidance: one segment more per window (RFC 5681, 3.1).
pub(super) fn grow(window: f64, acked: f64) -> f64 {
    window + acked / window
}
