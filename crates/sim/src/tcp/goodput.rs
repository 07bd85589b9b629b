use alloc::vec::Vec;
use core::time::Duration;
use stayfast_units::{Rate, Time};

/// Bins that are kept; when a run grows longer, two become one.
const BINS_MAX: usize = 1 << 14;

/// How much had arrived by when: totals at the ends of bins of equal length, a millisecond at first.
#[derive(Clone, Debug)]
pub(super) struct Goodput {
    /// The total at the end of each bin up to the last in which something arrived.
    totals: Vec<u64>,
    bin: Duration,
}

impl Goodput {
    pub(super) fn new() -> Goodput {
        Goodput { totals: Vec::new(), bin: Duration::from_millis(1) }
    }

    /// `bytes` more have arrived.
    pub(super) fn add(&mut self, now: Time, bytes: u64) {
        while self.bin_of(now) >= BINS_MAX {
            self.halve();
        }
        let total = self.total();
        self.totals.resize((self.bin_of(now) + 1).max(self.totals.len()), total);
        if let Some(last) = self.totals.last_mut() {
            *last = total + bytes;
        }
    }

    pub(super) fn total(&self) -> u64 {
        self.totals.last().copied().unwrap_or(0)
    }

    /// The rate between the beginnings of the bins in which `from` and `to` lie.
    pub(super) fn between(&self, from: Time, to: Time) -> Rate {
        let (first, last) = (self.bin_of(from), self.bin_of(to));
        let bins = u32::try_from(last.saturating_sub(first)).unwrap_or(u32::MAX);
        if bins == 0 {
            return Rate::ZERO;
        }
        Rate::per(self.before(last) - self.before(first), self.bin.saturating_mul(bins))
    }

    /// The total at the beginning of a bin.
    fn before(&self, bin: usize) -> u64 {
        let Some(previous) = bin.checked_sub(1) else { return 0 };
        self.totals.get(previous).copied().unwrap_or_else(|| self.total())
    }

    fn bin_of(&self, time: Time) -> usize {
        usize::try_from(u128::from(time.as_nanos()) / self.bin.as_nanos()).unwrap_or(usize::MAX)
    }

    fn halve(&mut self) {
        let bins = self.totals.len().div_ceil(2);
        for i in 0..bins {
            self.totals[i] = self.totals.get(2 * i + 1).copied().unwrap_or_else(|| self.total());
        }
        self.totals.truncate(bins);
        self.bin *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_flow_has_one_rate_at_every_time_and_in_a_bounded_memory() {
        let mut goodput = Goodput::new();
        let second = |s: u64| Time::from_millis(s * 1_000);
        // 125 B a millisecond for a thousand seconds.
        (0..1_000_000).for_each(|ms| goodput.add(Time::from_millis(ms), 125));
        assert_eq!((goodput.total(), goodput.bin), (125_000_000, Duration::from_millis(64)));
        assert!(goodput.totals.len() <= BINS_MAX && goodput.totals.capacity() <= BINS_MAX);
        for (from, to) in [(0, 10), (500, 501), (3, 999)] {
            assert_eq!(goodput.between(second(from), second(to)), Rate::from_bits_per_sec(1_000_000));
        }
    }

    #[test]
    fn nothing_arrives_between_times_without_arrivals() {
        let mut goodput = Goodput::new();
        goodput.add(Time::from_millis(10), 1_000);
        goodput.add(Time::from_millis(10), 500);
        goodput.add(Time::from_millis(30), 500);
        let rate = |from, to| goodput.between(Time::from_millis(from), Time::from_millis(to)).bytes_per_sec();
        assert_eq!((rate(0, 10), rate(10, 11), rate(11, 30), rate(30, 31)), (0, 1_500_000, 0, 500_000));
        assert_eq!((rate(0, 100), rate(50, 100), rate(20, 20), rate(20, 10)), (20_000, 0, 0, 0));
    }
}
