//! [`Reassembler`] beside a map of every byte.

use crate::{Assembled, Limits, Reassembler, Refused, Taken};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use arbitrary::Arbitrary;
use stayfast_units::RecordNumber;

/// One call. Record numbers are near the next one that is wanted; lengths follow from the number unless `odd` asks
/// for another; places within a record are in blocks of 1 or 2,048 B.
#[derive(Clone, Copy, Debug, Arbitrary)]
pub enum Op {
    /// `record`.
    Record {
        /// Distance modulo 12 from three numbers before the next one that is wanted.
        ahead: u8,
        /// Another length than usual if it is zero modulo 8.
        odd: u8,
    },
    /// `part`.
    Part {
        /// As in [`Op::Record`].
        ahead: u8,
        /// As in [`Op::Record`].
        odd: u8,
        /// Where it begins, modulo a little more than the whole length.
        offset: u8,
        /// How long it is, modulo a little more than the whole length.
        len: u8,
    },
    /// `hole`.
    Hole {
        /// As in [`Op::Record`].
        ahead: u8,
    },
    /// `take` and, if asked, `recycle`.
    Take {
        /// At most so many modulo 12; any number from 128 on.
        records: u8,
        /// At most so many times 16 B; any number from 128 on.
        bytes: u8,
        /// Whether the buffers come back.
        recycle: bool,
    },
    /// `discard_from`.
    Discard {
        /// Distance from three numbers before the next one that is wanted: most often beyond all that is here.
        ahead: u8,
    },
    /// `reset`, if `rarely` is zero modulo 16.
    Reset {
        /// The number to begin with.
        next: u8,
        /// See above.
        rarely: u8,
    },
}

const TIGHT: Limits = Limits { bytes: 300, gaps: 3, record: 35 };
const ROOMY: Limits = Limits { bytes: 300_000, gaps: 1_000, record: 1 << 20 };

/// Runs the operations within tight and within roomy limits.
///
/// # Panics
/// If the reassembler and the model differ, or if a limit is passed.
pub fn check(ops: &[Op]) {
    for limits in [TIGHT, ROOMY] {
        let mut pair = Pair {
            real: Reassembler::new(RecordNumber::ZERO, limits),
            model: Model { limits, base: 0, records: BTreeMap::new() },
        };
        for &op in ops {
            pair.apply(op);
            pair.compare();
        }
        while pair.take(usize::MAX, usize::MAX, true) {
            pair.compare();
        }
    }
}

/// Bytes of the unit in which the lengths and offsets of record `n` are counted. Some records are
/// long enough to be treated as long ones.
fn block(n: u64) -> usize {
    if n % 8 == 7 { 2_048 } else { 1 }
}

/// The usual length of record `n`, in blocks.
fn blocks(n: u64) -> usize {
    (n as usize * 7) % 37
}

fn body(n: u64, from: usize, len: usize) -> Vec<u8> {
    (from..from + len).map(|i| (i as u64 ^ (i as u64 >> 8) ^ n.wrapping_mul(101)) as u8).collect()
}

/// What was kept for reuse; growth to twice the bytes, the ends and the holes that are here; the smallest allocations.
fn most_footprint(limits: Limits) -> usize {
    let kept = 2 * limits.bytes + (64 << 10);
    let grown = 2 * limits.bytes + 2 * (4 + 8) * limits.max_records();
    kept + grown + 2 * (limits.gaps + 64) * 64
}

/// What is here of one record.
enum Known {
    Hole,
    /// For each block whether it is here.
    Body(Vec<bool>),
}

impl Known {
    fn is_complete(&self) -> bool {
        match self {
            Known::Hole => true,
            Known::Body(blocks) => blocks.iter().all(|&here| here),
        }
    }

    fn len(&self) -> usize {
        match self {
            Known::Hole => 0,
            Known::Body(blocks) => blocks.len(),
        }
    }
}

struct Model {
    limits: Limits,
    base: u64,
    records: BTreeMap<u64, Known>,
}

impl Model {
    fn next(&self) -> u64 {
        (self.base..).find(|n| !self.is_complete(*n)).unwrap_or(u64::MAX)
    }

    fn is_complete(&self, n: u64) -> bool {
        n < self.base || self.records.get(&n).is_some_and(Known::is_complete)
    }

    fn held(&self) -> usize {
        self.records.iter().map(|(&n, known)| known.len() * block(n)).sum()
    }

    /// Stretches of what is missing, below the highest that is here.
    fn gaps(&self) -> usize {
        let Some((&last, _)) = self.records.last_key_value() else { return 0 };
        let mut here = Vec::new();
        for n in self.base..=last {
            match self.records.get(&n) {
                Some(Known::Body(blocks)) if !blocks.is_empty() => here.extend(blocks),
                known => here.push(known.is_some()),
            }
        }
        let end = here.iter().rposition(|&h| h).map_or(0, |highest| highest + 1);
        (0..end).filter(|&i| !here[i] && here[i + 1]).count()
    }

    /// Takes blocks `from..from + len` of `total`. `None` stands for a hole.
    fn take(&mut self, n: u64, part: Option<(usize, usize, usize)>) -> Result<Taken, Refused> {
        let (total, from, len) = part.unwrap_or_default();
        if from + len > total || (len == 0 && total > 0) {
            return Err(Refused::Conflict);
        }
        if self.is_complete(n) {
            return Ok(Taken::Known);
        }
        let old = self.records.remove(&n);
        let result = self.judge(n, part, old.as_ref());
        match (result, old) {
            (Err(_), Some(old)) => _ = self.records.insert(n, old),
            (Err(_), None) => _ = self.records.remove(&n),
            _ => {}
        }
        result
    }

    /// Record `n` is not in the map; puts it there in its new state, which stays if the answer is not an error.
    fn judge(&mut self, n: u64, part: Option<(usize, usize, usize)>, old: Option<&Known>) -> Result<Taken, Refused> {
        let Some((total, from, len)) = part else {
            let room = old.is_some() || self.records.len() < self.limits.max_records();
            self.records.insert(n, Known::Hole);
            return self.within_gaps(room).map(|()| Taken::New(0));
        };
        let mut blocks = match old {
            Some(Known::Body(blocks)) if blocks.len() != total => return Err(Refused::Conflict),
            Some(Known::Body(blocks)) => blocks.clone(),
            _ if total * block(n) > self.limits.record => return Err(Refused::Record),
            _ if self.held() + total * block(n) > self.limits.bytes => return Err(Refused::Bytes),
            _ => alloc::vec![false; total],
        };
        let new = blocks[from..from + len].iter().filter(|&&here| !here).count();
        blocks[from..from + len].fill(true);
        let room = old.is_some() || self.records.len() < self.limits.max_records();
        self.records.insert(n, Known::Body(blocks));
        self.within_gaps(room)?;
        Ok(if new == 0 && len > 0 { Taken::Known } else { Taken::New(new * block(n)) })
    }

    fn within_gaps(&self, room: bool) -> Result<(), Refused> {
        match (room, self.gaps() <= self.limits.gaps) {
            (false, _) => Err(Refused::Count),
            (_, false) => Err(Refused::Gaps),
            _ => Ok(()),
        }
    }
}

struct Pair {
    real: Reassembler,
    model: Model,
}

impl Pair {
    fn number(&self, ahead: u8) -> u64 {
        (self.model.next() + u64::from(ahead)).saturating_sub(3)
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Record { ahead, odd } => {
                let n = self.number(ahead % 12);
                let total = blocks(n) + usize::from(odd.is_multiple_of(8));
                let bytes = body(n, 0, total * block(n));
                let expected = self.model.take(n, Some((total, 0, total)));
                assert_eq!(self.real.check_record(RecordNumber(n), bytes.len()), expected.map(drop));
                assert_eq!(self.real.record(RecordNumber(n), &bytes), expected);
            }
            Op::Part { ahead, odd, offset, len } => self.part(self.number(ahead % 12), odd, offset, len),
            Op::Hole { ahead } => {
                let n = self.number(ahead % 12);
                assert_eq!(self.real.hole(RecordNumber(n)), self.model.take(n, None));
            }
            Op::Take { records, bytes, recycle } => {
                let nothing = self.model.next() == self.model.base;
                let records = if records < 128 { usize::from(records % 12) } else { usize::MAX };
                let bytes = if bytes < 128 { usize::from(bytes) * 16 } else { usize::MAX };
                assert_eq!(self.take(records, bytes, recycle), !nothing);
            }
            Op::Discard { ahead } => {
                let n = self.number(ahead);
                self.real.discard_from(RecordNumber(n));
                self.model.records.retain(|&m, _| m < n);
            }
            Op::Reset { rarely, .. } if rarely % 16 > 0 => {}
            Op::Reset { next, .. } => {
                self.real.reset(RecordNumber(u64::from(next)));
                self.model.base = u64::from(next);
                self.model.records.clear();
            }
        }
    }

    fn part(&mut self, n: u64, odd: u8, offset: u8, len: u8) {
        let total = blocks(n) + usize::from(odd.is_multiple_of(8));
        let (from, len) = (usize::from(offset) % (total + 2), usize::from(len) % (total + 2));
        let scale = block(n);
        let bytes = body(n, from * scale, len * scale);
        let expected = self.model.take(n, Some((total, from, len)));
        let (total, offset) = ((total * scale) as u32, (from * scale) as u32);
        assert_eq!(self.real.check_part(RecordNumber(n), total, offset, bytes.len()), expected.map(drop));
        assert_eq!(self.real.part(RecordNumber(n), total, offset, &bytes), expected);
    }

    /// Whether anything was ready.
    fn take(&mut self, records: usize, bytes: usize, recycle: bool) -> bool {
        let Some(batch) = self.real.take(records, bytes) else { return false };
        assert_eq!(batch.first.0, self.model.base);
        assert!(!batch.is_empty() && (batch.len() == 1 || (batch.len() <= records && batch.bytes.len() <= bytes)));
        self.verify(&batch);
        self.model.base = batch.end().0;
        if recycle {
            self.real.recycle(batch);
        }
        true
    }

    /// The batch has exactly what the model has, which forgets it.
    fn verify(&mut self, batch: &Assembled) {
        let mut holes = Vec::new();
        for i in 0..batch.len() {
            let n = batch.first.0 + i as u64;
            let known = self.model.records.remove(&n).expect("nothing comes that was not sent");
            assert!(known.is_complete());
            assert_eq!(batch.body(i), Some(&body(n, 0, known.len() * block(n))[..]));
            if matches!(known, Known::Hole) {
                holes.push(RecordNumber(n));
            }
        }
        assert_eq!(batch.holes, holes);
        assert_eq!(batch.ends.last().copied(), Some(batch.bytes.len() as u32));
    }

    fn compare(&self) {
        let (real, model) = (&self.real, &self.model);
        assert_eq!(real.next().0, model.next());
        assert_eq!(real.held(), model.held());
        assert_eq!(real.gaps(), model.gaps());
        assert!(model.held() <= model.limits.bytes && model.gaps() <= model.limits.gaps);
        assert!(real.footprint() <= most_footprint(model.limits));
        let room = model.limits.bytes - model.held();
        assert_eq!(real.check_room(room, 0, 0), Ok(()));
        assert_eq!(real.check_room(room + 1, 0, 0), Err(Refused::Bytes));
    }
}

#[test]
fn any_operations() {
    super::check_many(check);
}
