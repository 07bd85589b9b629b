//! One incoming stream: where the application stands, which records are in memory, whose they are.

use alloc::vec::Vec;
use core::time::Duration;
use stayfast_ranges::{Assembled, Limits, Reassembler};
use stayfast_store::{CursorKey, Delivery, Hole, Origin, Position, Run};
use stayfast_units::{Lineage, RecordNumber, StoreId, Time};

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
/// How long a history that has stopped may keep another one waiting.
const PATIENCE: Duration = Duration::from_secs(10);
/// Lineages in memory; of more the records wait until the application has stored some.
const MAX_SEGMENTS: usize = 1024;

/// What the application does with the batch it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hand {
    /// It has to be given to the application (again).
    Waits,
    /// It is with the application.
    Given,
    /// Whether it was stored is not known, and the store is left in peace for a while.
    Unknown,
    /// The same, and the cursor has to be read.
    Unread,
    /// The cursor is being read.
    Reading,
}

/// A batch on its way into the store. Its bodies stay here until they are known to be stored: they were acknowledged.
#[derive(Debug)]
struct Batch {
    run: Run,
    hand: Hand,
}

#[derive(Debug)]
pub(crate) struct Incoming {
    pub key: CursorKey,
    /// The durable cursor.
    pub cursor: Position,
    pub bytes: Reassembler,
    batch: Option<Batch>,
    /// The application refuses this record for good, so the stream stands still.
    pub rejected: Option<RecordNumber>,
    /// The number after the last that left `bytes`.
    taken: RecordNumber,
    /// The number after the highest of which anything was taken.
    reach: RecordNumber,
    /// When anything was taken last.
    fresh: Time,
    /// Where tombstones stand among the holes that are in memory.
    expired: Vec<RecordNumber>,
    /// Lineages in memory: the first is the cursor's.
    segments: Vec<Segment>,
}

impl Incoming {
    pub(crate) fn new(key: CursorKey, cursor: Position, limits: Limits) -> Incoming {
        let segments = alloc::vec![Segment { first: RecordNumber::ZERO, lineage: cursor.lineage }];
        let (bytes, taken) = (Reassembler::new(cursor.next, limits), cursor.next);
        let (batch, rejected, expired) = (None, None, Vec::new());
        Incoming { key, cursor, bytes, batch, rejected, taken, reach: taken, fresh: Time::ZERO, expired, segments }
    }

    /// Is it this stream of this store?
    pub(crate) fn is(&self, store: StoreId, name: &str) -> bool {
        self.key.store == store && &*self.key.stream == name
    }

    /// Nothing of it is in memory but what the store has as well.
    pub(crate) fn is_idle(&self) -> bool {
        self.batch.is_none() && self.rejected.is_none() && self.reach == self.cursor.next && self.bytes.held() == 0
    }

    /// May record `n` of the lineage that began at `origin` be taken? The record at the cursor is taken if its
    /// lineage is the cursor's or opens there with the cursor's as parent; later ones if they chain to it.
    pub(crate) fn judge(&mut self, now: Time, origin: Origin, n: RecordNumber) -> Verdict {
        if n < self.cursor.next {
            return Verdict::Below;
        }
        if n < origin.first {
            // Its origin contradicts it.
            return Verdict::Wait;
        }
        let known = self.segments.iter().position(|segment| segment.lineage == origin.lineage);
        // Where what is in memory belongs to another history, if it does: not to be read under this one's name.
        let fork = match known {
            Some(i) => self.segments.get(i + 1).map(|successor| successor.first).filter(|first| n >= *first),
            None if self.chains(origin) => Some(origin.first).filter(|first| *first < self.reach),
            None if origin.first <= self.cursor.next => return Verdict::Fenced,
            None => return Verdict::Wait,
        };
        if fork.is_some_and(|first| !self.displace(now, first)) {
            return Verdict::Wait;
        }
        if known.is_none() {
            if self.segments.len() >= MAX_SEGMENTS {
                return Verdict::Wait;
            }
            self.segments.push(Segment { first: origin.first, lineage: origin.lineage });
            self.reach = self.reach.max(origin.first.next());
        }
        Verdict::Take
    }

    /// Does a lineage that begins there go on from what is stored and in memory before it?
    fn chains(&self, origin: Origin) -> bool {
        origin.first >= self.cursor.next && self.lineage_below(origin.first) == origin.parent
    }

    /// Two histories part at `first`, and neither is durable: the one that is complete there first will be. But one
    /// that has stopped before that must not be in the way for ever.
    fn displace(&mut self, now: Time, first: RecordNumber) -> bool {
        if self.bytes.next() > first || now - self.fresh < PATIENCE {
            return false;
        }
        self.bytes.discard_from(first);
        let kept = self.segments.partition_point(|segment| segment.first < first).max(1);
        self.segments.truncate(kept);
        self.reach = first;
        true
    }

    /// Record `n`, or some of it, is in memory now.
    pub(crate) fn took(&mut self, now: Time, n: RecordNumber) {
        self.reach = self.reach.max(n.next());
        self.fresh = now;
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

    /// The next batch for the application, if it has none in hand.
    pub(crate) fn deliver(&mut self, max_records: usize, max_bytes: usize) -> Option<Delivery> {
        if self.batch.is_none() {
            let run = self.take(max_records, max_bytes)?;
            self.batch = Some(Batch { run, hand: Hand::Waits });
        }
        let batch = self.batch.as_mut().filter(|batch| batch.hand == Hand::Waits)?;
        batch.hand = Hand::Given;
        let run = batch.run.clone();
        let to = Position { next: run.end(), lineage: self.lineage_below(run.end()) };
        Some(Delivery { key: self.key.clone(), from: self.cursor, to, run })
    }

    fn take(&mut self, max_records: usize, max_bytes: usize) -> Option<Run> {
        let taken = self.bytes.take(max_records, max_bytes)?;
        self.taken = taken.end();
        let expired = &self.expired;
        let kind = |n: &RecordNumber| if expired.binary_search(n).is_ok() { Hole::Expired } else { Hole::Gap };
        let holes = taken.holes.iter().map(|n| (*n, kind(n))).collect();
        Run::from_parts(taken.first, taken.ends, taken.bytes, holes).ok()
    }

    /// The application has the batch: nothing else may move the cursor here.
    pub(crate) fn is_given(&self) -> bool {
        self.batch.as_ref().is_some_and(|batch| batch.hand != Hand::Waits)
    }

    /// The durable cursor stands at `to`, which continues what it was before. Of a batch that reaches beyond, the
    /// rest is still to be delivered.
    pub(crate) fn stored(&mut self, to: Position) {
        if to.next >= self.cursor.next {
            self.cursor = to;
            self.expired.retain(|n| *n >= to.next);
            while self.segments.get(1).is_some_and(|second| second.first < to.next) {
                self.segments.remove(0);
            }
        }
        if let Some(batch) = self.batch.take() {
            self.batch = self.rest(batch.run).map(|run| Batch { run, hand: Hand::Waits });
        }
        self.skip_to(self.cursor.next);
    }

    /// What of `run` lies beyond the cursor. The buffers of one that lies below are used again, if nobody else has them.
    fn rest(&mut self, run: Run) -> Option<Run> {
        let next = self.cursor.next;
        if run.end() <= next {
            let (first, ends, bytes, _) = run.into_parts()?;
            self.bytes.recycle(Assembled { first, ends, bytes, holes: Vec::new() });
            return None;
        }
        if run.first >= next {
            return Some(run);
        }
        let mut rest = Run::new(next);
        let left = run.iter().filter(|item| item.number() >= next);
        left.map(|item| rest.push_item(item)).all(|pushed| pushed.is_ok()).then_some(rest)
    }

    /// Others have stored everything below `n`. What is here beyond was acknowledged, so it stays.
    fn skip_to(&mut self, n: RecordNumber) {
        if n >= self.reach && n > self.taken {
            return self.reset(n);
        }
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
        self.reach = n;
    }

    /// The cursor stands at `at`: another node was first, or what became of a batch was not known. True if what is in
    /// memory still continues it.
    pub(crate) fn moved(&mut self, at: Position) -> bool {
        let agrees = at.next >= self.cursor.next && self.lineage_below(at.next) == at.lineage;
        if !agrees {
            self.segments = alloc::vec![Segment { first: RecordNumber::ZERO, lineage: at.lineage }];
            self.cursor = at;
            self.batch = None;
            self.reset(at.next);
        }
        self.stored(at);
        agrees
    }

    /// The application gave the batch back: it gets it again.
    pub(crate) fn returned(&mut self) {
        if let Some(batch) = &mut self.batch {
            batch.hand = Hand::Waits;
        }
    }

    /// Nobody knows what became of the batch. True if there is one.
    pub(crate) fn failed(&mut self) -> bool {
        let Some(batch) = self.batch.as_mut().filter(|batch| batch.hand != Hand::Waits) else { return false };
        batch.hand = Hand::Unknown;
        true
    }

    /// The pause after a failure is over.
    pub(crate) fn retry(&mut self) {
        if let Some(batch) = self.batch.as_mut().filter(|batch| batch.hand == Hand::Unknown) {
            batch.hand = Hand::Unread;
        }
    }

    /// Must the cursor be read to find out what became of the batch? It is being read then.
    pub(crate) fn must_read(&mut self) -> bool {
        let unread = self.batch.as_mut().filter(|batch| batch.hand == Hand::Unread);
        unread.map(|batch| batch.hand = Hand::Reading).is_some()
    }

    pub(crate) fn is_reading(&self) -> bool {
        self.batch.as_ref().is_some_and(|batch| batch.hand == Hand::Reading)
    }

    /// Is record `n` begun with other than all of its `total` bytes here?
    pub(crate) fn has_begun(&self, n: RecordNumber, total: usize) -> bool {
        // Another total would contradict it, and only it.
        self.bytes.check_record(n, total.saturating_add(1)) == Err(stayfast_ranges::Refused::Conflict)
    }

    /// Body bytes this stream holds in memory, begun records with their whole length.
    pub(crate) fn held(&self) -> usize {
        self.bytes.held() + self.batch.as_ref().map_or(0, |batch| batch.run.byte_len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Incoming {
        fn at_once(&mut self, origin: Origin, n: RecordNumber) -> Verdict {
            self.judge(Time::ZERO, origin, n)
        }
    }

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
        assert_eq!(stream(0, 0).at_once(origin(0, 7, 0), RecordNumber(0)), Verdict::Take);
    }

    #[test]
    fn a_lineage_continues_and_a_child_follows() {
        let mut s = stream(10, 7);
        assert_eq!(s.at_once(origin(0, 7, 0), RecordNumber(9)), Verdict::Below);
        assert_eq!(s.at_once(origin(0, 7, 0), RecordNumber(10)), Verdict::Take);
        assert_eq!(s.at_once(origin(12, 8, 7), RecordNumber(12)), Verdict::Take);
        assert_eq!(s.at_once(origin(14, 9, 8), RecordNumber(14)), Verdict::Take);
        assert_eq!(s.at_once(origin(0, 7, 0), RecordNumber(12)), Verdict::Wait, "its successor has opened there");
    }

    #[test]
    fn a_grandchild_waits_for_its_parent() {
        let mut s = stream(10, 7);
        assert_eq!(s.at_once(origin(14, 9, 8), RecordNumber(14)), Verdict::Wait);
        assert_eq!(s.at_once(origin(12, 8, 7), RecordNumber(12)), Verdict::Take);
        assert_eq!(s.at_once(origin(14, 9, 8), RecordNumber(14)), Verdict::Take);
    }

    #[test]
    fn a_restored_copy_is_fenced() {
        let mut s = stream(50, 7);
        assert_eq!(s.at_once(origin(40, 8, 6), RecordNumber(50)), Verdict::Fenced);
        assert_eq!(s.at_once(origin(50, 8, 6), RecordNumber(50)), Verdict::Fenced, "right number, wrong parent");
    }

    fn at(next: u64) -> Position {
        Position { next: RecordNumber(next), lineage: Lineage(7) }
    }

    /// Records 0 to 9 of lineage 7 are here; their bodies are their numbers.
    fn ten() -> Incoming {
        let mut s = stream(0, 0);
        for n in 0..10 {
            assert_eq!(s.at_once(origin(0, 7, 0), RecordNumber(n)), Verdict::Take);
            s.bytes.record(RecordNumber(n), &[n as u8]).unwrap();
            s.took(Time::ZERO, RecordNumber(n));
        }
        s
    }

    #[test]
    fn what_another_node_has_stored_is_not_delivered_again() {
        let mut s = ten();
        assert!(s.moved(at(4)));
        let delivery = s.deliver(100, 100).unwrap();
        assert_eq!((delivery.from, delivery.to, delivery.run.first), (at(4), at(10), RecordNumber(4)));
    }

    #[test]
    fn what_is_here_beyond_a_gap_that_another_node_has_filled_stays() {
        let mut s = stream(0, 0);
        for n in [5, 6, 8] {
            assert_eq!(s.at_once(origin(0, 7, 0), RecordNumber(n)), Verdict::Take);
            s.bytes.record(RecordNumber(n), &[n as u8]).unwrap();
            s.took(Time::ZERO, RecordNumber(n));
        }
        assert!(s.moved(at(6)));
        assert_eq!(s.deliver(100, 100).unwrap().run.bytes(), [6]);
        assert!(s.moved(at(20_000)));
        assert!(s.deliver(100, 100).is_none());
        assert_eq!((s.bytes.next(), s.held()), (RecordNumber(20_000), 0));
    }

    #[test]
    fn a_batch_that_was_raced_in_its_middle_goes_on_from_there() {
        let mut s = ten();
        assert_eq!(s.deliver(6, 100).unwrap().to, at(6));
        assert!(s.deliver(6, 100).is_none(), "one at a time");
        assert!(s.moved(at(4)));
        let again = s.deliver(100, 100).unwrap();
        assert_eq!((again.from, again.to, again.run.bytes()), (at(4), at(6), &[4, 5][..]));
        s.stored(at(6));
        assert_eq!(s.deliver(100, 100).unwrap().run.bytes(), [6, 7, 8, 9]);
    }

    #[test]
    fn a_batch_of_unknown_outcome_is_settled_by_the_cursor() {
        for stored in [0, 3, 6, 9] {
            let mut s = ten();
            s.deliver(6, 100).unwrap();
            assert!(s.failed() && s.deliver(6, 100).is_none() && !s.must_read(), "a pause first");
            s.retry();
            assert!(s.must_read() && !s.must_read() && s.is_reading());
            let position = if stored == 0 { Position::default() } else { at(stored) };
            assert!(s.moved(position));
            let next = s.deliver(100, 100).unwrap();
            assert_eq!((next.from, next.run.first), (position, RecordNumber(stored)));
            assert_eq!(usize::from(next.run.bytes()[0]), stored as usize);
        }
    }

    #[test]
    fn a_batch_given_back_is_given_again() {
        let mut s = ten();
        let first = s.deliver(6, 100).unwrap();
        s.returned();
        assert_eq!(s.deliver(100, 100), Some(first));
        assert_eq!(s.held(), 10, "the copy of the application is not ours");
    }

    #[test]
    fn a_late_word_about_an_old_batch_changes_nothing() {
        let mut s = ten();
        s.deliver(6, 100).unwrap();
        s.stored(at(6));
        s.stored(at(4));
        assert_eq!((s.cursor, s.deliver(100, 100).unwrap().run.first), (at(6), RecordNumber(6)));
    }

    #[test]
    fn a_history_that_stopped_makes_way_after_a_while() {
        let mut s = stream(10, 7);
        assert_eq!(s.at_once(origin(10, 8, 7), RecordNumber(11)), Verdict::Take);
        s.bytes.record(RecordNumber(11), b"of 8").unwrap();
        s.took(Time::ZERO, RecordNumber(11));
        let later = Time::ZERO + PATIENCE;
        assert_eq!(s.at_once(origin(10, 9, 7), RecordNumber(10)), Verdict::Wait);
        assert_eq!(s.judge(later, origin(10, 9, 7), RecordNumber(10)), Verdict::Take);
        assert_eq!(s.held(), 0);
        s.took(later, RecordNumber(10));
        assert_eq!(s.judge(later, origin(10, 8, 7), RecordNumber(10)), Verdict::Wait, "now the other one waits");
    }

    #[test]
    fn a_parent_makes_way_and_comes_back_likewise() {
        let (mut s, later) = (stream(10, 7), Time::ZERO + PATIENCE);
        assert_eq!(s.at_once(origin(10, 8, 7), RecordNumber(10)), Verdict::Take);
        assert_eq!(s.at_once(origin(0, 7, 0), RecordNumber(10)), Verdict::Wait);
        assert_eq!(s.judge(later, origin(0, 7, 0), RecordNumber(10)), Verdict::Take);
        assert_eq!(s.judge(later, origin(10, 8, 7), RecordNumber(10)), Verdict::Take, "nothing of 7 was taken");
    }

    #[test]
    fn what_is_complete_does_not_make_way() {
        let mut s = stream(10, 7);
        assert_eq!(s.at_once(origin(10, 8, 7), RecordNumber(10)), Verdict::Take);
        s.bytes.record(RecordNumber(10), b"of 8").unwrap();
        s.took(Time::ZERO, RecordNumber(10));
        assert_eq!(s.judge(Time::ZERO + 10 * PATIENCE, origin(10, 9, 7), RecordNumber(10)), Verdict::Wait);
    }

    #[test]
    fn a_record_before_its_origin_is_not_taken() {
        let mut s = stream(10, 7);
        assert_eq!(s.at_once(origin(12, 8, 7), RecordNumber(11)), Verdict::Wait);
    }

    #[test]
    fn lineages_in_memory_are_bounded() {
        let mut s = stream(0, 1);
        for i in 0..2 * MAX_SEGMENTS as u64 {
            let verdict = s.at_once(origin(i, i + 2, i + 1), RecordNumber(i));
            assert_eq!(verdict == Verdict::Take, i + 1 < MAX_SEGMENTS as u64, "{i}");
        }
    }

    #[test]
    fn a_child_does_not_open_over_what_its_parent_has_in_memory() {
        let mut s = stream(10, 7);
        assert_eq!(s.at_once(origin(0, 7, 0), RecordNumber(14)), Verdict::Take);
        s.took(Time::ZERO, RecordNumber(14));
        assert_eq!(s.at_once(origin(12, 8, 7), RecordNumber(12)), Verdict::Wait, "a clone of an older state");
        assert_eq!(s.at_once(origin(15, 8, 7), RecordNumber(15)), Verdict::Take);
    }

    #[test]
    fn two_children_of_one_parent_are_settled_by_the_durable_cursor() {
        let mut s = stream(50, 7);
        assert_eq!(s.at_once(origin(50, 8, 7), RecordNumber(50)), Verdict::Take);
        assert_eq!(s.at_once(origin(50, 9, 7), RecordNumber(50)), Verdict::Wait);
        s.stored(Position { next: RecordNumber(51), lineage: Lineage(8) });
        assert_eq!(s.at_once(origin(50, 9, 7), RecordNumber(51)), Verdict::Fenced);
    }
}
