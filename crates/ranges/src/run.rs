use crate::{Assembled, RangeSet};
use stayfast_units::RecordNumber;

/// How long a batch may become.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub records: usize,
    pub bytes: usize,
}

/// A run at or above either of these stands alone: it is not copied to the end of the run before it.
const STANDS_ALONE: Cut = Cut { records: 1_024, bytes: 64 << 10 };

/// The record after the last complete one, of which some bytes are here.
#[derive(Debug)]
pub(crate) struct Begun {
    pub total: u32,
    /// Byte offsets that are here; never empty, never all.
    pub have: RangeSet,
}

/// Consecutive complete records, then perhaps one that has only begun, in one buffer.
#[derive(Debug)]
pub(crate) struct Run {
    pub done: Assembled,
    pub begun: Option<Begun>,
}

impl Run {
    pub(crate) fn new(buffer: Assembled) -> Run {
        Run { done: buffer, begun: None }
    }

    pub(crate) fn first(&self) -> u64 {
        self.done.first.0
    }

    /// The number after the last complete record.
    pub(crate) fn end(&self) -> u64 {
        self.done.end().0
    }

    /// The number after the last record of which anything is here.
    pub(crate) fn limit(&self) -> u64 {
        self.end() + u64::from(self.begun.is_some())
    }

    /// Records of which anything is here.
    pub(crate) fn records(&self) -> usize {
        self.done.len() + usize::from(self.begun.is_some())
    }

    /// Bytes of the complete records.
    pub(crate) fn complete_bytes(&self) -> usize {
        self.done.start(self.done.len())
    }

    /// Bytes of all records, the begun one counted whole.
    pub(crate) fn reserved_bytes(&self) -> usize {
        self.complete_bytes() + self.begun.as_ref().map_or(0, |b| b.total as usize)
    }

    /// Whether the first byte of the first record is here.
    pub(crate) fn starts_here(&self) -> bool {
        !self.done.is_empty() || self.begun.as_ref().is_some_and(|b| b.have.smallest() == Some(0))
    }

    /// Whether the last byte of the last record is here.
    pub(crate) fn ends_here(&self) -> bool {
        self.begun.as_ref().is_none_or(|b| b.have.largest() == Some(u64::from(b.total) - 1))
    }

    /// Gaps between the first and the last byte that are here.
    pub(crate) fn gaps(&self) -> usize {
        let Some(begun) = &self.begun else { return 0 };
        let before = !self.done.is_empty() && begun.have.smallest() != Some(0);
        begun.have.len() - 1 + usize::from(before)
    }

    /// Whether a record of `total` bytes may follow in the same buffer. A long record that comes in parts gets
    /// a buffer of its own, so that taking what is complete never has to move much of it.
    pub(crate) fn has_room(&self, total: usize, in_parts: bool, cut: Cut) -> bool {
        self.begun.is_none()
            && !(in_parts && total >= STANDS_ALONE.bytes)
            && self.done.len() < cut.records
            && self.done.bytes.len() + total <= cut.bytes
    }

    /// Whether `next` should be copied to the end of this run.
    pub(crate) fn should_absorb(&self, next: &Run, cut: Cut) -> bool {
        let (records, bytes) = (next.records(), next.reserved_bytes());
        self.begun.is_none()
            && self.end() == next.first()
            && records < STANDS_ALONE.records
            && bytes < STANDS_ALONE.bytes
            && self.done.len() + records <= cut.records
            && self.done.bytes.len() + bytes <= cut.bytes
    }

    /// Moves the contents of `next`, which follows directly, to the end. Its emptied buffer is returned.
    pub(crate) fn absorb(&mut self, next: Run) -> Assembled {
        let base = self.done.bytes.len() as u32;
        self.done.ends.extend(next.done.ends.iter().map(|end| base + end));
        self.done.bytes.extend_from_slice(&next.done.bytes);
        self.done.holes.extend_from_slice(&next.done.holes);
        self.begun = next.begun;
        next.done
    }

    /// Appends a whole record, or a hole if there is no body.
    pub(crate) fn push(&mut self, body: Option<&[u8]>) {
        match body {
            Some(body) => self.done.bytes.extend_from_slice(body),
            None => self.done.holes.push(self.done.end()),
        }
        self.done.ends.push(self.done.bytes.len() as u32);
    }

    /// Begins the next record.
    pub(crate) fn begin(&mut self, total: u32, have: RangeSet) {
        self.done.bytes.reserve(total as usize);
        self.begun = Some(Begun { total, have });
    }

    /// Writes a part of the begun record; how many of its bytes are new. The ranges come out when it is complete.
    pub(crate) fn write(&mut self, offset: u32, part: &[u8]) -> (usize, Option<RangeSet>) {
        let base = self.complete_bytes();
        let Some(begun) = &mut self.begun else { return (0, None) };
        let range = u64::from(offset)..=u64::from(offset) + part.len() as u64 - 1;
        let known = begun.have.count_in(range.clone()) as usize;
        if known == part.len() || begun.have.insert_range(range).is_err() {
            return (0, None);
        }
        put_at(&mut self.done.bytes, base + offset as usize, part);
        let all = begun.have.len() == 1 && begun.have.count_in(0..=u64::MAX) == u64::from(begun.total);
        let finished = if all { self.begun.take() } else { None };
        if finished.is_some() {
            self.done.ends.push(self.done.bytes.len() as u32);
        }
        (part.len() - known, finished.map(|b| b.have))
    }

    /// Forgets the begun record; its total and its ranges.
    pub(crate) fn drop_begun(&mut self) -> Option<Begun> {
        self.done.bytes.truncate(self.complete_bytes());
        self.begun.take()
    }

    /// Moves the begun record into another, empty run, and leaves the complete ones.
    pub(crate) fn split_begun(&mut self, into: &mut Run) {
        let base = self.complete_bytes();
        into.done.first = RecordNumber(self.end());
        into.done.bytes.extend_from_slice(&self.done.bytes[base..]);
        into.begun = self.begun.take();
        self.done.bytes.truncate(base);
    }

    /// Moves the first `n` complete records into an empty buffer.
    pub(crate) fn split_front(&mut self, n: usize, into: &mut Assembled) {
        let cut = self.done.start(n);
        let end = self.done.first.plus(n as u64);
        let holes = self.done.holes.partition_point(|&hole| hole < end);
        into.first = self.done.first;
        into.bytes.extend_from_slice(&self.done.bytes[..cut]);
        into.ends.extend_from_slice(&self.done.ends[..n]);
        into.holes.extend_from_slice(&self.done.holes[..holes]);
        self.done.first = end;
        self.done.bytes.drain(..cut);
        self.done.ends.drain(..n);
        self.done.ends.iter_mut().for_each(|end| *end -= cut as u32);
        self.done.holes.drain(..holes);
    }

    /// Keeps the first `n` complete records only; the ranges of a begun one come out.
    pub(crate) fn truncate(&mut self, n: usize) -> Option<RangeSet> {
        self.done.bytes.truncate(self.done.start(n));
        self.done.ends.truncate(n);
        let end = self.done.end();
        let holes = self.done.holes.partition_point(|&hole| hole < end);
        self.done.holes.truncate(holes);
        self.begun.take().map(|b| b.have)
    }
}

/// Writes `part` at `at`; bytes between the old end and `at` are zero until theirs come.
fn put_at(bytes: &mut alloc::vec::Vec<u8>, at: usize, part: &[u8]) {
    if at > bytes.len() {
        bytes.resize(at, 0);
    }
    let over = part.len().min(bytes.len() - at);
    bytes[at..at + over].copy_from_slice(&part[..over]);
    bytes.extend_from_slice(&part[over..]);
}
