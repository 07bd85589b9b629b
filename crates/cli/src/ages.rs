//! When records were put: a hint in the outbox, for `stayfast status`.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Samples kept for a stream; when there are more, every other one goes.
const MOST: usize = 64;

/// Samples of a stream's growth: all records below `next` had been put at that second. As text: `NEXT@SECONDS ...`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ages(Vec<(u64, u64)>);

impl Ages {
    /// Under which key of the outbox's hints the samples of a stream stand.
    pub fn key(stream: &str) -> String {
        format!("ages/{stream}")
    }

    /// Seconds since 1970 by this machine's clock, whatever that is worth.
    pub fn now() -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs())
    }

    /// Reads what `Display` writes; what is not understood is left out.
    pub fn parse(text: &str) -> Ages {
        let sample = |word: &str| {
            let (next, at) = word.split_once('@')?;
            Some((next.parse().ok()?, at.parse().ok()?))
        };
        Ages(text.split_ascii_whitespace().filter_map(sample).collect())
    }

    /// All records below `next` have been put by `now`; those below `stored` are of no interest any more.
    pub fn add(&mut self, next: u64, now: u64, stored: u64) {
        self.0.retain(|(before, _)| *before > stored && *before < next);
        self.0.push((next, now));
        if self.0.len() > MOST {
            let mut n = 0;
            // The last one stays.
            self.0.retain(|_| {
                n += 1;
                n % 2 == 1
            });
        }
    }

    /// For how long record `number` has been there, at least. `None` if that is not known, or in this clock's future.
    pub fn of(&self, number: u64, now: u64) -> Option<Duration> {
        let (_, at) = self.0.iter().find(|(next, _)| *next > number)?;
        now.checked_sub(*at).map(Duration::from_secs)
    }
}

impl fmt::Display for Ages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.0.iter().map(|(next, at)| format!("{next}@{at}")).collect();
        f.write_str(&words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_come_from_the_next_sample() {
        let mut ages = Ages::default();
        ages.add(10, 100, 0);
        ages.add(20, 110, 0);
        assert_eq!(Ages::parse(&ages.to_string()), ages);
        let age = |number| ages.of(number, 150).map(|age| age.as_secs());
        assert_eq!((age(0), age(9), age(10), age(19), age(20)), (Some(50), Some(50), Some(40), Some(40), None));
        ages.add(30, 120, 15);
        assert_eq!(ages.to_string(), "20@110 30@120");
        assert_eq!(Ages::parse("1@x nonsense 2@3").to_string(), "2@3");
    }

    #[test]
    fn samples_are_bounded_and_reach_back() {
        let mut ages = Ages::default();
        (1..=10_000).for_each(|n| ages.add(n, n, 0));
        assert!(ages.0.len() <= MOST);
        assert!(ages.of(0, 10_000).unwrap().as_secs() > 9_000);
        assert_eq!(ages.of(9_999, 10_000), Some(Duration::ZERO));
        assert_eq!(ages.of(9_999, 9_999), None, "the clock was set back");
    }
}
