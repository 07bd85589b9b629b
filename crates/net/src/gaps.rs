use std::collections::BTreeMap;
use std::fmt;

/// Ranges listed for a stream; what is beyond is only counted.
const MOST: usize = 1024;

/// Numbers of a stream for which its outbox had no sound record when they were to be sent: the outbox keeps them as a
/// hint, so that the loss can be seen after they are trimmed. As text: `3 7-9 +12`, the last being what is not listed.
///
/// ```
/// use stayfast_net::Gaps;
/// let mut gaps = Gaps::default();
/// assert_eq!((gaps.add(7, 2), gaps.add(8, 2), gaps.add(3, 1)), (2, 1, 1));
/// assert_eq!((gaps.to_string().as_str(), gaps.count()), ("3 7-9", 4));
/// assert_eq!(Gaps::parse("3 7-9"), gaps);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// First number, and the number after the last; ascending, with sound records between.
    ranges: Vec<(u64, u64)>,
    more: u64,
}

impl Gaps {
    const PREFIX: &str = "gaps/";

    /// Under which key of the outbox's hints those of a stream stand.
    pub fn key(stream: &str) -> String {
        format!("{}{stream}", Gaps::PREFIX)
    }

    /// Those of all streams, from an outbox's hints.
    pub fn all<'a>(notes: impl IntoIterator<Item = (&'a String, &'a String)>) -> BTreeMap<String, Gaps> {
        let one = |(key, text): (&String, &String)| {
            let stream = key.strip_prefix(Gaps::PREFIX)?.to_string();
            Some((stream, Gaps::parse(text))).filter(|(_, gaps)| gaps.count() > 0)
        };
        notes.into_iter().filter_map(one).collect()
    }

    /// Takes `count` numbers from `first` on; returns how many of them are new.
    pub fn add(&mut self, first: u64, count: u64) -> u64 {
        let end = first.saturating_add(count);
        let from = self.ranges.partition_point(|range| range.1 < first);
        let to = self.ranges.partition_point(|range| range.0 <= end);
        let touched = &self.ranges[from..to];
        let known: u64 = touched.iter().map(|range| range.1.min(end).saturating_sub(range.0.max(first))).sum();
        if touched.is_empty() && self.ranges.len() >= MOST {
            self.more = self.more.saturating_add(count);
        } else if known < count {
            let merged = touched.iter().fold((first, end), |all, range| (all.0.min(range.0), all.1.max(range.1)));
            self.ranges.splice(from..to, [merged]);
        }
        count - known
    }

    /// How many numbers.
    pub fn count(&self) -> u64 {
        self.ranges.iter().map(|(first, end)| end - first).sum::<u64>().saturating_add(self.more)
    }

    /// Those from `number` on.
    pub fn since(&self, number: u64) -> Gaps {
        let ranges = self.ranges.iter().filter(|range| range.1 > number);
        Gaps { ranges: ranges.map(|(first, end)| (number.max(*first), *end)).collect(), more: self.more }
    }

    /// Reads what `Display` writes; what is not understood is left out.
    pub fn parse(text: &str) -> Gaps {
        let mut gaps = Gaps::default();
        for word in text.split_ascii_whitespace() {
            let (first, last) = word.split_once('-').unwrap_or((word, word));
            match (word.strip_prefix('+'), first.parse::<u64>(), last.parse::<u64>()) {
                (Some(more), ..) => gaps.more = more.parse().unwrap_or(0),
                (None, Ok(first), Ok(last)) if first <= last => drop(gaps.add(first, last - first + 1)),
                _ => {}
            }
        }
        gaps
    }
}

impl fmt::Display for Gaps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |(first, end): &(u64, u64)| match end - first {
            1 => first.to_string(),
            _ => format!("{first}-{}", end - 1),
        };
        let more = (self.more > 0).then(|| format!("+{}", self.more));
        f.write_str(&self.ranges.iter().map(word).chain(more).collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_counted_once_in_whatever_order() {
        let mut gaps = Gaps::default();
        let mut model = std::collections::BTreeSet::new();
        for step in 0..2_000u64 {
            let (first, count) = (step * 7_919 % 1_000, step % 9);
            let new = (first..first + count).filter(|number| model.insert(*number)).count() as u64;
            assert_eq!((gaps.add(first, count), gaps.count()), (new, model.len() as u64), "{first} {count} {gaps}");
        }
        assert_eq!(Gaps::parse(&gaps.to_string()), gaps);
        assert_eq!(gaps.since(500).count(), model.range(500..).count() as u64);
    }

    #[test]
    fn the_list_is_bounded_and_the_count_is_not() {
        let mut gaps = Gaps::default();
        for n in 0..2 * MOST as u64 {
            gaps.add(3 * n, 1);
        }
        assert_eq!((gaps.ranges.len(), gaps.count()), (MOST, 2 * MOST as u64));
        assert_eq!(Gaps::parse(&gaps.to_string()), gaps);
        assert_eq!(Gaps::parse("9-3 x +").count(), 0);
    }
}
