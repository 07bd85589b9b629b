use crate::digest::{Digest, mix};
use core::fmt;
use core::time::Duration;

/// How likely something is, in parts per million.
///
/// ```
/// use stayfast_sim::Probability;
///
/// assert_eq!(Probability::percent(1), Probability::ppm(10_000));
/// assert_eq!(Probability::ppm(300).to_string(), "0.03%");
/// assert_eq!(Probability::ppm(2_000_000), Probability::ONE);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Probability(u32);

impl Probability {
    /// Never.
    pub const ZERO: Probability = Probability(0);
    /// Always.
    pub const ONE: Probability = Probability(1_000_000);

    /// `parts` in a million; more than a million is always.
    pub const fn ppm(parts: u32) -> Probability {
        Probability(if parts > 1_000_000 { 1_000_000 } else { parts })
    }

    /// `parts` in a hundred; more than a hundred is always.
    pub const fn percent(parts: u32) -> Probability {
        Probability::ppm(parts.saturating_mul(10_000))
    }

    /// Parts per million.
    pub const fn as_ppm(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, mut part) = (self.0 / 10_000, self.0 % 10_000);
        if part == 0 {
            return write!(f, "{whole}%");
        }
        let mut digits = 4;
        while part % 10 == 0 {
            part /= 10;
            digits -= 1;
        }
        write!(f, "{whole}.{part:0digits$}%")
    }
}

/// The dice of one element: a function of its seed and of the datagram's ordinal, with no state.
///
/// Because a throw belongs to the datagram and not to a position in a sequence, an element that loses some
/// datagrams leaves the fate of all others in the later elements as it was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// The dice of the `nth` element of this `kind` on the path `name`.
    pub(crate) fn new(seed: u64, name: &str, kind: &str, nth: usize) -> Dice {
        let mut digest = Digest::new();
        digest.word(seed);
        digest.bytes(name.as_bytes());
        digest.bytes(kind.as_bytes());
        digest.word(nth as u64);
        Dice(digest.value())
    }

    /// 64 fair bits: output number `ordinal` of SplitMix64 started at the seed.
    fn throw(self, ordinal: u64) -> u64 {
        mix(self.0.wrapping_add(ordinal.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15)))
    }

    /// Does it happen to this datagram?
    pub(crate) fn hit(self, ordinal: u64, probability: Probability) -> bool {
        if probability == Probability::ZERO {
            return false;
        }
        let draw = ((self.throw(ordinal) >> 32) * 1_000_000) >> 32;
        draw < u64::from(probability.0)
    }

    /// Does it happen to this datagram, if it is to happen `part` times in `whole`? Always, if `part` is not less.
    pub(crate) fn one_in(self, ordinal: u64, part: u64, whole: u64) -> bool {
        self.below(ordinal, whole) < part || part >= whole
    }

    /// A number below `end`, all equally likely; 0 below 0.
    pub(crate) fn below(self, ordinal: u64, end: u64) -> u64 {
        ((u128::from(self.throw(ordinal)) * u128::from(end)) >> 64) as u64
    }

    /// A time from zero to `most`, both included, all equally likely.
    pub(crate) fn within(self, ordinal: u64, most: Duration) -> Duration {
        let steps = most.as_nanos().min(u128::from(u64::MAX) - 1) as u64 + 1;
        Duration::from_nanos(self.below(ordinal, steps))
    }

    /// More dice of the same element, for a second question about the same datagram.
    pub(crate) fn second(self) -> Dice {
        Dice(mix(!self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certainty_and_impossibility_are_exact() {
        let dice = Dice::new(1, "path", "loss", 0);
        for ordinal in 0..10_000 {
            assert!(dice.hit(ordinal, Probability::ONE));
            assert!(!dice.hit(ordinal, Probability::ZERO));
        }
    }

    #[test]
    fn a_time_within_covers_its_whole_range() {
        let dice = Dice::new(1, "path", "jitter", 0);
        let most = Duration::from_nanos(9);
        let mut seen = [0u32; 10];
        for ordinal in 0..10_000 {
            seen[dice.within(ordinal, most).as_nanos() as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (850..1_150).contains(&n)), "{seen:?}");
        assert_eq!(dice.within(3, Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn other_names_are_other_dice() {
        let throws = [("a", "loss", 0), ("b", "loss", 0), ("a", "jitter", 0), ("a", "loss", 1), ("al", "oss", 0)]
            .map(|(name, kind, nth)| Dice::new(1, name, kind, nth).throw(0));
        for (i, a) in throws.iter().enumerate() {
            assert!(throws[..i].iter().all(|b| a != b));
        }
    }
}
