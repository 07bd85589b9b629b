use super::{Arrival, FULL_SIZE};
use crate::Probability;
use stayfast_units::Time;

/// Parameters of random early detection (Floyd and Jacobson, "Random Early Detection Gateways for Congestion
/// Avoidance", 1993). Queue lengths are in datagrams, without the one on the wire.
///
/// Below `min` on average nothing happens, from `max` on everything is marked. In between a datagram is marked with
/// a probability that grows with the average up to `probability`, and with the number of datagrams since the last
/// mark, so that marks come at regular distances rather than in clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Red {
    /// Average length at which it begins.
    pub min: u32,
    /// Average length from which on it marks everything.
    pub max: u32,
    /// The probability just below `max`.
    pub probability: Probability,
    /// An arrival weighs 1 / 2^weight in the average; at most 32.
    pub weight: u32,
    /// Marks what is [capable](crate::Ecn::is_capable) instead of dropping it.
    pub ecn: bool,
}

impl Default for Red {
    /// What the paper used: 5 to 15 datagrams, 2%, and a weight of about 0.002.
    fn default() -> Red {
        Red { min: 5, max: 15, probability: Probability::percent(2), weight: 9, ecn: false }
    }
}

/// The average queue and the distance to the last mark.
///
/// Lengths and probabilities are fixed-point numbers with 32 binary places.
#[derive(Debug)]
pub(crate) struct Average {
    length: i64,
    /// Datagrams since the last one that was marked; none while the average is below the minimum.
    count: Option<u32>,
    /// Since when the wire has been free.
    idle: Option<Time>,
}

/// 1, as a fixed-point number.
const ONE: u64 = 1 << 32;

impl Default for Average {
    fn default() -> Average {
        Average { length: 0, count: None, idle: Some(Time::ZERO) }
    }
}

impl Average {
    /// The last datagram has left.
    pub(super) fn idle(&mut self, now: Time) {
        self.idle = self.idle.or(Some(now));
    }

    /// Is the datagram that now finds `queued` others to be marked or dropped? (Figure 2 of the paper.)
    pub(super) fn wants_less(&mut self, red: &Red, at: &Arrival, queued: usize, ordinal: u64) -> bool {
        self.update(red, at, queued);
        let (min, max) = (i64::from(red.min) << 32, i64::from(red.max) << 32);
        if self.length < min {
            self.count = None;
            return false;
        }
        let count = self.count.map_or(0, |count| count.saturating_add(1));
        let marked = self.length >= max || {
            let slope = u128::from(red.probability.as_ppm()) * (self.length - min) as u128;
            let base = (slope / (1_000_000 * u128::from(red.max - red.min))) as u64;
            // base / (1 - count base), compared with a fair number without dividing.
            let rest = ONE.saturating_sub(base.saturating_mul(u64::from(count)));
            u128::from(at.dice.below(ordinal, ONE)) * u128::from(rest) < u128::from(base) << 32
        };
        self.count = Some(if marked { 0 } else { count });
        marked
    }

    /// Moves the average towards the present length, or for each datagram that could have left meanwhile towards
    /// none.
    fn update(&mut self, red: &Red, at: &Arrival, queued: usize) {
        let weight = red.weight.min(32);
        match self.idle.take() {
            Some(since) => {
                let each = at.rate.time_for(FULL_SIZE).as_nanos().max(1);
                let missed = u64::try_from((at.now - since).as_nanos() / each).unwrap_or(u64::MAX);
                let kept = power(ONE - (ONE >> weight), missed);
                self.length = ((i128::from(self.length) * i128::from(kept)) >> 32) as i64;
            }
            None => self.length += (((queued as i64) << 32) - self.length) >> weight,
        }
    }
}

/// A fraction to the power of n.
fn power(mut fraction: u64, mut n: u64) -> u64 {
    let times = |a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> 32) as u64;
    let mut result = ONE;
    while n > 0 && result > 0 {
        if n & 1 == 1 {
            result = times(result, fraction);
        }
        fraction = times(fraction, fraction);
        n >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_a_fraction() {
        let f = ONE - (ONE >> 9);
        for n in [0, 1, 2, 3, 100, 512, 5_000] {
            let exact = (f as f64 / ONE as f64).powi(n as i32);
            assert!((power(f, n) as f64 / ONE as f64 - exact).abs() < 1e-7, "{n}");
        }
        assert_eq!((power(0, 0), power(0, 1), power(f, u64::MAX)), (ONE, 0, 0));
    }
}
