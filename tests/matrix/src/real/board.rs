//! What a flow has done, for whoever watches; and the application on both of its ends.

use super::Task;
use crate::peers::Sample;
use crate::run::PACED_AFTER;
use stayfast_bench::records::{Sink, Source, Wrong};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Anything that went wrong.
pub(super) type Trouble = Box<dyn std::error::Error + Send + Sync>;
/// How the sender is doing, whenever it is asked.
pub(super) type Sampler = Box<dyn Fn() -> Sample + Send>;

/// One flow.
pub(super) struct Board {
    start: Instant,
    taken: AtomicU64,
    /// When records were handed over, and how many in all by then.
    log: Mutex<Vec<(u64, u64)>>,
    /// When each record of a paced load was appended.
    offered: Mutex<Vec<u64>>,
    trouble: Mutex<Option<String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Board {
    pub(super) fn new(start: Instant) -> Arc<Board> {
        let (log, offered) = (Mutex::default(), Mutex::default());
        Arc::new(Board { start, taken: AtomicU64::new(0), log, offered, trouble: Mutex::default() })
    }

    /// Nanoseconds since the run began.
    pub(super) fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// The receiving application has so many records.
    fn took(&self, at: u64, records: u64) {
        if records > self.taken() {
            self.taken.store(records, Ordering::Relaxed);
            lock(&self.log).push((at, records));
        }
    }

    pub(super) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    pub(super) fn log(&self) -> Vec<(u64, u64)> {
        lock(&self.log).clone()
    }

    pub(super) fn first(&self) -> Option<u64> {
        lock(&self.log).first().map(|(at, _)| *at)
    }

    pub(super) fn offered(&self) -> Vec<u64> {
        lock(&self.offered).clone()
    }

    /// What has gone wrong, if anything.
    pub(super) fn trouble(&self) -> Result<(), Trouble> {
        lock(&self.trouble).clone().map_or(Ok(()), |trouble| Err(trouble.into()))
    }

    /// Runs one end on a thread of its own; what it fails with is kept.
    pub(super) fn spawn(
        self: &Arc<Board>,
        name: &str,
        end: impl FnOnce(&Board) -> Result<(), Trouble> + Send + 'static,
    ) -> Result<(), Trouble> {
        let (board, named) = (self.clone(), name.to_owned());
        let body = move || {
            if let Err(e) = end(&board) {
                lock(&board.trouble).get_or_insert(format!("{named}: {e}"));
            }
        };
        thread::Builder::new().name(name.into()).spawn(body)?;
        Ok(())
    }

    /// The sending application: always more to send, or one record after the other at its time.
    pub(super) fn feed(
        &self,
        task: &Task,
        mut send: impl FnMut(&[&[u8]]) -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        let mut source = Source::new(task.size);
        let Some(interval) = task.interval() else {
            loop {
                send(&source.batch(u64::MAX).collect::<Vec<_>>())?;
            }
        };
        for n in 0..task.count() {
            let due = self.start + PACED_AFTER + interval * n;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            lock(&self.offered).push(self.now());
            send(&source.batch(u64::from(n) + 1).collect::<Vec<_>>())?;
        }
        Ok(())
    }
}

impl Task {
    /// From one record to the next; none for a drain.
    pub(super) fn interval(&self) -> Option<Duration> {
        self.rate.map(|rate| Duration::from_secs(1) / rate.max(1))
    }

    /// Records of a paced load.
    pub(super) fn count(&self) -> u32 {
        self.rate.unwrap_or(0).saturating_mul(self.seconds as u32)
    }
}

/// The receiving application on a stream of bytes: every record must be the one that is due.
pub(super) struct Cutter<'a> {
    board: &'a Board,
    sink: Sink,
    size: usize,
    cut: Vec<u8>,
}

impl<'a> Cutter<'a> {
    pub(super) fn new(board: &'a Board, size: usize) -> Cutter<'a> {
        Cutter { board, sink: Sink::new(size), size, cut: Vec::with_capacity(size) }
    }

    pub(super) fn take(&mut self, mut bytes: &[u8]) -> Result<(), Wrong> {
        let now = self.board.now();
        while !bytes.is_empty() {
            if self.cut.is_empty() && bytes.len() >= self.size {
                let (record, rest) = bytes.split_at(self.size);
                self.sink.take(record)?;
                bytes = rest;
                continue;
            }
            let (head, rest) = bytes.split_at(bytes.len().min(self.size - self.cut.len()));
            self.cut.extend_from_slice(head);
            bytes = rest;
            if self.cut.len() == self.size {
                self.sink.take(&self.cut)?;
                self.cut.clear();
            }
        }
        self.board.took(now, self.sink.taken());
        Ok(())
    }
}

/// The receiving application of records.
pub(super) struct Taker<'a> {
    board: &'a Board,
    sink: Sink,
}

impl<'a> Taker<'a> {
    pub(super) fn new(board: &'a Board, size: usize) -> Taker<'a> {
        Taker { board, sink: Sink::new(size) }
    }

    /// Records that were handed over together.
    pub(super) fn take<'r>(&mut self, records: impl Iterator<Item = &'r [u8]>) -> Result<(), Wrong> {
        let now = self.board.now();
        for record in records {
            self.sink.take(record)?;
        }
        self.board.took(now, self.sink.taken());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_found_wherever_the_stream_is_cut() {
        let (mut source, mut wire) = (Source::new(20), Vec::new());
        source.batch(50).for_each(|record| wire.extend_from_slice(record));
        for piece in 1..60 {
            let board = Board::new(Instant::now());
            let mut cutter = Cutter::new(&board, 20);
            wire.chunks(piece).for_each(|chunk| cutter.take(chunk).unwrap());
            assert_eq!(board.taken(), 50, "pieces of {piece}");
            assert!(cutter.take(&wire[..20]).is_err(), "the first record a second time");
        }
    }
}
