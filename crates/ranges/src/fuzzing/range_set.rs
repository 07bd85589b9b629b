//! [`RangeSet`] beside a plain set of numbers.

use crate::{Full, RangeSet};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use arbitrary::Arbitrary;
use core::ops::RangeInclusive;

/// One call. Numbers are relative to the beginning of a window of 256.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub enum Op {
    /// `insert`.
    Insert(u8),
    /// `insert_range` from the first to the second number.
    InsertRange(u8, u8),
    /// `remove_below`.
    RemoveBelow(u8),
    /// `evict_oldest`.
    EvictOldest,
    /// `clear`.
    Clear,
}

/// Ranges that the sets under test may have.
const MAX: usize = 5;

/// Runs the operations at both ends of the number line.
///
/// # Panics
/// If the set and the model differ.
pub fn check(ops: &[Op]) {
    for origin in [0, u64::MAX - 255] {
        let mut set = RangeSet::new(MAX);
        let mut model = BTreeSet::new();
        for &op in ops {
            apply(&mut set, &mut model, origin, op);
            compare(&set, &model, origin);
        }
    }
}

fn apply(set: &mut RangeSet, model: &mut BTreeSet<u64>, origin: u64, op: Op) {
    match op {
        Op::Insert(n) => {
            let n = origin + u64::from(n);
            assert_eq!(set.insert(n), insert(model, n..=n));
        }
        Op::InsertRange(first, last) => {
            let range = origin + u64::from(first)..=origin + u64::from(last);
            assert_eq!(set.count_in(range.clone()), range.clone().filter(|n| model.contains(n)).count() as u64);
            assert_eq!(set.insert_range(range.clone()), insert(model, range));
        }
        Op::RemoveBelow(n) => {
            set.remove_below(origin + u64::from(n));
            model.retain(|&m| m >= origin + u64::from(n));
        }
        Op::EvictOldest => {
            let oldest = ranges(model).into_iter().next();
            assert_eq!(set.evict_oldest(), oldest.clone());
            oldest.into_iter().flatten().for_each(|n| _ = model.remove(&n));
        }
        Op::Clear => {
            set.clear();
            model.clear();
        }
    }
}

/// All of the range, or nothing if that makes too many ranges.
fn insert(model: &mut BTreeSet<u64>, range: RangeInclusive<u64>) -> Result<bool, Full> {
    let mut after = model.clone();
    after.extend(range);
    if ranges(&after).len() > MAX {
        return Err(Full);
    }
    let new = after.len() > model.len();
    *model = after;
    Ok(new)
}

fn ranges(model: &BTreeSet<u64>) -> Vec<RangeInclusive<u64>> {
    let starts = model.iter().filter(|&&n| n == 0 || !model.contains(&(n - 1)));
    let ends = model.iter().filter(|&&n| n == u64::MAX || !model.contains(&(n + 1)));
    starts.zip(ends).map(|(&first, &last)| first..=last).collect()
}

fn compare(set: &RangeSet, model: &BTreeSet<u64>, origin: u64) {
    let expected = ranges(model);
    assert!(set.iter().eq(expected.iter().cloned()), "{set:?} is not {expected:?}");
    assert!(set.iter().rev().eq(expected.into_iter().rev()));
    assert_eq!((set.smallest(), set.largest()), (model.first().copied(), model.last().copied()));
    assert_eq!((set.len(), set.is_empty()), (set.iter().count(), model.is_empty()));
    for n in origin..=origin + 255 {
        assert_eq!(set.contains(n), model.contains(&n));
    }
}

#[test]
fn any_operations() {
    super::check_many(check);
}
