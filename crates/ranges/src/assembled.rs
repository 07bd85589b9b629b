use alloc::vec::Vec;
use stayfast_units::RecordNumber;

/// Consecutive complete records, their bodies back to back.
///
/// Give it back with [`Reassembler::recycle`](crate::Reassembler::recycle) when its contents are no longer needed.
///
/// ```
/// use stayfast_ranges::{Limits, Reassembler};
/// use stayfast_units::RecordNumber;
///
/// let mut stream = Reassembler::new(RecordNumber(7), Limits { bytes: 100, gaps: 1, record: 100 });
/// stream.record(RecordNumber(7), b"seven")?;
/// stream.hole(RecordNumber(8))?;
/// let batch = stream.take(10, 1_000).expect("two are complete");
/// assert_eq!(batch.body(0), Some(&b"seven"[..]));
/// assert_eq!((batch.len(), batch.holes.as_slice()), (2, &[RecordNumber(8)][..]));
/// # Ok::<(), stayfast_ranges::Refused>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assembled {
    /// The number of the first record.
    pub first: RecordNumber,
    /// Where each record ends in [`Assembled::bytes`].
    pub ends: Vec<u32>,
    /// The bodies.
    pub bytes: Vec<u8>,
    /// The numbers that have no body, ascending. Their end equals the one before.
    pub holes: Vec<RecordNumber>,
}

impl Assembled {
    /// How many records there are, holes included.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The number after the last record.
    pub fn end(&self) -> RecordNumber {
        self.first.plus(self.ends.len() as u64)
    }

    /// The body of record `first + i`; empty for a hole, `None` beyond the last.
    pub fn body(&self, i: usize) -> Option<&[u8]> {
        let end = *self.ends.get(i)?;
        self.bytes.get(self.start(i)..end as usize)
    }

    /// Where record `i` starts; for `i = len()`, where the last one ends.
    pub(crate) fn start(&self, i: usize) -> usize {
        i.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |&end| end as usize)
    }

    /// Memory that the buffers occupy, in bytes.
    pub(crate) fn footprint(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<u32>() + self.holes.capacity() * size_of::<u64>()
    }

    /// Forgets the contents, keeps the buffers.
    pub(crate) fn clear(&mut self) {
        self.ends.clear();
        self.bytes.clear();
        self.holes.clear();
    }
}
