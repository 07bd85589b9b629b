//! The application on both ends: makes records, checks them, keeps them.

use std::fmt;

/// Bytes of bodies in one batch, as an application would write them.
pub const BATCH: usize = 64 << 10;
/// Shortest record that can carry its number.
pub const SHORTEST: usize = 9;
/// Bytes of bodies that the receiving application keeps before it starts to overwrite them.
const KEPT: usize = 4 << 20;

/// Makes records of one length: each carries its number in the first eight bytes and again in the last.
#[derive(Debug)]
pub struct Source {
    bytes: Vec<u8>,
    size: usize,
    next: u64,
}

impl Source {
    /// Records of `size` bytes, at least [`SHORTEST`], numbered from 0.
    pub fn new(size: usize) -> Source {
        let size = size.max(SHORTEST);
        let bytes = (0..Source::per_batch(size) * size).map(|i| (i % size) as u8).collect();
        Source { bytes, size, next: 0 }
    }

    /// How many records of `size` bytes make a batch.
    pub fn per_batch(size: usize) -> usize {
        (BATCH / size).max(1)
    }

    /// The next records, as many as make a batch but none from number `end` on.
    pub fn batch(&mut self, end: u64) -> impl Iterator<Item = &[u8]> {
        let room = Source::per_batch(self.size);
        let count = end.saturating_sub(self.next).min(room as u64) as usize;
        let records = &mut self.bytes[..count * self.size];
        for record in records.chunks_exact_mut(self.size) {
            record[..8].copy_from_slice(&self.next.to_le_bytes());
            record[self.size - 1] = self.next as u8;
            self.next += 1;
        }
        records.chunks_exact(self.size)
    }

    /// How many were made.
    pub fn made(&self) -> u64 {
        self.next
    }
}

/// Checks that records come complete and in order, and keeps a copy of each as a store would.
#[derive(Debug)]
pub struct Sink {
    size: usize,
    next: u64,
    kept: Vec<u8>,
    at: usize,
}

/// A record is not the one that was due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    due: u64,
    len: usize,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {} was due; what came has {} bytes and is another", self.due, self.len)
    }
}

impl std::error::Error for Wrong {}

impl Sink {
    /// Awaits record 0 of `size` bytes.
    pub fn new(size: usize) -> Sink {
        let size = size.max(SHORTEST);
        Sink { size, next: 0, kept: vec![0; KEPT.max(size)], at: 0 }
    }

    /// Takes a record.
    ///
    /// # Errors
    /// It is not the one that is due, or not whole.
    ///
    /// ```
    /// use stayfast_bench::records::{Sink, Source};
    /// let (mut source, mut sink) = (Source::new(100), Sink::new(100));
    /// for record in source.batch(3) {
    ///     sink.take(record)?;
    /// }
    /// assert_eq!((sink.taken(), source.made()), (3, 3));
    /// assert!(sink.take(&[0; 100]).is_err());
    /// # Ok::<(), stayfast_bench::records::Wrong>(())
    /// ```
    pub fn take(&mut self, record: &[u8]) -> Result<(), Wrong> {
        let (due, len) = (self.next, record.len());
        let number = record.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        if len != self.size || number != Some(due) || record.last() != Some(&(due as u8)) {
            return Err(Wrong { due, len });
        }
        if self.at + len > self.kept.len() {
            self.at = 0;
        }
        self.kept[self.at..self.at + len].copy_from_slice(record);
        self.at += len;
        self.next += 1;
        Ok(())
    }

    /// How many were taken; with their length this is how many bytes.
    pub fn taken(&self) -> u64 {
        self.next
    }
}
