mod admission;
mod storage;

use crate::pool::Pool;
use crate::run::{Cut, Run};
use crate::{Assembled, Limits, Refused, Taken};
use admission::Place;
use alloc::collections::VecDeque;
use stayfast_units::RecordNumber;

/// Batches are at least as long as this if there are records, so that runs stay few.
const SHORTEST_CUT: Cut = Cut { records: 64, bytes: 16 << 10 };
/// The bounds of batches until [`Reassembler::take`] says otherwise.
const FIRST_CUT: Cut = Cut { records: 4_096, bytes: 1 << 20 };
/// Puts the records of one stream in order.
///
/// Whole records, parts of records and holes may come in any order, repeatedly, and overlap; where
/// bytes overlap they are expected to be equal (the sender is authenticated, and both ends know the
/// record). Records come out in batches of consecutive complete ones.
///
/// What is in order is appended to the batch that comes out next, so the usual cost of a record is one
/// copy. What is not in order waits in buffers of its own, which are reused: once they have grown,
/// nothing is allocated as long as the batches come back ([`Reassembler::recycle`]).
///
/// ```
/// use stayfast_ranges::{Limits, Reassembler, Taken};
/// use stayfast_units::RecordNumber;
///
/// let limits = Limits { bytes: 1 << 20, gaps: 256, record: 1 << 16 };
/// let mut stream = Reassembler::new(RecordNumber(0), limits);
/// stream.record(RecordNumber(1), b"world")?;
/// stream.part(RecordNumber(0), 5, 2, b"llo")?;
/// assert!(stream.take(100, 1 << 16).is_none());
///
/// assert_eq!(stream.part(RecordNumber(0), 5, 0, b"hel")?, Taken::New(2));
/// assert_eq!(stream.next(), RecordNumber(2));
/// let batch = stream.take(100, 1 << 16).expect("both are complete");
/// assert_eq!((batch.bytes.as_slice(), batch.ends.as_slice()), (&b"helloworld"[..], &[5, 10][..]));
/// stream.recycle(batch);
/// # Ok::<(), stayfast_ranges::Refused>(())
/// ```
#[derive(Debug)]
pub struct Reassembler {
    limits: Limits,
    cut: Cut,
    /// The first number that has not been taken.
    base: u64,
    /// Ascending. The first `ready` follow each other from `base` without a gap.
    runs: VecDeque<Run>,
    ready: usize,
    /// Sums over the runs.
    gaps: usize,
    records: usize,
    held: usize,
    footprint: usize,
    pool: Pool,
}

impl Reassembler {
    /// A reassembler whose first record is `next`. Allocates nothing yet.
    pub fn new(next: RecordNumber, limits: Limits) -> Reassembler {
        Reassembler {
            limits,
            cut: FIRST_CUT,
            base: next.0,
            runs: VecDeque::new(),
            ready: 0,
            gaps: 0,
            records: 0,
            held: 0,
            footprint: 0,
            pool: Pool::default(),
        }
    }

    /// Takes a whole record.
    ///
    /// # Errors
    /// [`Refused`]; nothing has changed then.
    pub fn record(&mut self, n: RecordNumber, body: &[u8]) -> Result<Taken, Refused> {
        if self.append(n.0, body) {
            return Ok(Taken::New(body.len()));
        }
        let place = self.admit_record(n.0, body.len())?;
        let known = match place {
            Place::Known => return Ok(Taken::Known),
            Place::Begun(i) => self.forget_begun(i),
            Place::New(_) => 0,
        };
        self.put_whole(n.0, place, Some(body));
        Ok(Taken::New(body.len() - known))
    }

    /// Marks a number that has no body: its record was lost or has expired at the sender. Parts of it
    /// that are here are dropped.
    ///
    /// # Errors
    /// [`Refused`]; nothing has changed then.
    pub fn hole(&mut self, n: RecordNumber) -> Result<Taken, Refused> {
        let place = self.place(n.0)?;
        match place {
            Place::Known => return Ok(Taken::Known),
            Place::Begun(i) => _ = self.forget_begun(i),
            Place::New(i) => self.admit_new(0, self.touches(n.0, i, true, true))?,
        }
        self.put_whole(n.0, place, None);
        Ok(Taken::New(0))
    }

    /// Takes the bytes of record `n` from `offset` on; the whole record has `total` bytes.
    ///
    /// # Errors
    /// [`Refused`]; nothing has changed then.
    pub fn part(&mut self, n: RecordNumber, total: u32, offset: u32, bytes: &[u8]) -> Result<Taken, Refused> {
        if offset == 0 && bytes.len() == total as usize {
            return self.record(n, bytes);
        }
        match self.admit_part(n.0, total, offset, bytes.len())? {
            Place::Known => Ok(Taken::Known),
            Place::Begun(i) => Ok(self.write(i, offset, bytes)),
            Place::New(i) => {
                let have = self.pool.get_set(self.limits.gaps.saturating_add(1));
                let i = self.with_room(n.0, i, total as usize, true, |run| {
                    run.begin(total, have);
                    run.write(offset, bytes);
                });
                self.held += total as usize;
                self.records += 1;
                self.settle(i);
                Ok(Taken::New(bytes.len()))
            }
        }
    }

    /// Whether [`Reassembler::record`] would take a record of `len` bytes now.
    ///
    /// # Errors
    /// What `record` would refuse it for.
    pub fn check_record(&self, n: RecordNumber, len: usize) -> Result<(), Refused> {
        self.admit_record(n.0, len).map(drop)
    }

    /// Whether [`Reassembler::part`] would take a part of `len` bytes now.
    ///
    /// # Errors
    /// What `part` would refuse it for.
    pub fn check_part(&self, n: RecordNumber, total: u32, offset: u32, len: usize) -> Result<(), Refused> {
        if offset == 0 && len == total as usize {
            return self.check_record(n, len);
        }
        self.admit_part(n.0, total, offset, len).map(drop)
    }

    /// Whether so many more body bytes (whole totals), records and gaps fit together: for a caller that takes
    /// several arrivals all or none. An arrival, and a sequence of consecutive ones, opens one gap at most.
    ///
    /// # Errors
    /// [`Refused::Bytes`], [`Refused::Count`] or [`Refused::Gaps`].
    ///
    /// ```
    /// use stayfast_ranges::{Limits, Reassembler, Refused};
    /// use stayfast_units::RecordNumber;
    ///
    /// let stream = Reassembler::new(RecordNumber(0), Limits { bytes: 100, gaps: 1, record: 100 });
    /// assert_eq!(stream.check_room(100, 2, 1), Ok(()));
    /// assert_eq!(stream.check_room(101, 2, 1), Err(Refused::Bytes));
    /// ```
    pub fn check_room(&self, bytes: usize, records: usize, gaps: usize) -> Result<(), Refused> {
        if bytes > self.limits.bytes.saturating_sub(self.held) {
            Err(Refused::Bytes)
        } else if records > self.limits.max_records().saturating_sub(self.records) {
            Err(Refused::Count)
        } else if gaps > self.limits.gaps.saturating_sub(self.gaps) {
            Err(Refused::Gaps)
        } else {
            Ok(())
        }
    }

    /// The first number that is not complete: all below are, and may be told to the sender (HEARD).
    pub fn next(&self) -> RecordNumber {
        RecordNumber(self.ready.checked_sub(1).map_or(self.base, |last| self.runs[last].end()))
    }

    /// Body bytes in memory that have not been taken, where a record that has begun counts whole.
    pub fn held(&self) -> usize {
        self.held
    }

    /// How many gaps are open (see [`Limits::gaps`]).
    pub fn gaps(&self) -> usize {
        self.gaps
    }

    /// Memory of all buffers, used and spare, in bytes. However small the records are, and whatever was here before, it
    /// is at most 7 times [`Limits::bytes`] and a constant.
    pub fn footprint(&self) -> usize {
        self.footprint + self.pool.footprint()
    }

    /// The complete records that come next, at most so many and so many bytes, but at least one if there is one.
    ///
    /// Bodies are moved, not copied, as long as calls pass the same bounds: batches are cut as records arrive, at
    /// the bounds of the latest call (not below 64 records and 16 KiB). Only the beginning of a record that is
    /// still incomplete, less than 64 KiB, may have to move to another buffer.
    pub fn take(&mut self, max_records: usize, max_bytes: usize) -> Option<Assembled> {
        self.cut = Cut {
            records: max_records.max(SHORTEST_CUT.records),
            bytes: max_bytes.clamp(SHORTEST_CUT.bytes, i32::MAX as usize),
        };
        let front = self.runs.front().filter(|run| self.ready > 0 && !run.done.is_empty())?;
        let fit = front.done.ends.partition_point(|&end| end as usize <= max_bytes).min(max_records).max(1);
        let batch = if fit < front.done.len() { self.take_some(fit) } else { self.take_front()? };
        self.base = batch.end().0;
        self.records -= batch.len();
        self.held -= batch.start(batch.len());
        Some(batch)
    }

    /// Gives a batch back, so that its buffers are used again. Its contents do not matter.
    pub fn recycle(&mut self, batch: Assembled) {
        self.spare(batch);
    }

    /// Drops all records and parts from `n` on: the sender's stream has another continuation. What has been taken
    /// stays taken: [`Reassembler::next`] does not go below that.
    pub fn discard_from(&mut self, n: RecordNumber) {
        while self.runs.back().is_some_and(|run| run.first() >= n.0) {
            if let Some(run) = self.runs.pop_back() {
                self.footprint -= run.done.footprint();
                self.spare(run.done);
                run.begun.into_iter().for_each(|begun| self.pool.put_set(begun.have));
            }
        }
        if let Some(last) = self.runs.back_mut().filter(|run| run.limit() > n.0) {
            let ranges = last.truncate((n.0 - last.first()) as usize);
            ranges.into_iter().for_each(|set| self.pool.put_set(set));
        }
        self.ready = self.ready.min(self.runs.len());
        self.recount();
    }

    /// Forgets everything and begins anew at `next`.
    pub fn reset(&mut self, next: RecordNumber) {
        self.discard_from(RecordNumber::ZERO);
        self.base = next.0;
    }
}
