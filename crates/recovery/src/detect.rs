use crate::rtt::{GRANULARITY, Rtt};
use core::time::Duration;

/// RFC 9002, 6.1.1: kPacketThreshold, as recommended.
const PACKET_THRESHOLD: u64 = 3;
/// RFC 9002, 6.1.2: kTimeThreshold is 9/8, so this share of the RTT is waited beyond it.
const TIME_FRACTION: u32 = 8;
/// RFC 8985, 6.2, step 4: a learned window persists for 16 recoveries.
const QUIET_EPISODES: u32 = 16;
/// The finest step of the window, so that a path of some nanoseconds divides by something.
const MIN_STEP: Duration = Duration::from_micros(1);

/// How far packets overtake each other on this path, and what that means for giving one up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reordering {
    seen: bool,
    /// The window, in quarters of the minimum RTT (RFC 8985, 6.2, step 4: `RACK.reo_wnd_mult`).
    steps: u32,
    quiet: u32,
}

impl Reordering {
    /// A packet arrived after a later one. RFC 8985, 6.2, step 3: from now on, counts prove nothing.
    pub(crate) fn observed(&mut self) {
        self.seen = true;
    }

    /// How many numbers a packet may be behind the largest acknowledged. `None`: time alone decides.
    pub(crate) fn packet_threshold(&self) -> Option<u64> {
        (!self.seen).then_some(PACKET_THRESHOLD)
    }

    /// The round trip that packets take: once they are seen to overtake each other, the mean of all of them if that
    /// is more.
    fn round_trip(&self, rtt: &Rtt) -> Duration {
        if self.seen { rtt.smoothed().max(rtt.mean()) } else { rtt.smoothed() }
    }

    fn cautious(&self, rtt: &Rtt) -> Duration {
        self.round_trip(rtt).max(rtt.latest())
    }

    /// The learned window: at most a round trip (RFC 8985, 6.2, step 4: `min(..., SRTT)`).
    pub(crate) fn window(&self, rtt: &Rtt) -> Duration {
        step(rtt).saturating_mul(self.steps).min(self.round_trip(rtt))
    }

    /// How long after it was sent a packet that a later one has overtaken is given up.
    /// RFC 9002, 6.1.2: `max(kTimeThreshold * max(smoothed_rtt, latest_rtt), kGranularity)`, with the
    /// learned window in place of the eighth where it is longer.
    pub(crate) fn loss_delay(&self, rtt: &Rtt) -> Duration {
        let base = self.cautious(rtt);
        (base + (base / TIME_FRACTION).max(self.window(rtt))).max(GRANULARITY)
    }

    /// How long a lost packet is remembered: two round trips. The loss delay is never longer, because the window stops
    /// at one.
    pub(crate) fn memory(&self, rtt: &Rtt) -> Duration {
        (self.cautious(rtt) * 2).max(GRANULARITY)
    }

    /// A lost packet arrived `age` after it was sent: widens the window to what would have waited for it.
    pub(crate) fn late(&mut self, age: Duration, rtt: &Rtt) {
        let cover = |span: Duration| {
            let steps = span.as_nanos().div_ceil(step(rtt).as_nanos());
            u32::try_from(steps).unwrap_or(u32::MAX)
        };
        // The newest sample and the mean may be shorter when the next one is judged.
        let needed = cover(age.saturating_sub(rtt.smoothed()));
        self.steps = self.steps.max(needed.min(cover(self.round_trip(rtt))));
        self.quiet = 0;
    }

    /// An episode ended without a late packet: after 16 of them in a row, half the window is enough.
    pub(crate) fn quiet_episode(&mut self) {
        self.quiet += 1;
        if self.quiet >= QUIET_EPISODES {
            self.quiet = 0;
            self.steps /= 2;
        }
    }
}

/// RFC 8985, 6.2, step 4: the window is a multiple of `RACK.min_RTT / 4`.
fn step(rtt: &Rtt) -> Duration {
    (rtt.min() / 4).max(MIN_STEP)
}
