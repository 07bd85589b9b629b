use core::ops::RangeInclusive;
use core::time::Duration;
use stayfast_units::{Rate, Time};

/// A burst is at most what the rate sends in this time,
pub const BURST: Duration = Duration::from_millis(2);
/// but never fewer nor more full-size datagrams than this.
pub const BURST_DATAGRAMS: RangeInclusive<u64> = 10..=256;

/// Bytes a second times nanoseconds: one byte is this many. In this unit nothing is ever rounded.
const BYTE: u128 = 1_000_000_000;

/// A leaky bucket in front of the path: what has been sent is a debt that drains at the rate, and sending is allowed
/// while the debt leaves room for a datagram within the burst.
///
/// The debt is in bytes, not in time, so a rate that rises shortens the wait at once. Time that passes without debt
/// is not saved up: after an idle hour there is one burst, not an hour's worth.
///
/// ```
/// use core::time::Duration;
/// use stayfast_pacer::Pacer;
/// use stayfast_units::{Rate, Time};
///
/// let rate = Rate::from_bytes_per_sec(1_200_000); // A datagram of 1,200 B every millisecond.
/// let mut pacer = Pacer::new();
/// let now = Time::from_millis(5);
/// assert_eq!(pacer.next_send(now, rate), now);
/// assert_eq!(pacer.budget(now, rate, 1_200), 12_000);
///
/// pacer.spend(now, rate, 12_000);
/// assert_eq!(pacer.budget(now, rate, 1_200), 0);
/// assert_eq!(pacer.next_send(now, rate), now + Duration::from_millis(1));
/// // A wake-up that comes 2 ms late finds three datagrams to send.
/// assert_eq!(pacer.budget(now + Duration::from_millis(3), rate, 1_200), 3_600);
/// ```
#[derive(Clone, Debug)]
pub struct Pacer {
    /// What was sent and has not drained at `at`, in `1 / BYTE` bytes.
    debt: u128,
    at: Time,
    max_datagram: u16,
}

impl Default for Pacer {
    fn default() -> Pacer {
        Pacer::new()
    }
}

impl Pacer {
    /// A pacer that has sent nothing, for datagrams of up to 1,200 B.
    pub const fn new() -> Pacer {
        Pacer { debt: 0, at: Time::ZERO, max_datagram: 1_200 }
    }

    /// The path takes datagrams of up to `bytes` now: the unit of the burst limits. Zero counts as one.
    pub fn set_max_datagram(&mut self, bytes: u16) {
        self.max_datagram = if bytes == 0 { 1 } else { bytes };
    }

    /// The earliest moment from `now` on when a full-size datagram may leave: `now` itself if it may leave at once,
    /// [`Time::MAX`] if it never may at this rate.
    #[must_use]
    pub fn next_send(&self, now: Time, rate: Rate) -> Time {
        let allowed = self.room_for(rate, self.max_datagram);
        let excess = self.debt_at(now, rate).saturating_sub(allowed);
        let drain = u128::from(rate.bytes_per_sec());
        match (excess, drain) {
            (0, _) => now,
            (_, 0) => Time::MAX,
            _ => now + Duration::from_nanos(u64::try_from(excess.div_ceil(drain)).unwrap_or(u64::MAX)),
        }
    }

    /// Bytes that may leave now, in whole datagrams of `datagram` bytes. Not zero when [`Pacer::next_send`] is `now`:
    /// then one `datagram` may leave even if it is larger than the path is known to take (a probe of the path's size).
    #[must_use]
    pub fn budget(&self, now: Time, rate: Rate, datagram: u16) -> u64 {
        let datagram = datagram.max(1);
        let debt = self.debt_at(now, rate);
        if debt > self.room_for(rate, datagram.min(self.max_datagram)) {
            return 0;
        }
        let free = (u128::from(self.burst(rate)) * BYTE).saturating_sub(debt) / BYTE;
        let datagram = u64::from(datagram);
        // `free` is at most a burst, so it fits.
        (free as u64 / datagram).max(1) * datagram
    }

    /// Notes that `bytes` leave now, whether or not they were within the budget.
    pub fn spend(&mut self, now: Time, rate: Rate, bytes: u64) {
        self.debt = self.debt_at(now, rate).saturating_add(u128::from(bytes) * BYTE);
        self.at = self.at.max(now);
    }

    /// Bytes that may leave back to back after a pause.
    #[must_use]
    pub fn burst(&self, rate: Rate) -> u64 {
        let datagram = u64::from(self.max_datagram);
        rate.bytes_in(BURST).clamp(BURST_DATAGRAMS.start() * datagram, BURST_DATAGRAMS.end() * datagram)
    }

    /// The most debt with which `datagram` bytes still fit into the burst.
    fn room_for(&self, rate: Rate, datagram: u16) -> u128 {
        u128::from(self.burst(rate).saturating_sub(u64::from(datagram))) * BYTE
    }

    fn debt_at(&self, now: Time, rate: Rate) -> u128 {
        let drained = (now - self.at).as_nanos() * u128::from(rate.bytes_per_sec());
        self.debt.saturating_sub(drained)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::from_bits_per_sec(100_000_000);

    /// Sends all that may leave, at every moment the pacer names plus what `late` adds; bytes in one second.
    fn bytes_in_a_second(mut late: impl FnMut(u64) -> Duration) -> u64 {
        let (mut pacer, mut now, mut sent) = (Pacer::new(), Time::from_millis(7), 0);
        let end = now + Duration::from_secs(1);
        for i in 0.. {
            now = pacer.next_send(now, RATE) + late(i);
            if now >= end {
                break;
            }
            let bytes = pacer.budget(now, RATE, 1_200);
            pacer.spend(now, RATE, bytes);
            sent += bytes;
        }
        sent
    }

    #[test]
    fn the_rate_is_held_to_the_byte_and_one_burst() {
        let sent = bytes_in_a_second(|_| Duration::ZERO);
        assert!((12_500_000..=12_500_000 + 25_000).contains(&sent), "{sent}");
    }

    #[test]
    fn late_timers_lose_nothing_within_the_burst() {
        let sent = bytes_in_a_second(|i| Duration::from_micros(i * 997 % 1_900));
        assert!((12_450_000..=12_500_000 + 25_000).contains(&sent), "{sent}");
    }

    #[test]
    fn an_idle_hour_is_worth_one_burst() {
        let (mut pacer, start) = (Pacer::new(), Time::from_millis(1));
        pacer.spend(start, RATE, 25_000);
        let later = start + Duration::from_secs(3_600);
        assert_eq!(pacer.budget(later, RATE, 1_200), 20 * 1_200, "2 ms at 100 Mbit/s, in whole datagrams");
    }

    #[test]
    fn a_burst_is_never_below_10_or_above_256_datagrams() {
        let mut pacer = Pacer::new();
        assert_eq!(pacer.burst(Rate::ZERO), 12_000);
        assert_eq!(pacer.burst(Rate::MAX), 256 * 1_200);
        pacer.set_max_datagram(1_472);
        assert_eq!(pacer.burst(Rate::ZERO), 14_720);
        assert_eq!(pacer.burst(Rate::MAX), 256 * 1_472);
    }

    #[test]
    fn a_rising_rate_shortens_the_wait_at_once() {
        let (mut pacer, now, slow) = (Pacer::new(), Time::from_millis(1), Rate::from_bytes_per_sec(12_000));
        pacer.spend(now, slow, 12_000);
        assert_eq!(pacer.next_send(now, slow), now + Duration::from_millis(100));
        assert_eq!(pacer.next_send(now, slow.scaled(10, 1)), now + Duration::from_millis(10));
    }

    #[test]
    fn extremes_neither_overflow_nor_divide_by_zero() {
        let mut pacer = Pacer::new();
        pacer.set_max_datagram(0);
        pacer.spend(Time::MAX, Rate::ZERO, u64::MAX);
        pacer.spend(Time::ZERO, Rate::MAX, u64::MAX);
        assert_eq!(pacer.next_send(Time::ZERO, Rate::ZERO), Time::MAX);
        assert_eq!(pacer.budget(Time::MAX, Rate::MAX, 0), 0);
        let mut fresh = Pacer::new();
        assert_eq!(fresh.budget(Time::MAX, Rate::MAX, u16::MAX), 4 * u64::from(u16::MAX));
        fresh.spend(Time::ZERO, Rate::MAX, 1);
        assert_eq!(fresh.budget(Time::MAX, Rate::MAX, 1_200), 256 * 1_200);
    }
}
