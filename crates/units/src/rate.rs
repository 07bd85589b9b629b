use crate::time::nanos;
use core::fmt;
use core::time::Duration;

/// Bytes per second.
///
/// ```
/// use core::time::Duration;
/// use stayfast_units::Rate;
///
/// let rate = Rate::from_bits_per_sec(50_000_000);
/// assert_eq!(rate.time_for(1_250), Duration::from_micros(200));
/// assert_eq!(rate.bytes_in(Duration::from_millis(2)), 12_500);
/// assert_eq!(rate.to_string(), "50.000 Mbit/s");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// Nothing ever arrives.
    pub const ZERO: Rate = Rate(0);
    /// As fast as it can be said.
    pub const MAX: Rate = Rate(u64::MAX);

    /// `bytes` per second.
    pub const fn from_bytes_per_sec(bytes: u64) -> Rate {
        Rate(bytes)
    }

    /// `bits` per second, rounded down to whole bytes.
    pub const fn from_bits_per_sec(bits: u64) -> Rate {
        Rate(bits / 8)
    }

    /// The rate at which `bytes` pass in `time`; [`Rate::MAX`] if `time` is zero.
    pub fn per(bytes: u64, time: Duration) -> Rate {
        match nanos(time) {
            0 => Rate::MAX,
            t => Rate(clamp(u128::from(bytes) * 1_000_000_000 / u128::from(t))),
        }
    }

    /// Bytes per second.
    pub const fn bytes_per_sec(self) -> u64 {
        self.0
    }

    /// Bits per second; saturates.
    pub const fn bits_per_sec(self) -> u64 {
        self.0.saturating_mul(8)
    }

    /// Bytes that pass in `time`, rounded down.
    pub fn bytes_in(self, time: Duration) -> u64 {
        clamp(u128::from(self.0) * u128::from(nanos(time)) / 1_000_000_000)
    }

    /// How long `bytes` take, rounded up; [`Duration::MAX`] at rate zero.
    pub fn time_for(self, bytes: u64) -> Duration {
        match self.0 {
            0 => Duration::MAX,
            rate => Duration::from_nanos(clamp((u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(rate)))),
        }
    }

    /// This rate times `numerator / denominator`; saturates. A `denominator` of zero counts as one.
    #[must_use]
    pub fn scaled(self, numerator: u32, denominator: u32) -> Rate {
        Rate(clamp(u128::from(self.0) * u128::from(numerator) / u128::from(denominator.max(1))))
    }
}

fn clamp(n: u128) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kbit = self.bits_per_sec() / 1_000;
        write!(f, "{}.{:03} Mbit/s", kbit / 1_000, kbit % 1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_neither_overflow_nor_divide_by_zero() {
        assert_eq!(Rate::ZERO.time_for(1), Duration::MAX);
        assert_eq!(Rate::MAX.bytes_in(Duration::from_secs(1_000_000)), u64::MAX);
        assert_eq!(Rate::per(1, Duration::ZERO), Rate::MAX);
        assert_eq!(Rate::MAX.time_for(1), Duration::from_nanos(1));
        assert_eq!(Rate::MAX.scaled(3, 0), Rate::MAX);
    }
}
