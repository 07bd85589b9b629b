use alloc::sync::Arc;
use alloc::vec::Vec;
use stayfast_units::RecordNumber;

/// Why a number has no record. The number is accounted for all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hole {
    /// The sender's disk damaged the record: its checksum does not fit.
    Gap,
    /// The record's time to live ended before it was sent.
    Expired,
}

/// One number of a stream: a record, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A record and its body.
    Record(RecordNumber, &'a [u8]),
    /// A number without a record.
    Hole(RecordNumber, Hole),
}

impl Item<'_> {
    /// Its number.
    pub fn number(&self) -> RecordNumber {
        match *self {
            Item::Record(n, _) | Item::Hole(n, _) => n,
        }
    }
}

/// Numbers without records, ascending.
pub type Holes = Vec<(RecordNumber, Hole)>;

/// The run holds 4 GiB of bodies, or the numbers have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a run holds at most 4 GiB")]
pub struct RunFull;

/// The parts do not make a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the parts do not make a run")]
pub struct BadRun;

/// Consecutive records of one stream, bodies back to back in one buffer. A clone shares the buffer.
///
/// ```
/// use stayfast_store::{Hole, Item, Run};
/// use stayfast_units::RecordNumber;
///
/// let mut run = Run::new(RecordNumber(7));
/// run.push(b"seven")?;
/// run.push_hole(Hole::Gap)?;
/// assert_eq!(run.end(), RecordNumber(9));
/// assert_eq!(run.get(RecordNumber(8)), Some(Item::Hole(RecordNumber(8), Hole::Gap)));
/// assert_eq!(run.iter().count(), 2);
/// # Ok::<(), stayfast_store::RunFull>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Number of the first record.
    pub first: RecordNumber,
    parts: Arc<Parts>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Parts {
    /// `ends[i]` is where the body of record `first + i` ends in `bytes`.
    ends: Vec<u32>,
    bytes: Vec<u8>,
    /// Ascending; the bodies of these are empty.
    holes: Holes,
}

impl Run {
    /// An empty run that will begin with record `first`.
    pub fn new(first: RecordNumber) -> Run {
        Run { first, ..Run::default() }
    }

    /// A run from its parts. `ends` ascend and the last equals the length of `bytes`; `holes` ascend, lie in the run
    /// and have empty bodies.
    pub fn from_parts(first: RecordNumber, ends: Vec<u32>, bytes: Vec<u8>, holes: Holes) -> Result<Run, BadRun> {
        let numbers_end = first.0.checked_add(ends.len() as u64).ok_or(BadRun)?;
        let ends_fit = ends.is_sorted() && ends.last().map_or(0, |&end| end as usize) == bytes.len();
        let run = Run { first, parts: Arc::new(Parts { ends, bytes, holes }) };
        let holes = &run.parts.holes;
        let holes_fit = holes.is_sorted_by(|a, b| a.0 < b.0)
            && holes.iter().all(|&(n, _)| n >= first && n.0 < numbers_end && run.range(n).is_empty());
        if ends_fit && holes_fit { Ok(run) } else { Err(BadRun) }
    }

    /// The parts: first number, ends, bodies, holes; as [`from_parts`](Run::from_parts) takes them. `None` if a clone
    /// still shares them.
    pub fn into_parts(self) -> Option<(RecordNumber, Vec<u32>, Vec<u8>, Holes)> {
        let Parts { ends, bytes, holes } = Arc::try_unwrap(self.parts).ok()?;
        Some((self.first, ends, bytes, holes))
    }

    /// Adds a record after the last.
    pub fn push(&mut self, body: &[u8]) -> Result<(), RunFull> {
        let end = u32::try_from(self.byte_len() + body.len()).map_err(|_| RunFull)?;
        if self.end().0 == u64::MAX {
            return Err(RunFull);
        }
        let parts = Arc::make_mut(&mut self.parts);
        parts.bytes.extend_from_slice(body);
        parts.ends.push(end);
        Ok(())
    }

    /// Adds a number without a record after the last.
    pub fn push_hole(&mut self, hole: Hole) -> Result<(), RunFull> {
        let number = self.end();
        self.push(&[])?;
        Arc::make_mut(&mut self.parts).holes.push((number, hole));
        Ok(())
    }

    /// Adds whatever `item` is after the last; its own number is not looked at.
    pub fn push_item(&mut self, item: Item<'_>) -> Result<(), RunFull> {
        match item {
            Item::Record(_, body) => self.push(body),
            Item::Hole(_, hole) => self.push_hole(hole),
        }
    }

    /// The same under other numbers, from `first` on. Shares the bodies.
    ///
    /// ```
    /// use stayfast_store::Run;
    /// use stayfast_units::RecordNumber;
    ///
    /// let mut run = Run::new(RecordNumber(7));
    /// run.push(b"body")?;
    /// assert_eq!(run.renumbered(RecordNumber(9)).body(RecordNumber(9)), b"body");
    /// # Ok::<(), stayfast_store::RunFull>(())
    /// ```
    #[must_use]
    pub fn renumbered(&self, first: RecordNumber) -> Run {
        let mut run = Run { first, parts: self.parts.clone() };
        if !run.parts.holes.is_empty() {
            let holes = &mut Arc::make_mut(&mut run.parts).holes;
            holes.iter_mut().for_each(|(n, _)| *n = first.plus(n.0 - self.first.0));
        }
        run
    }

    /// How many numbers it spans, holes included.
    pub fn len(&self) -> usize {
        self.parts.ends.len()
    }

    /// True if it spans no number.
    pub fn is_empty(&self) -> bool {
        self.parts.ends.is_empty()
    }

    /// The number after the last.
    pub fn end(&self) -> RecordNumber {
        self.first.plus(self.parts.ends.len() as u64)
    }

    /// Bytes of all bodies.
    pub fn byte_len(&self) -> usize {
        self.parts.bytes.len()
    }

    /// Bytes of the bodies from `number` on.
    ///
    /// ```
    /// use stayfast_store::Run;
    /// use stayfast_units::RecordNumber;
    ///
    /// let mut run = Run::new(RecordNumber(7));
    /// run.push(b"seven")?;
    /// run.push(b"eight!")?;
    /// let from = [0, 7, 8, 9].map(|n| run.bytes_from(RecordNumber(n)));
    /// assert_eq!(from, [11, 11, 6, 0]);
    /// # Ok::<(), stayfast_store::RunFull>(())
    /// ```
    pub fn bytes_from(&self, number: RecordNumber) -> usize {
        let before = number.0.saturating_sub(self.first.0).min(self.len() as u64);
        self.byte_len() - self.start(before as usize)
    }

    /// The bodies, back to back.
    pub fn bytes(&self) -> &[u8] {
        &self.parts.bytes
    }

    /// What is at `number`; `None` outside the run.
    pub fn get(&self, number: RecordNumber) -> Option<Item<'_>> {
        if number < self.first || number >= self.end() {
            return None;
        }
        Some(match self.parts.holes.binary_search_by_key(&number, |&(n, _)| n) {
            Ok(i) => Item::Hole(number, self.parts.holes[i].1),
            Err(_) => Item::Record(number, &self.parts.bytes[self.range(number)]),
        })
    }

    /// The body at `number`; empty for a hole and outside the run.
    pub fn body(&self, number: RecordNumber) -> &[u8] {
        match self.get(number) {
            Some(Item::Record(_, body)) => body,
            _ => &[],
        }
    }

    /// All items in order.
    pub fn iter(&self) -> impl Iterator<Item = Item<'_>> {
        let mut holes = self.parts.holes.iter().peekable();
        self.parts.ends.iter().enumerate().map(move |(i, &end)| {
            let number = self.first.plus(i as u64);
            match holes.next_if(|&&(n, _)| n == number) {
                Some(&(n, hole)) => Item::Hole(n, hole),
                None => Item::Record(number, &self.parts.bytes[self.start(i)..end as usize]),
            }
        })
    }

    /// Numbers without records, consecutive ones of a kind together: the first, how many, why.
    ///
    /// ```
    /// use stayfast_store::{Hole, Run};
    /// use stayfast_units::RecordNumber;
    ///
    /// let mut run = Run::new(RecordNumber(7));
    /// run.push_hole(Hole::Gap)?;
    /// run.push_hole(Hole::Gap)?;
    /// run.push_hole(Hole::Expired)?;
    /// let ranges: Vec<_> = run.hole_ranges().collect();
    /// assert_eq!(ranges, [(RecordNumber(7), 2, Hole::Gap), (RecordNumber(9), 1, Hole::Expired)]);
    /// # Ok::<(), stayfast_store::RunFull>(())
    /// ```
    pub fn hole_ranges(&self) -> impl Iterator<Item = (RecordNumber, u64, Hole)> {
        let next = |a: &(RecordNumber, Hole), b: &(RecordNumber, Hole)| b.0 == a.0.next() && b.1 == a.1;
        self.parts.holes.chunk_by(next).map(|chunk| (chunk[0].0, chunk.len() as u64, chunk[0].1))
    }

    fn start(&self, index: usize) -> usize {
        index.checked_sub(1).map_or(0, |before| self.parts.ends[before] as usize)
    }

    /// Only for numbers in the run.
    fn range(&self, number: RecordNumber) -> core::ops::Range<usize> {
        let i = (number.0 - self.first.0) as usize;
        self.start(i)..self.parts.ends[i] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let n = RecordNumber;
        assert!(Run::from_parts(n(5), vec![1, 3], vec![0; 3], vec![]).is_ok());
        assert_eq!(Run::from_parts(n(5), vec![3, 1], vec![0; 1], vec![]), Err(BadRun));
        assert_eq!(Run::from_parts(n(5), vec![1, 3], vec![0; 4], vec![]), Err(BadRun));
        assert_eq!(Run::from_parts(n(5), vec![], vec![0; 1], vec![]), Err(BadRun));
        assert!(Run::from_parts(n(5), vec![1, 1], vec![0; 1], vec![(n(6), Hole::Gap)]).is_ok());
        assert_eq!(Run::from_parts(n(5), vec![1, 1], vec![0; 1], vec![(n(5), Hole::Gap)]), Err(BadRun), "has a body");
        assert_eq!(Run::from_parts(n(5), vec![0, 0], vec![], vec![(n(7), Hole::Gap)]), Err(BadRun), "outside");
        let twice = vec![(n(5), Hole::Gap), (n(5), Hole::Gap)];
        assert_eq!(Run::from_parts(n(5), vec![0, 0], vec![], twice), Err(BadRun));
        assert_eq!(Run::from_parts(n(u64::MAX), vec![0], vec![], vec![]), Err(BadRun), "numbers end");
    }

    #[test]
    fn a_clone_shares_the_bodies_until_one_of_the_two_grows() {
        let mut run = Run::new(RecordNumber(0));
        run.push(b"body").unwrap();
        let mut clone = run.clone();
        assert_eq!(run.bytes().as_ptr(), clone.bytes().as_ptr());
        assert_eq!(run.clone().into_parts(), None, "its buffers are in use");
        clone.push(b"more").unwrap();
        assert_eq!((run.bytes(), clone.bytes()), (&b"body"[..], &b"bodymore"[..]));
        assert!(run.into_parts().is_some());
    }

    #[test]
    fn an_empty_record_is_not_a_hole() {
        let mut run = Run::new(RecordNumber(0));
        run.push(b"").unwrap();
        run.push_hole(Hole::Expired).unwrap();
        run.push(b"x").unwrap();
        let items: Vec<_> = run.iter().collect();
        assert_eq!(
            items,
            [
                Item::Record(RecordNumber(0), b""),
                Item::Hole(RecordNumber(1), Hole::Expired),
                Item::Record(RecordNumber(2), b"x")
            ]
        );
        for item in items {
            assert_eq!(run.get(item.number()), Some(item));
        }
        assert_eq!(run.get(RecordNumber(3)), None);
    }
}
