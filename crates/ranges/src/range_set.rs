use alloc::collections::VecDeque;
use core::fmt;
use core::ops::RangeInclusive;

/// The set would need more ranges than it may have. It is unchanged.
///
/// The caller can refuse what brought the number, or [`RangeSet::evict_oldest`] and try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the set has as many ranges as it may have")
    }
}

impl core::error::Error for Full {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    first: u64,
    last: u64,
}

/// A set of numbers, kept as closed ranges that neither overlap nor touch; at most as many as
/// [`RangeSet::new`] was told.
///
/// Numbers at or just beyond the largest cost O(1); others a binary search and a move of at most half
/// the ranges. Storage grows to the most ranges that were ever needed and stays.
///
/// ```
/// use stayfast_ranges::{Full, RangeSet};
///
/// let mut seen = RangeSet::new(2);
/// assert_eq!(seen.insert(1), Ok(true));
/// assert_eq!(seen.insert(1), Ok(false));
/// assert_eq!(seen.insert_range(4..=6), Ok(true));
/// assert_eq!(seen.insert(9), Err(Full));
/// assert_eq!(seen.insert_range(2..=3), Ok(true));
/// assert!(seen.iter().eq([1..=6]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeSet {
    spans: VecDeque<Span>,
    max: usize,
}

impl RangeSet {
    /// An empty set that may have up to `max_ranges` ranges. Allocates nothing yet.
    pub const fn new(max_ranges: usize) -> RangeSet {
        RangeSet { spans: VecDeque::new(), max: max_ranges }
    }

    /// Adds one number; whether it is new.
    ///
    /// # Errors
    /// [`Full`] if that takes one range too many. Nothing has changed then.
    pub fn insert(&mut self, n: u64) -> Result<bool, Full> {
        self.insert_range(n..=n)
    }

    /// Adds all numbers of a range; whether any of them is new. An empty range adds nothing.
    ///
    /// # Errors
    /// [`Full`] if that takes one range too many. Nothing has changed then.
    pub fn insert_range(&mut self, range: RangeInclusive<u64>) -> Result<bool, Full> {
        let (first, last) = range.into_inner();
        if first > last {
            return Ok(false);
        }
        match self.spans.back_mut() {
            // The hot path: the next number of those that come in order.
            Some(newest) if newest.last.checked_add(1) == Some(first) => newest.last = last,
            Some(newest) if newest.last >= first => return self.merge(first, last),
            _ => self.add(self.spans.len(), Span { first, last })?,
        }
        Ok(true)
    }

    /// Inserts a range that begins at or below the largest number.
    fn merge(&mut self, first: u64, last: u64) -> Result<bool, Full> {
        // Those from `from` up to `to` overlap or touch the new range, and become one with it.
        let from = self.spans.partition_point(|s| s.last.saturating_add(1) < first);
        let to = self.spans.partition_point(|s| s.first <= last.saturating_add(1));
        if from == to {
            self.add(from, Span { first, last })?;
            return Ok(true);
        }
        let old = self.spans[from];
        let merged = Span { first: old.first.min(first), last: self.spans[to - 1].last.max(last) };
        self.spans[from] = merged;
        if to - from > 1 {
            self.spans.drain(from + 1..to);
        }
        Ok(merged != old)
    }

    fn add(&mut self, at: usize, span: Span) -> Result<(), Full> {
        if self.spans.len() >= self.max {
            return Err(Full);
        }
        self.spans.insert(at, span);
        Ok(())
    }

    /// Whether `n` is in the set.
    ///
    /// ```
    /// # use stayfast_ranges::RangeSet;
    /// let mut seen = RangeSet::new(1);
    /// seen.insert_range(3..=5)?;
    /// assert!(seen.contains(4) && !seen.contains(6));
    /// # Ok::<(), stayfast_ranges::Full>(())
    /// ```
    pub fn contains(&self, n: u64) -> bool {
        self.at_or_after(n).is_some_and(|s| s.first <= n)
    }

    /// How many numbers of `range` are in the set; saturates.
    ///
    /// ```
    /// # use stayfast_ranges::RangeSet;
    /// let mut seen = RangeSet::new(2);
    /// seen.insert_range(1..=3)?;
    /// seen.insert_range(7..=9)?;
    /// assert_eq!(seen.count_in(3..=8), 3);
    /// # Ok::<(), stayfast_ranges::Full>(())
    /// ```
    pub fn count_in(&self, range: RangeInclusive<u64>) -> u64 {
        let (first, last) = range.into_inner();
        if self.largest().is_none_or(|largest| largest < first) {
            return 0;
        }
        let from = self.spans.partition_point(|s| s.last < first);
        let overlapping = self.spans.range(from..).take_while(|s| s.first <= last);
        overlapping.fold(0, |sum: u64, s| {
            let (low, high) = (s.first.max(first), s.last.min(last));
            // An empty range may lie inside a span.
            high.checked_sub(low).map_or(sum, |n| sum.saturating_add(n).saturating_add(1))
        })
    }

    /// Whether a number of `range`, or a neighbour of one, is in the set: inserting it makes no new range.
    pub(crate) fn touches(&self, range: RangeInclusive<u64>) -> bool {
        let (first, last) = range.into_inner();
        self.at_or_after(first.saturating_sub(1)).is_some_and(|s| s.first <= last.saturating_add(1))
    }

    /// The first range that does not end below `n`.
    fn at_or_after(&self, n: u64) -> Option<&Span> {
        let newest = self.spans.back()?;
        if newest.last < n {
            return None;
        }
        if newest.first <= n {
            return Some(newest);
        }
        self.spans.get(self.spans.partition_point(|s| s.last < n))
    }

    /// Removes all numbers below `n`.
    ///
    /// ```
    /// # use stayfast_ranges::RangeSet;
    /// let mut seen = RangeSet::new(2);
    /// seen.insert_range(1..=3)?;
    /// seen.remove_below(3);
    /// assert!(seen.iter().eq([3..=3]));
    /// # Ok::<(), stayfast_ranges::Full>(())
    /// ```
    pub fn remove_below(&mut self, n: u64) {
        while self.spans.front().is_some_and(|s| s.last < n) {
            self.spans.pop_front();
        }
        if let Some(oldest) = self.spans.front_mut() {
            oldest.first = oldest.first.max(n);
        }
    }

    /// Removes the range with the smallest numbers and returns it.
    ///
    /// ```
    /// # use stayfast_ranges::RangeSet;
    /// let mut seen = RangeSet::new(2);
    /// seen.insert(1)?;
    /// seen.insert_range(5..=6)?;
    /// assert_eq!(seen.evict_oldest(), Some(1..=1));
    /// # Ok::<(), stayfast_ranges::Full>(())
    /// ```
    pub fn evict_oldest(&mut self) -> Option<RangeInclusive<u64>> {
        self.spans.pop_front().map(|s| s.first..=s.last)
    }

    /// Removes all numbers. The storage stays.
    pub fn clear(&mut self) {
        self.spans.clear();
    }

    /// The largest number.
    pub fn largest(&self) -> Option<u64> {
        self.spans.back().map(|s| s.last)
    }

    /// The smallest number.
    pub fn smallest(&self) -> Option<u64> {
        self.spans.front().map(|s| s.first)
    }

    /// The ranges, ascending; `rev()` gives the newest first.
    ///
    /// ```
    /// # use stayfast_ranges::RangeSet;
    /// let mut seen = RangeSet::new(2);
    /// seen.insert_range(1..=3)?;
    /// seen.insert(7)?;
    /// assert!(seen.iter().rev().eq([7..=7, 1..=3]));
    /// # Ok::<(), stayfast_ranges::Full>(())
    /// ```
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = RangeInclusive<u64>> + ExactSizeIterator + Clone + '_ {
        self.spans.iter().map(|s| s.first..=s.last)
    }

    /// How many ranges there are (not how many numbers).
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there is no number.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// How many ranges fit without an allocation.
    pub(crate) fn capacity(&self) -> usize {
        self.spans.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_the_number_line_do_not_wrap() {
        let mut set = RangeSet::new(2);
        assert_eq!(set.insert(u64::MAX), Ok(true));
        assert_eq!(set.insert(0), Ok(true));
        assert_eq!(set.insert(1), Ok(true));
        assert_eq!(set.insert(u64::MAX), Ok(false));
        assert!(set.iter().eq([0..=1, u64::MAX..=u64::MAX]));
        assert_eq!(set.insert_range(0..=u64::MAX), Ok(true));
        assert_eq!(set.count_in(0..=u64::MAX), u64::MAX);
        assert_eq!(set.len(), 1);
    }

    #[test]
    fn a_full_set_still_takes_what_touches_it() {
        let mut set = RangeSet::new(2);
        set.insert(10).unwrap();
        set.insert(20).unwrap();
        let before = set.clone();
        assert_eq!(set.insert(15), Err(Full));
        assert_eq!(set.insert(30), Err(Full));
        assert_eq!(set, before);
        assert_eq!(set.insert_range(11..=19), Ok(true));
        assert_eq!(set.insert(30), Ok(true));
        assert!(set.iter().eq([10..=20, 30..=30]));
    }

    #[test]
    fn a_set_of_no_ranges_takes_nothing() {
        assert_eq!(RangeSet::new(0).insert(0), Err(Full));
    }
}
