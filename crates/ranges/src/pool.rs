use crate::{Assembled, RangeSet};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use stayfast_units::RecordNumber;

/// Buffers above this are kept for what is in order, where batches grow long.
const LARGE: usize = 16 << 10;
/// Sets of byte ranges that are kept, and how many ranges each may have room for.
const SETS: usize = 64;

/// Spare buffers, so that steady traffic allocates nothing.
///
/// The owner bounds the memory: only buffers that come back from outside can raise the sum of used and spare ones.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    /// Small ones in front, large ones at the back.
    spare: VecDeque<Assembled>,
    footprint: usize,
    sets: Vec<RangeSet>,
}

impl Pool {
    /// A cleared buffer, large if there is one and `large` is wanted.
    pub(crate) fn get(&mut self, first: RecordNumber, large: bool) -> Assembled {
        let spare = if large { self.spare.pop_back() } else { self.spare.pop_front() };
        let mut buffer = spare.unwrap_or_default();
        self.footprint -= buffer.footprint();
        buffer.first = first;
        buffer
    }

    pub(crate) fn put(&mut self, mut buffer: Assembled) {
        buffer.clear();
        self.footprint += buffer.footprint();
        if buffer.footprint() > LARGE {
            self.spare.push_back(buffer);
        } else {
            self.spare.push_front(buffer);
        }
    }

    /// Memory of the spare buffers, in bytes.
    pub(crate) fn footprint(&self) -> usize {
        self.footprint
    }

    /// How many spare buffers there are.
    pub(crate) fn len(&self) -> usize {
        self.spare.len()
    }

    /// A cleared set that may have `max_ranges` ranges: the same in every call on one pool.
    pub(crate) fn get_set(&mut self, max_ranges: usize) -> RangeSet {
        self.sets.pop().unwrap_or_else(|| RangeSet::new(max_ranges))
    }

    pub(crate) fn put_set(&mut self, mut set: RangeSet) {
        if self.sets.len() < SETS && set.capacity() <= SETS {
            set.clear();
            self.sets.push(set);
        }
    }
}
