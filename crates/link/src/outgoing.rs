//! One outgoing stream: what of the outbox is in memory, how far it has been sent, what is STORED.

use crate::carried::AliasNumber;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use stayfast_store::{Item, Loaded, Origin, Run};
use stayfast_units::{Lineage, RecordNumber, Time};

/// A STORED that names a record we do not have in memory: its lineage is checked once it is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub next: RecordNumber,
    pub lineage: Lineage,
}

/// What an outbox says of the lineage of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// It has this one: none if there is no such record.
    Lineage(Lineage),
    /// The record was let go, so somebody has compared it.
    LetGo,
    Nothing,
}

/// The next body byte to be sent for the first time to the receiver's current run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub number: RecordNumber,
    pub offset: u32,
}

impl Position {
    /// Before the first byte of a record.
    pub(crate) const fn start(number: RecordNumber) -> Position {
        Position { number, offset: 0 }
    }
}

/// What a record in memory takes beside its body, about.
const RECORD: usize = 8;

#[derive(Debug)]
pub(crate) struct Outgoing {
    pub name: Arc<str>,
    /// Below this number everything is STORED and was let go.
    pub stored: RecordNumber,
    /// Below this number everything is in the memory of the receiver's current run.
    pub heard: RecordNumber,
    /// The first number not given to a record yet.
    pub next: RecordNumber,
    pub at: Position,
    /// Body bytes of the records begun and not STORED: what credit counts.
    pub begun: u64,
    /// The receiver's window for this stream beyond STORED, and the number at which it was decided.
    pub credit: Option<(RecordNumber, u64)>,
    /// The newest alias of this stream.
    pub alias: Option<AliasNumber>,
    /// A person must decide before anything goes on.
    pub halted: bool,
    /// The receiver did not take the stream: not before then again.
    pub refused_until: Option<Time>,
    /// The outbox had nothing, or an error: not before then again.
    pub unread_until: Option<Time>,
    /// The open question: its nonce and what was STORED when it was asked.
    pub question: Option<(u64, RecordNumber)>,
    pub claim: Option<Claim>,
    /// The read that is under way: from which record.
    pub reading: Option<RecordNumber>,
    /// In the sender's round of streams that may have something to send.
    pub in_round: bool,
    /// A trim is waiting to be handed to the store.
    pub trim_queued: bool,
    loaded: VecDeque<Loaded>,
    loaded_end: RecordNumber,
}

impl Outgoing {
    pub(crate) fn new(name: Arc<str>, trimmed: RecordNumber, next: RecordNumber) -> Outgoing {
        Outgoing {
            name,
            stored: trimmed,
            heard: trimmed,
            next,
            at: Position::start(trimmed),
            begun: 0,
            credit: None,
            alias: None,
            halted: false,
            refused_until: None,
            unread_until: None,
            question: None,
            claim: None,
            reading: None,
            in_round: false,
            trim_queued: false,
            loaded: VecDeque::new(),
            loaded_end: trimmed,
        }
    }

    /// Everything sent so far counts as not sent: another run of the receiver has nothing of it in memory.
    pub(crate) fn unsend(&mut self) {
        self.at = Position::start(self.stored);
        self.heard = self.stored;
        self.begun = 0;
    }

    /// Something was sent that is not STORED.
    pub(crate) fn is_outstanding(&self) -> bool {
        !self.halted && self.at > Position::start(self.stored)
    }

    /// Where record `n` is among what is in memory.
    fn place(&self, n: RecordNumber) -> Option<usize> {
        // What is new is mostly in the last run.
        let after = match self.loaded.back() {
            Some(last) if last.run.first <= n => self.loaded.len(),
            _ => self.loaded.partition_point(|l| l.run.first <= n),
        };
        after.checked_sub(1).filter(|i| n < self.loaded[*i].run.end())
    }

    /// The origin and the run that hold record `n`, if they are in memory.
    pub(crate) fn find(&self, n: RecordNumber) -> Option<(Origin, &Run)> {
        let loaded = &self.loaded[self.place(n)?];
        Some((loaded.origin, &loaded.run))
    }

    /// The origin of record `n`, and how far in memory its lineage goes on without a break.
    pub(crate) fn span(&self, n: RecordNumber) -> Option<(Origin, RecordNumber)> {
        let i = self.place(n)?;
        let origin = self.loaded[i].origin;
        let end = self.loaded.range(i..).take_while(|l| l.origin == origin).last()?.run.end();
        Some((origin, end))
    }

    /// What is known of record `n`, if it is in memory.
    pub(crate) fn get(&self, n: RecordNumber) -> Option<Item<'_>> {
        self.find(n).and_then(|(_, run)| run.get(n))
    }

    /// Body bytes of a begun record from `at` on.
    pub(crate) fn left(&self, at: Position) -> u64 {
        if at.offset == 0 { 0 } else { self.len_of(at.number).saturating_sub(at.offset.into()) }
    }

    /// Body length of record `n`; a hole has none.
    pub(crate) fn len_of(&self, n: RecordNumber) -> u64 {
        self.find(n).map_or(0, |(_, run)| run.body(n).len() as u64)
    }

    /// Where the next read of the outbox starts and how many body bytes it may bring, if one is due.
    pub(crate) fn wanted(&self, read_ahead: usize) -> Option<(RecordNumber, usize)> {
        if self.reading.is_some() || self.halted || self.unread_until.is_some() {
            return None;
        }
        if let Some(claim) = self.claim {
            return Some((RecordNumber(claim.next.0 - 1), 1));
        }
        if self.loaded_end >= self.next {
            return None;
        }
        let ahead = self.unsent_bytes();
        (ahead <= read_ahead / 2).then_some((self.loaded_end, read_ahead))
    }

    /// Memory of what is not sent yet; a record without a body takes some, too.
    fn unsent_bytes(&self) -> usize {
        let from = self.at.number;
        let unsent = self.loaded.iter().rev().map(|l| &l.run).take_while(|run| run.end() > from);
        unsent.map(|run| run.bytes_from(from) + RECORD * (run.end().0 - from.max(run.first).0) as usize).sum()
    }

    /// Does a read from `from` continue what is in memory?
    pub(crate) fn continues(&self, from: RecordNumber) -> bool {
        from == self.loaded_end
    }

    /// Takes what a read brought, as far as it continues what is in memory. Returns how many records that was.
    pub(crate) fn load(&mut self, read: alloc::vec::Vec<Loaded>) -> u64 {
        let before = self.loaded_end;
        for loaded in read {
            if loaded.run.first != self.loaded_end || loaded.run.is_empty() {
                break;
            }
            self.loaded_end = loaded.run.end();
            self.next = self.next.max(self.loaded_end);
            self.loaded.push_back(loaded);
        }
        self.loaded_end.0 - before.0
    }

    /// What the outbox says of the lineage of record `n`, if `read` is what it has from `n` on.
    pub(crate) fn lineage_at(&self, n: RecordNumber, read: &[Loaded]) -> Known {
        match read.first() {
            Some(loaded) if loaded.origin.first <= n => Known::Lineage(loaded.origin.lineage),
            Some(loaded) if loaded.origin.first == n.next() => Known::Lineage(loaded.origin.parent),
            Some(_) => Known::LetGo,
            // Let go, or lost by a store that was put back under us. The next record that is appended will tell.
            None if n < self.next => Known::Nothing,
            None => Known::Lineage(Lineage::NONE),
        }
    }

    /// Records below `next` are STORED: forgets them. Returns the credit that this frees.
    pub(crate) fn release(&mut self, next: RecordNumber) -> u64 {
        let begun_end = if self.at.offset > 0 { self.at.number.next() } else { self.at.number };
        let mut freed = 0;
        let mut n = self.stored;
        while n < next.min(begun_end) {
            freed += self.len_of(n);
            n = n.next();
        }
        self.begun -= freed;
        self.stored = next;
        self.heard = self.heard.max(next);
        self.at = self.at.max(Position::start(next));
        if next > self.loaded_end {
            self.loaded.clear();
            self.loaded_end = next;
        }
        while self.loaded.front().is_some_and(|l| l.run.end() <= next) {
            self.loaded.pop_front();
        }
        freed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_read_is_wanted_when_half_of_the_last_one_is_sent() {
        let mut run = Run::new(RecordNumber(0));
        (0..10).for_each(|_| run.push(&[0; 92]).expect("room"));
        let origin = Origin { first: RecordNumber(0), lineage: Lineage(1), parent: Lineage::NONE };
        let mut stream = Outgoing::new("log".into(), RecordNumber(0), RecordNumber(1_000));
        assert_eq!(stream.load(alloc::vec![Loaded { origin, run }]), 10);
        let mut wanted = |at| {
            stream.at = Position::start(RecordNumber(at));
            stream.wanted(1_000)
        };
        assert_eq!((wanted(0), wanted(4)), (None, None));
        assert_eq!(wanted(5), Some((RecordNumber(10), 1_000)));
    }
}
