//! What may come in, found out without a change.

use super::Reassembler;
use crate::Refused;

/// Where a record number belongs.
#[derive(Clone, Copy)]
pub(super) enum Place {
    /// It is complete, perhaps even taken.
    Known,
    /// It has begun, in this run.
    Begun(usize),
    /// It follows the last record of the run before this index, or that run does not reach it.
    New(usize),
}

impl Reassembler {
    pub(super) fn place(&self, n: u64) -> Result<Place, Refused> {
        if n == u64::MAX {
            return Err(Refused::Conflict);
        }
        if n < self.next().0 {
            return Ok(Place::Known);
        }
        let after = match self.runs.back() {
            Some(last) if last.first() <= n => self.runs.len(),
            _ => self.runs.partition_point(|run| run.first() <= n),
        };
        let Some(run) = after.checked_sub(1).map(|i| &self.runs[i]) else { return Ok(Place::New(0)) };
        Ok(match run.end() {
            end if n < end => Place::Known,
            end if n == end && run.begun.is_some() => Place::Begun(after - 1),
            _ => Place::New(after),
        })
    }

    pub(super) fn admit_record(&self, n: u64, len: usize) -> Result<Place, Refused> {
        let place = self.place(n)?;
        match place {
            Place::Known => {}
            Place::Begun(i) => self.check_total(i, len)?,
            Place::New(i) => self.admit_new(len, self.touches(n, i, true, true))?,
        }
        Ok(place)
    }

    pub(super) fn admit_part(&self, n: u64, total: u32, offset: u32, len: usize) -> Result<Place, Refused> {
        let end = (offset as usize).saturating_add(len);
        if len == 0 || end > total as usize {
            return Err(Refused::Conflict);
        }
        let (starts, ends) = (offset == 0, end == total as usize);
        let place = self.place(n)?;
        match place {
            Place::Known => {}
            Place::Begun(i) => {
                self.check_total(i, total as usize)?;
                if self.gaps >= self.limits.gaps && !self.touches_begun(i, u64::from(offset), len as u64, ends) {
                    return Err(Refused::Gaps);
                }
            }
            Place::New(i) => self.admit_new(total as usize, self.touches(n, i, starts, ends))?,
        }
        Ok(place)
    }

    fn check_total(&self, i: usize, total: usize) -> Result<(), Refused> {
        match &self.runs[i].begun {
            Some(begun) if begun.total as usize != total => Err(Refused::Conflict),
            _ => Ok(()),
        }
    }

    pub(super) fn admit_new(&self, total: usize, touches: bool) -> Result<(), Refused> {
        if total > self.limits.max_body() {
            return Err(Refused::Record);
        }
        self.check_room(total, 1, usize::from(!touches))
    }

    /// Whether a new record `n` before run `i` would touch what is here, if its first and last byte are
    /// those of the arrival as told. An arrival opens a gap only if it touches nothing, and then one.
    pub(super) fn touches(&self, n: u64, i: usize, starts: bool, ends: bool) -> bool {
        (starts && self.reaches(i, n))
            || (ends && self.runs.get(i).is_some_and(|r| r.first() == n + 1 && r.starts_here()))
    }

    /// As [`Reassembler::touches`], for a part of the record that run `i` has begun.
    fn touches_begun(&self, i: usize, offset: u64, len: u64, ends: bool) -> bool {
        let run = &self.runs[i];
        let before = offset == 0 && (!run.done.is_empty() || self.reaches(i, run.first()));
        let after = ends && self.runs.get(i + 1).is_some_and(|r| r.first() == run.limit() && r.starts_here());
        before || after || run.begun.as_ref().is_some_and(|b| b.have.touches(offset..=offset + len - 1))
    }

    /// Whether everything just before record `n` is here, where `n` belongs before run `i`. What was taken is.
    pub(super) fn reaches(&self, i: usize, n: u64) -> bool {
        match i.checked_sub(1) {
            Some(before) => self.runs[before].limit() == n && self.runs[before].ends_here(),
            None => n == self.base,
        }
    }
}
