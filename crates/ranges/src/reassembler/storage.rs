//! The runs, and the sums over them.

use super::Reassembler;
use super::admission::Place;
use crate::run::Run;
use crate::{Assembled, Taken};
use stayfast_units::RecordNumber;

/// Spare buffers that are kept beside one for every gap.
const SPARE: usize = 64;
/// Memory for buffers, used and spare, that is always kept, beside twice `Limits::bytes`.
const SPARE_BYTES: usize = 64 << 10;

impl Reassembler {
    /// The usual case, without a search: a record that follows what is ready, while nothing waits behind. Whether it
    /// was that case and the record was taken.
    pub(super) fn append(&mut self, n: u64, body: &[u8]) -> bool {
        let fits = body.len() <= self.limits.max_body() && self.check_room(body.len(), 1, 0).is_ok();
        if !fits || n == u64::MAX || self.ready < self.runs.len() {
            return false;
        }
        let Some(last) = self.runs.back_mut() else { return false };
        if last.end() != n || !last.has_room(body.len(), false, self.cut) {
            return false;
        }
        let before = last.done.footprint();
        last.push(Some(body));
        self.footprint += last.done.footprint() - before;
        self.held += body.len();
        self.records += 1;
        true
    }

    /// Drops the bytes of the record that run `i` has begun; how many there were.
    pub(super) fn forget_begun(&mut self, i: usize) -> usize {
        let Some(begun) = self.change(i, Run::drop_begun) else { return 0 };
        self.held -= begun.total as usize;
        self.records -= 1;
        let known = begun.have.count_in(0..=u64::from(begun.total)) as usize;
        self.pool.put_set(begun.have);
        known
    }

    pub(super) fn put_whole(&mut self, n: u64, place: Place, body: Option<&[u8]>) {
        let len = body.map_or(0, <[u8]>::len);
        self.held += len;
        self.records += 1;
        let i = match place {
            Place::Known => return,
            Place::Begun(i) => {
                self.change(i, |run| run.push(body));
                i
            }
            Place::New(i) => self.with_room(n, i, len, false, |run| run.push(body)),
        };
        self.settle(i);
    }

    /// Writes a part of the record that run `i` has begun.
    pub(super) fn write(&mut self, i: usize, offset: u32, bytes: &[u8]) -> Taken {
        let (new, finished) = self.change(i, |run| run.write(offset, bytes));
        if let Some(ranges) = finished {
            self.pool.put_set(ranges);
            self.settle(i);
        }
        if new == 0 { Taken::Known } else { Taken::New(new) }
    }

    /// Lets `f` append record `n` to the run before index `i` if it may, to a new run there if not; its index.
    pub(super) fn with_room(
        &mut self,
        n: u64,
        i: usize,
        len: usize,
        in_parts: bool,
        f: impl FnOnce(&mut Run),
    ) -> usize {
        let before = i.checked_sub(1).map(|before| &self.runs[before]);
        if before.is_some_and(|run| run.end() == n && run.has_room(len, in_parts, self.cut)) {
            self.change(i - 1, f);
            return i - 1;
        }
        let mut run = Run::new(self.pool.get(RecordNumber(n), i == self.ready));
        f(&mut run);
        self.insert(i, run);
        i
    }

    fn insert(&mut self, i: usize, run: Run) {
        let before = self.gaps_at(i);
        self.footprint += run.done.footprint();
        self.runs.insert(i, run);
        self.gaps = self.gaps + self.gaps_at(i) + self.gaps_at(i + 1) - before;
    }

    /// Lets `f` change run `i` and keeps the sums true.
    fn change<T>(&mut self, i: usize, f: impl FnOnce(&mut Run) -> T) -> T {
        let gaps = self.gaps_at(i) + self.gaps_at(i + 1);
        let footprint = self.runs[i].done.footprint();
        let result = f(&mut self.runs[i]);
        self.gaps = self.gaps + self.gaps_at(i) + self.gaps_at(i + 1) - gaps;
        self.footprint = self.footprint + self.runs[i].done.footprint() - footprint;
        result
    }

    /// Gaps before and in run `i`; none beyond the last run.
    fn gaps_at(&self, i: usize) -> usize {
        let Some(run) = self.runs.get(i) else { return 0 };
        let joined = run.starts_here() && self.reaches(i, run.first());
        usize::from(!joined) + run.gaps()
    }

    /// After a change at run `i`: joins what follows it, and finds how far the stream is complete.
    pub(super) fn settle(&mut self, i: usize) {
        self.join(i);
        while self.runs.get(self.ready).is_some_and(|run| run.first() == self.next().0) {
            self.ready += 1;
        }
    }

    /// Appends the runs that follow run `i` directly, as long as they are short.
    fn join(&mut self, i: usize) {
        while self.runs.get(i + 1).is_some_and(|next| self.runs[i].should_absorb(next, self.cut)) {
            let Some(next) = self.runs.remove(i + 1) else { return };
            // What touches has no gap between, so the gaps stay as many.
            self.footprint -= next.done.footprint() + self.runs[i].done.footprint();
            let spare = self.runs[i].absorb(next);
            self.footprint += self.runs[i].done.footprint();
            self.spare(spare);
        }
    }

    /// Keeps a buffer for later, unless there is enough.
    pub(super) fn spare(&mut self, buffer: Assembled) {
        // Contents make buffers grow to twice their size at most. This bounds what grew earlier, for other contents.
        let most = self.limits.bytes.saturating_mul(2).saturating_add(SPARE_BYTES);
        let few = self.pool.len() < self.limits.gaps.saturating_add(SPARE);
        if few && buffer.footprint() <= most.saturating_sub(self.footprint()) {
            self.pool.put(buffer);
        }
    }

    /// Takes all complete records of the first run.
    pub(super) fn take_front(&mut self) -> Option<Assembled> {
        let mut front = self.runs.pop_front()?;
        self.ready -= 1;
        self.footprint -= front.done.footprint();
        if front.begun.is_some() {
            let mut rest = Run::new(self.pool.get(front.done.first, true));
            front.split_begun(&mut rest);
            self.footprint += rest.done.footprint();
            self.runs.push_front(rest);
            self.ready += 1;
        }
        Some(front.done)
    }

    /// Takes the first `n` complete records of the first run, by copy.
    pub(super) fn take_some(&mut self, n: usize) -> Assembled {
        let mut batch = self.pool.get(RecordNumber::ZERO, false);
        self.runs[0].split_front(n, &mut batch);
        batch
    }

    pub(super) fn recount(&mut self) {
        self.gaps = (0..self.runs.len()).map(|i| self.gaps_at(i)).sum();
        self.records = self.runs.iter().map(Run::records).sum();
        self.held = self.runs.iter().map(Run::reserved_bytes).sum();
        self.footprint = self.runs.iter().map(|run| run.done.footprint()).sum();
    }
}
