use super::segment::{BLOCKS_MAX, Block};
use alloc::vec::Vec;

/// What a receiver has beyond the first segment it misses.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    /// In order, with a gap before each.
    blocks: Vec<Block>,
    /// Segments that came last, the newest first, one for each of so many blocks.
    newest: [Option<u64>; BLOCKS_MAX],
}

impl Gaps {
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Takes a segment in; false if it is there already.
    pub(super) fn insert(&mut self, number: u64) -> bool {
        // The first block that ends at or behind the segment.
        let i = self.blocks.partition_point(|block| block.end < number);
        let fresh = match self.blocks.get_mut(i) {
            Some(block) if block.has(number) => false,
            Some(block) if block.end == number => {
                block.end += 1;
                self.join(i);
                true
            }
            Some(block) if block.start == number + 1 => {
                block.start = number;
                true
            }
            _ => {
                self.blocks.insert(i, Block { start: number, end: number + 1 });
                true
            }
        };
        self.remember(number);
        fresh
    }

    /// Everything before `next` is there: gives up the first block if it follows, and says where it ends.
    pub(super) fn take(&mut self, next: u64) -> u64 {
        match self.blocks.first() {
            Some(block) if block.start <= next => {
                let end = block.end;
                self.blocks.remove(0);
                end
            }
            _ => next,
        }
    }

    /// The block around a segment.
    pub(super) fn around(&self, number: u64) -> Option<Block> {
        let i = self.blocks.partition_point(|block| block.end <= number);
        self.blocks.get(i).copied().filter(|block| block.start <= number)
    }

    /// The blocks that changed last, the newest first (RFC 2018, 4), and then the others.
    pub(super) fn newest(&self) -> impl Iterator<Item = Block> {
        let newest = self.newest.iter().flatten();
        let is_new = |block: &Block| self.newest.iter().flatten().any(|number| block.has(*number));
        let others = self.blocks.iter().copied().filter(move |block| !is_new(block));
        newest.filter_map(|number| self.around(*number)).chain(others)
    }

    /// Joins a block with the next one if nothing is between them.
    fn join(&mut self, i: usize) {
        if let Some(next) = self.blocks.get(i + 1).copied()
            && self.blocks[i].end == next.start
        {
            self.blocks[i].end = next.end;
            self.blocks.remove(i + 1);
        }
    }

    /// Puts a segment in front, in place of the one that was there for its block.
    fn remember(&mut self, number: u64) {
        let Some(block) = self.around(number) else { return };
        let before = self.newest;
        let mut others = before.into_iter().flatten().filter(|other| !block.has(*other));
        self.newest = core::array::from_fn(|i| if i == 0 { Some(number) } else { others.next() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(numbers: &[u64]) -> Gaps {
        let mut gaps = Gaps::default();
        numbers.iter().for_each(|number| assert!(gaps.insert(*number)));
        gaps
    }

    fn newest(gaps: &Gaps) -> Vec<(u64, u64)> {
        gaps.newest().map(|block| (block.start, block.end)).collect()
    }

    #[test]
    fn blocks_grow_at_both_ends_and_join() {
        let mut gaps = gaps(&[5, 7, 8, 4]);
        assert_eq!(newest(&gaps), [(4, 6), (7, 9)]);
        assert!(!gaps.insert(7));
        assert!(gaps.insert(6));
        assert_eq!(newest(&gaps), [(4, 9)]);
        assert_eq!((gaps.take(3), gaps.is_empty()), (3, false));
        assert_eq!((gaps.take(4), gaps.is_empty()), (9, true));
    }

    #[test]
    fn the_newest_block_comes_first_and_each_only_once() {
        let mut gaps = gaps(&[10, 20, 30, 40]);
        assert_eq!(newest(&gaps), [(40, 41), (30, 31), (20, 21), (10, 11)]);
        gaps.insert(21);
        assert_eq!(newest(&gaps), [(20, 22), (40, 41), (30, 31), (10, 11)]);
        gaps.insert(11);
        assert_eq!(newest(&gaps), [(10, 12), (20, 22), (40, 41), (30, 31)]);
        gaps.take(10);
        assert_eq!(newest(&gaps), [(20, 22), (40, 41), (30, 31)]);
    }
}
