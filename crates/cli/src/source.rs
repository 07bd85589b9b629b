//! Where `stayfast send` gets records from: a thread that reads ahead, so that waiting for input stops nothing else.

use crate::demo::corpus::Generated;
use crate::failure::Outcome;
use crate::input::{Batch, InputError, Records};
use crate::threads;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// Batches that wait to be appended; beyond them, the reader waits.
const AHEAD: usize = 4;

/// What the input has to say.
#[derive(Debug)]
pub enum Event {
    /// Records for the stream with this index.
    Records(usize, Batch),
    /// The record after those so far cannot be read, nor what comes after it.
    Failed(InputError),
    /// There is no more.
    End,
}

/// Records to come.
pub struct Source {
    events: Receiver<Event>,
    reader: Arc<Reader>,
}

/// What both threads know.
#[derive(Default)]
struct Reader {
    /// It waits for input and holds no whole record.
    waits: AtomicBool,
    /// It is to stop at the next occasion.
    stop: AtomicBool,
}

impl Source {
    /// Reads records until the input ends.
    pub fn read<R: Read + Send + 'static>(mut records: Records<R>) -> Outcome<Source> {
        Source::spawn(move |reader, events| {
            loop {
                reader.waits.store(!records.has_whole_record(), Ordering::SeqCst);
                if reader.stop.load(Ordering::SeqCst) {
                    return Event::End;
                }
                let batch = records.next_batch();
                reader.waits.store(false, Ordering::SeqCst);
                let sent = match batch {
                    Ok(Some(batch)) => events.send(Event::Records(0, batch)),
                    Ok(None) => return Event::End,
                    Err(error) => return Event::Failed(error),
                };
                if sent.is_err() {
                    return Event::End;
                }
            }
        })
    }

    /// Makes the demo's records, from number `at[i]` on in stream i, all streams at about the same pace.
    pub fn generate(generated: Generated, mut at: Vec<u64>) -> Outcome<Source> {
        Source::spawn(move |reader, events| {
            let mut record = Vec::new();
            while !reader.stop.load(Ordering::SeqCst) {
                let left = |i: &usize| at[*i] < generated.kinds[*i].count;
                let part = |i: &usize| u128::from(at[*i]) * (1 << 64) / u128::from(generated.kinds[*i].count);
                let Some(index) = (0..at.len()).filter(left).min_by_key(part) else { break };
                let count = generated.kinds[index].count;
                let mut batch = Batch::default();
                for number in at[index]..(at[index] + count.div_ceil(500)).min(count) {
                    generated.record(index, number, &mut record);
                    batch.push(&record);
                }
                at[index] += batch.len() as u64;
                if events.send(Event::Records(index, batch)).is_err() {
                    break;
                }
            }
            Event::End
        })
    }

    fn spawn(run: impl FnOnce(&Reader, &SyncSender<Event>) -> Event + Send + 'static) -> Outcome<Source> {
        let (sender, events) = sync_channel(AHEAD);
        let reader = Arc::new(Reader::default());
        let shared = reader.clone();
        threads::start(move || {
            let last = run(&shared, &sender);
            // Nobody listens any more: then nobody misses it.
            drop(sender.send(last));
        })?;
        Ok(Source { events, reader })
    }

    /// The next event, if there is one within `wait`. After [`Event::Failed`] or [`Event::End`] there is only `End`.
    pub fn next(&self, wait: Duration) -> Option<Event> {
        match self.events.recv_timeout(wait) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Event::End),
        }
    }

    /// Asks the reader to stop. What it has read still comes, then `End`; it never comes if the reader waits for
    /// input, but then [`is_drained`](Source::is_drained) is true.
    pub fn stop(&self) {
        self.reader.stop.store(true, Ordering::SeqCst);
    }

    /// The reader waits and holds nothing. Ask only after [`next`](Source::next) gave nothing.
    pub fn is_drained(&self) -> bool {
        self.reader.waits.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Framing;

    const WAIT: Duration = Duration::from_secs(5);

    #[test]
    fn all_that_was_read_comes_before_the_end() {
        let input: Vec<u8> = (0..100_000).flat_map(|n| format!("{n}\n").into_bytes()).collect();
        let source = Source::read(Records::new(std::io::Cursor::new(input), Framing::Lines, 100)).unwrap();
        let mut count = 0;
        while let Some(Event::Records(0, batch)) = source.next(WAIT) {
            count += batch.len();
        }
        assert_eq!(count, 100_000);
        assert!(matches!(source.next(WAIT), Some(Event::End)), "and again");
    }

    #[test]
    fn a_reader_that_waits_is_drained() {
        let (read, write) = std::io::pipe().unwrap();
        let source = Source::read(Records::new(read, Framing::Lines, 100)).unwrap();
        std::io::Write::write_all(&mut &write, b"one\ntwo\nthr").unwrap();
        let Some(Event::Records(0, batch)) = source.next(WAIT) else { panic!("no records") };
        assert_eq!(batch.records(), [b"one", b"two"]);
        while !source.is_drained() {
            assert!(source.next(Duration::from_millis(1)).is_none());
        }
        // One that waits does not see this, and nobody needs to wait for it.
        source.stop();
        assert!(source.next(Duration::from_millis(10)).is_none() && source.is_drained());
        drop(write);
        let Some(Event::Records(0, batch)) = source.next(WAIT) else { panic!("the last line has no line end") };
        assert_eq!(batch.records(), [b"thr"]);
    }

    #[test]
    fn generated_streams_advance_together_and_go_on_anywhere() {
        let generated: Generated = "7:1000x61,100x20,3x9".parse().unwrap();
        let source = Source::generate(generated.clone(), vec![990, 0, 3]).unwrap();
        let mut at = [990u64, 0, 3];
        let mut expected = Vec::new();
        while let Some(Event::Records(index, batch)) = source.next(WAIT) {
            for record in batch.records() {
                generated.record(index, at[index], &mut expected);
                assert_eq!(record, expected);
                at[index] += 1;
            }
        }
        assert_eq!(at, [1000, 100, 3]);
    }
}
