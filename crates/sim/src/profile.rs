use crate::PathError;
use crate::spec::quantity::{RATE, bits, nanos, quantity, time};
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use stayfast_units::Rate;

/// A rate that changes by a list, such as one recorded from a mobile network: each rate holds for a time, and after
/// the last one the first begins again. [`Path::following`](crate::Path::following) puts it on a path.
///
/// As text, rates and times: `50M:2s,0:100ms`.
///
/// ```
/// use core::time::Duration;
/// use stayfast_sim::Profile;
/// use stayfast_units::Rate;
///
/// let profile: Profile = "50M:2s,5M:500ms".parse().unwrap();
/// assert_eq!(profile.rate_at(Duration::from_millis(2_499)), Rate::from_bits_per_sec(5_000_000));
/// assert_eq!(profile.rate_at(Duration::from_millis(2_500)), Rate::from_bits_per_sec(50_000_000));
/// assert_eq!(profile.to_string(), "50M:2s,5M:500ms");
/// assert!("50M:0s".parse::<Profile>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    steps: Vec<(Rate, Duration)>,
}

impl Profile {
    /// Each rate for its time, over and over. None if a time is zero, or nothing would ever be carried.
    pub fn new(steps: &[(Rate, Duration)]) -> Option<Profile> {
        let times = steps.iter().all(|(_, time)| !time.is_zero());
        let carries = steps.iter().any(|(rate, _)| *rate != Rate::ZERO);
        (times && carries).then(|| Profile { steps: steps.to_vec() })
    }

    /// The rate so long after the beginning.
    pub fn rate_at(&self, elapsed: Duration) -> Rate {
        self.step_at(elapsed).0
    }

    /// The rate, and how long it will hold.
    pub(crate) fn step_at(&self, elapsed: Duration) -> (Rate, Duration) {
        let period: u128 = self.steps.iter().map(|(_, time)| time.as_nanos()).sum();
        let mut left = elapsed.as_nanos() % period.max(1);
        for (rate, time) in &self.steps {
            match time.as_nanos().checked_sub(left) {
                None | Some(0) => left -= time.as_nanos(),
                Some(rest) => return (*rate, Duration::from_nanos(u64::try_from(rest).unwrap_or(u64::MAX))),
            }
        }
        // Not reached: what is left is less than the sum of all times.
        (Rate::ZERO, Duration::MAX)
    }
}

impl FromStr for Profile {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Profile, PathError> {
        let step = |step: &str| {
            let (rate, length) = step.split_once(':')?;
            Some((Rate::from_bits_per_sec(quantity(rate, &RATE)?), time(length)?))
        };
        let steps: Option<Vec<_>> = text.split(',').map(step).collect();
        let expected = "rates and times above 0, such as 50M:2s,0:100ms, not all at rate 0";
        steps.and_then(|steps| Profile::new(&steps)).ok_or(PathError::Value { word: text.to_string(), expected })
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (rate, time)) in self.steps.iter().enumerate() {
            write!(f, "{}{}:{}", if i == 0 { "" } else { "," }, bits(*rate), nanos(*time))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_begin_and_end_at_the_nanosecond() {
        let profile: Profile = "8k:3ns,0:2ns,16k:1ns".parse().unwrap();
        let rates: Vec<u64> = (0..12).map(|n| profile.rate_at(Duration::from_nanos(n)).bytes_per_sec()).collect();
        assert_eq!(rates, [1_000, 1_000, 1_000, 0, 0, 2_000].repeat(2));
        assert_eq!(profile.step_at(Duration::from_nanos(7)).1, Duration::from_nanos(2));
        assert_eq!(profile.to_string().parse(), Ok(profile));
    }

    #[test]
    fn what_never_carries_or_never_lasts_is_refused() {
        for text in ["", "0:1s", "8k:0s", "8k:1s,", "8k", "8k:1s,8k:0ms", "8:1", "x:1s"] {
            let error = text.parse::<Profile>().unwrap_err();
            assert!(matches!(&error, PathError::Value { word, .. } if word == text), "{error}");
        }
        assert_eq!(Profile::new(&[]), None);
    }
}
