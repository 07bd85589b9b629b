//! One incoming stream: where the application stands, which records are in memory, whose they are.

use alloc::vec::Vec;
use stayfast_ranges::{Limits, Reassembler};
use stayfast_store::{CursorKey, Delivery, Hole, Origin, Position, Run};
use stayfast_units::{Lineage, RecordNumber};

/// From `first` on, records have this lineage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    first: RecordNumber,
    lineage: Lineage,
}

/// What becomes of a record, judged by its number and the origin of its lineage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It continues what we have.
    Take,
    /// Below the durable cursor: STORED is the answer.
    Below,
    /// Not to be judged yet: its origin has not arrived, or another history is in the way that is not durable.
    Wait,
    /// It belongs to another history than the durable one.
    Fenced,
}

/// Numbers that are skipped at a time.
const SKIP: u64 = 4096;

#[derive(Debug)]
pub(crate) struct Incoming {
    pub key: CursorKey,
    /// The durable cursor.
    pub cursor: Position,
    pub bytes: Reassembler,
    /// A delivery is with the application.
    pub delivering: bool,
    /// The number after the last that was delivered: where `bytes` goes on.
    taken: RecordNumber,
    /// Body bytes of that delivery.
    pub out: usize,
    /// Where tombstones stand among the holes that are in memory.
    expired: Vec<RecordNumber>,
    /// Lineages in memory: the first is the cursor's.
    segments: Vec<Segment>,
}

impl Incoming {
    pub(crate) fn new(key: CursorKey, cursor: Position, limits: Limits) -> Incoming {
        let segments = alloc::vec![Segment { first: RecordNumber::ZERO, lineage: cursor.lineage }];
        let bytes = Reassembler::new(cursor.next, limits);
        Incoming { key, cursor, bytes, delivering: false, taken: cursor.next, out: 0, expired: Vec::new(), segments }
    }

    /// May record `n` of the lineage that began at `origin` be taken? The record at the cursor is taken if its
    /// lineage is the cursor's or opens there with the cursor's as parent; later ones if they chain to it.
    pub(crate) fn judge(&mut self, origin: Origin, n: RecordNumber) -> Verdict {
        if n < self.cursor.next {
            return Verdict::Below;
        }
        if let Some(i) = self.segments.iter().position(|segment| segment.lineage == origin.lineage) {
            let over = self.segments.get(i + 1).is_some_and(|successor| n >= successor.first);
            return match over {
                false => Verdict::Take,
                true => Verdict::Wait,
            };
        }
        let Some(last) = self.segments.last().copied() else { return Verdict::Wait };
        if origin.parent == last.lineage && origin.first >= self.cursor.next.max(last.first) {
            self.segments.push(Segment { first: origin.first, lineage: origin.lineage });
            return Verdict::Take;
        }
        // A lineage that opened at or below the cursor, and is not the cursor's, is another history.
        let forked_here = origin.first == self.cursor.next && origin.parent == self.cursor.lineage;
        if origin.first <= self.cursor.next && !forked_here { Verdict::Fenced } else { Verdict::Wait }
    }

    fn lineage_below(&self, end: RecordNumber) -> Lineage {
        self.segments.iter().rev().find(|segment| segment.first < end).map_or(self.cursor.lineage, |s| s.lineage)
    }

    /// A number whose record does not exist any more.
    pub(crate) fn hole(&mut self, n: RecordNumber, hole: Hole) -> Result<(), stayfast_ranges::Refused> {
        self.bytes.hole(n)?;
        if hole == Hole::Expired
            && let Err(at) = self.expired.binary_search(&n)
        {
            self.expired.insert(at, n);
        }
        Ok(())
    }

    /// The next batch for the application, if it has none in hand. A batch that was raced and did not come back is
    /// missing for good, and then the stream rather stands still.
    pub(crate) fn deliver(&mut self, max_records: usize, max_bytes: usize) -> Option<Delivery> {
        if self.delivering || self.taken != self.cursor.next {
            return None;
        }
        let taken = self.bytes.take(max_records, max_bytes)?;
        self.delivering = true;
        self.taken = taken.end();
        self.out = taken.bytes.len();
        let expired = &self.expired;
        let kind = |n: &RecordNumber| if expired.binary_search(n).is_ok() { Hole::Expired } else { Hole::Gap };
        let holes = taken.holes.iter().map(|n| (*n, kind(n))).collect();
        let run = Run::from_parts(taken.first, taken.ends, taken.bytes, holes).ok()?;
        let to = Position { next: run.end(), lineage: self.lineage_below(run.end()) };
        Some(Delivery { key: self.key.clone(), from: self.cursor, to, run })
    }

    /// The application's transaction is durable.
    pub(crate) fn stored(&mut self, to: Position) {
        self.cursor = to;
        self.delivering = false;
        self.out = 0;
        self.expired.retain(|n| *n >= to.next);
        while self.segments.get(1).is_some_and(|second| second.first < to.next) {
            self.segments.remove(0);
        }
        self.skip_to(to.next);
    }

    /// Others have stored everything below `n`. What is here beyond was acknowledged, so it stays.
    fn skip_to(&mut self, n: RecordNumber) {
        while self.taken < n {
            // Numbers that have not arrived need not any more; a window of them at a time.
            let window = n.0.min(self.taken.0.saturating_add(SKIP));
            let filled = (self.taken.0..window).all(|n| self.bytes.hole(RecordNumber(n)).is_ok());
            let stored = self.bytes.take((n.0 - self.taken.0).min(SKIP) as usize, usize::MAX).filter(|_| filled);
            let Some(stored) = stored else { return self.reset(n) };
            self.taken = stored.end();
            self.bytes.recycle(stored);
        }
    }

    fn reset(&mut self, n: RecordNumber) {
        self.bytes.reset(n);
        self.taken = n;
    }

    /// Another node was first: the cursor stands at `at`. True if what is in memory still continues it.
    pub(crate) fn conflict(&mut self, at: Position) -> bool {
        let agrees = at.next >= self.cursor.next && self.lineage_below(at.next) == at.lineage;
        if !agrees {
            self.segments = alloc::vec![Segment { first: RecordNumber::ZERO, lineage: at.lineage }];
            self.reset(at.next);
        }
        self.stored(at);
        agrees
    }

    /// What of a batch that came back is still to be delivered.
    pub(crate) fn again(&mut self, delivery: Delivery) -> Option<Delivery> {
        if delivery.run.end() <= self.cursor.next || self.lineage_below(delivery.to.next) != delivery.to.lineage {
            self.delivering = false;
            self.out = 0;
            return None;
        }
        self.delivering = true;
        self.out = delivery.run.byte_len();
        if delivery.from.next >= self.cursor.next {
            return Some(Delivery { from: self.cursor, ..delivery });
        }
        let mut run = Run::new(self.cursor.next);
        for item in delivery.run.iter().filter(|item| item.number() >= self.cursor.next) {
            run.push_item(item).ok()?;
        }
        Some(Delivery { from: self.cursor, run, ..delivery })
    }

    /// Body bytes this stream holds in memory, begun records with their whole length.
    pub(crate) fn held(&self) -> usize {
        self.bytes.held() + self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stayfast_units::StoreId;

    fn stream(next: u64, lineage: u64) -> Incoming {
        let key = CursorKey { sender: "pi3".into(), store: StoreId(1), stream: "orders".into() };
        let limits = Limits { bytes: 1 << 20, gaps: 256, record: 1 << 20 };
        Incoming::new(key, Position { next: RecordNumber(next), lineage: Lineage(lineage) }, limits)
    }

    fn origin(first: u64, lineage: u64, parent: u64) -> Origin {
        Origin { first: RecordNumber(first), lineage: Lineage(lineage), parent: Lineage(parent) }
    }

    #[test]
    fn the_first_record_ever_opens_without_a_parent() {
        assert_eq!(stream(0, 0).judge(origin(0, 7, 0), RecordNumber(0)), Verdict::Take);
    }

    #[test]
    fn a_lineage_continues_and_a_child_follows() {
        let mut s = stream(10, 7);
        assert_eq!(s.judge(origin(0, 7, 0), RecordNumber(9)), Verdict::Below);
        assert_eq!(s.judge(origin(0, 7, 0), RecordNumber(10)), Verdict::Take);
        assert_eq!(s.judge(origin(12, 8, 7), RecordNumber(12)), Verdict::Take);
        assert_eq!(s.judge(origin(14, 9, 8), RecordNumber(14)), Verdict::Take);
        assert_eq!(s.judge(origin(0, 7, 0), RecordNumber(12)), Verdict::Wait, "its successor has opened there");
    }

    #[test]
    fn a_grandchild_waits_for_its_parent() {
        let mut s = stream(10, 7);
        assert_eq!(s.judge(origin(14, 9, 8), RecordNumber(14)), Verdict::Wait);
        assert_eq!(s.judge(origin(12, 8, 7), RecordNumber(12)), Verdict::Take);
        assert_eq!(s.judge(origin(14, 9, 8), RecordNumber(14)), Verdict::Take);
    }

    #[test]
    fn a_restored_copy_is_fenced() {
        let mut s = stream(50, 7);
        assert_eq!(s.judge(origin(40, 8, 6), RecordNumber(50)), Verdict::Fenced);
        assert_eq!(s.judge(origin(50, 8, 6), RecordNumber(50)), Verdict::Fenced, "right number, wrong parent");
    }

    fn at(next: u64) -> Position {
        Position { next: RecordNumber(next), lineage: Lineage(7) }
    }

    /// Records 0 to 9 of lineage 7 are here; their bodies are their numbers.
    fn ten() -> Incoming {
        let mut s = stream(0, 0);
        for n in 0..10 {
            assert_eq!(s.judge(origin(0, 7, 0), RecordNumber(n)), Verdict::Take);
            s.bytes.record(RecordNumber(n), &[n as u8]).unwrap();
        }
        s
    }

    #[test]
    fn what_another_node_has_stored_is_not_delivered_again() {
        let mut s = ten();
        assert!(s.conflict(at(4)));
        let delivery = s.deliver(100, 100).unwrap();
        assert_eq!((delivery.from, delivery.to, delivery.run.first), (at(4), at(10), RecordNumber(4)));
    }

    #[test]
    fn what_is_here_beyond_a_gap_that_another_node_has_filled_stays() {
        let mut s = stream(0, 0);
        for n in [5, 6, 8] {
            assert_eq!(s.judge(origin(0, 7, 0), RecordNumber(n)), Verdict::Take);
            s.bytes.record(RecordNumber(n), &[n as u8]).unwrap();
        }
        assert!(s.conflict(at(6)));
        assert_eq!(s.deliver(100, 100).unwrap().run.bytes(), [6]);
        assert!(s.conflict(at(20_000)));
        assert!(s.deliver(100, 100).is_none());
        assert_eq!((s.bytes.next(), s.held()), (RecordNumber(20_000), 0));
    }

    #[test]
    fn a_batch_that_was_raced_in_its_middle_goes_on_from_there() {
        let mut s = ten();
        let raced = s.deliver(6, 100).unwrap();
        assert!(s.conflict(at(4)));
        assert!(s.deliver(100, 100).is_none(), "records 4 and 5 have not come back yet");
        let again = s.again(raced).unwrap();
        assert_eq!((again.from, again.to, again.run.bytes()), (at(4), at(6), &[4, 5][..]));
        s.stored(at(6));
        assert_eq!(s.deliver(100, 100).unwrap().run.bytes(), [6, 7, 8, 9]);
    }

    #[test]
    fn two_children_of_one_parent_are_settled_by_the_durable_cursor() {
        let mut s = stream(50, 7);
        assert_eq!(s.judge(origin(50, 8, 7), RecordNumber(50)), Verdict::Take);
        assert_eq!(s.judge(origin(50, 9, 7), RecordNumber(50)), Verdict::Wait);
        s.stored(Position { next: RecordNumber(51), lineage: Lineage(8) });
        assert_eq!(s.judge(origin(50, 9, 7), RecordNumber(51)), Verdict::Fenced);
    }
}
