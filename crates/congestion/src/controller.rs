use core::time::Duration;
use stayfast_units::{Rate, Time};

/// What one acknowledgement says about the packets it newly acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acked {
    /// When the acknowledgement arrived.
    pub now: Time,
    /// Bytes newly acknowledged, late packets included.
    pub bytes: u64,
    /// When the newest of these packets was sent.
    pub newest_sent: Time,
    /// The newest sample of the round-trip time.
    pub latest_rtt: Duration,
    /// The smoothed round-trip time (RFC 9002, 5.3).
    pub smoothed_rtt: Duration,
    /// The least round-trip time seen.
    pub min_rtt: Duration,
    /// Bytes in flight before this acknowledgement.
    pub in_flight: u64,
    /// The window was not full: the application or the receiver's credit was the limit. Waiting for the
    /// pacer alone is no such limit (RFC 9002, 7.8).
    pub limited: bool,
    /// The delivery rate, if the ledger has a sample.
    pub rate: Option<Rate>,
}

/// How the network said that it is congested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A packet is taken for lost.
    Loss,
    /// The receiver counted a CE mark (RFC 9002, 7.1). Nobody takes a mark back, so it is never undone.
    Ecn,
}

/// A controller's state in whole numbers, for traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The window in bytes.
    pub window: u64,
    /// The slow-start threshold in bytes; none before the first sign of congestion.
    pub ssthresh: Option<u64>,
    /// What the controller is doing, in a word or two.
    pub mode: &'static str,
}

/// Decides how many bytes may be in flight.
///
/// For one acknowledgement the caller speaks in this order: [`on_episode_began`](Self::on_episode_began)
/// if an episode begins, then [`on_congestion`](Self::on_congestion) for the loss that begins it, then
/// [`on_acked`](Self::on_acked); an episode's end is said as soon as it is known. Times never go back;
/// if they do, the step counts as zero.
///
/// ```
/// use core::time::Duration;
/// use stayfast_congestion::{Controller, Cubic, Signal};
/// use stayfast_units::Time;
///
/// let mut cubic = Cubic::new(1_200, Time::ZERO);
/// let full = cubic.window();
/// let (sent, now) = (Time::from_millis(10), Time::from_millis(110));
///
/// cubic.on_episode_began();
/// cubic.on_congestion(now, sent, Signal::Loss);
/// assert_eq!(cubic.window(), full * 7 / 10);
///
/// cubic.on_spurious(now + Duration::from_millis(3)); // the packet was only late
/// assert_eq!(cubic.window(), full);
/// ```
pub trait Controller {
    /// A packet of `bytes` left; `in_flight` bytes were in flight before it. Zero means the link was idle.
    fn on_sent(&mut self, now: Time, bytes: u64, in_flight: u64);

    /// Packets were newly acknowledged. Never lowers the window.
    fn on_acked(&mut self, acked: &Acked);

    /// The network is congested. `sent` is when the newest of the lost or marked packets was sent: a
    /// packet from before the previous cut tells nothing new (RFC 9002, 7.3.2). Never raises the window.
    fn on_congestion(&mut self, now: Time, sent: Time, signal: Signal);

    /// An episode begins: saves the state, to be returned if all its losses turn out late. Within an open
    /// episode the state saved first stays.
    fn on_episode_began(&mut self);

    /// All losses of the episode were late: returns to the saved state, unless the window has grown
    /// beyond it by itself. Without a saved state nothing happens.
    fn on_spurious(&mut self, now: Time);

    /// A packet of the episode is gone: forgets the saved state.
    fn on_real(&mut self);

    /// Persistent congestion (RFC 9002, 7.6): down to the minimum window, and nothing to return to.
    fn on_persistent(&mut self, now: Time);

    /// How many bytes may be in flight. At least two datagrams.
    fn window(&self) -> u64;

    /// Whether the window is still below the slow-start threshold.
    fn in_slow_start(&self) -> bool;

    /// The rate to pace at: the window per round trip, times 1.25 so that the pacer is not the limit, or
    /// times 2 in slow start, where the window doubles in a round trip (RFC 9002, 7.7).
    fn pacing_rate(&self, smoothed_rtt: Duration) -> Rate {
        let (numerator, denominator) = if self.in_slow_start() { (2, 1) } else { (5, 4) };
        Rate::per(self.window(), smoothed_rtt).scaled(numerator, denominator)
    }

    /// Datagrams now carry at most `bytes` of UDP payload.
    fn set_max_datagram(&mut self, bytes: u16);

    /// The controller's name.
    fn name(&self) -> &'static str;

    /// The state, for traces.
    fn state(&self) -> State;
}
