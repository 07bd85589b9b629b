//! The work of `stayfast listen` when records are more than stored: given to a command, or printed.

use crate::exec::{self, Exec, Pause, Slice};
use crate::failure::{Failure, Outcome};
use crate::human;
use crate::input::Framing;
use crate::interrupt::Interrupt;
use crate::output::remark;
use crate::text::{self, printable};
use crate::troubles::Troubles;
use serde_json::json;
use stayfast::{Accepted, Batch, Inbox, Item, Level, Missing, Options};
use stayfast_store::{Delivery, Hole, Inbox as _, Run, StoreError};
use stayfast_store_sqlite::SqliteInbox;
use std::io::{BufWriter, Write, stdout};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often a signal is looked for, and a batch that waits for its next try.
const TICK: Duration = Duration::from_millis(100);

/// What storing a batch means.
pub enum Store {
    /// A command does it.
    Command(Exec),
    /// It goes into the table, and is printed then.
    Table(Follow),
}

/// How records are printed.
#[derive(Clone, Copy, Debug)]
pub struct Follow {
    /// Lines, or lengths.
    pub framing: Framing,
    /// An object a line instead.
    pub json: bool,
}

/// Takes batches one after the other.
pub struct Receiving {
    path: PathBuf,
    cursors: SqliteInbox,
    store: Store,
    /// Batches that are tried again, each after its pause: one of a stream at most.
    failed: Vec<(Waiting, Pause)>,
}

/// A batch that is not stored yet.
struct Waiting {
    batch: Batch,
    /// The command has taken the records: only the cursor is still to be moved.
    taken: bool,
}

/// A batch is not stored, and why; it may be tried again.
type NotStored = String;

impl Receiving {
    /// With the cursors in the database at `path`.
    pub fn new(path: &Path, store: Store) -> Outcome<Receiving> {
        let cursors = SqliteInbox::open(path, &Options::default()).map_err(|e| Failure::store(path, &e))?;
        Ok(Receiving { path: path.to_path_buf(), cursors, store, failed: Vec::new() })
    }

    /// Until a signal comes.
    pub fn run(mut self, mut inbox: Inbox, interrupt: &Interrupt) -> Outcome {
        let mut troubles = Troubles::new(&self.path);
        while !interrupt.is_set() {
            troubles.look(&inbox)?;
            if let Some(batch) = inbox.next_within(TICK).map_err(Failure::failed)? {
                let mut waiting = Waiting { batch, taken: false };
                if let Err(why) = self.take(&mut waiting)? {
                    self.tell(&waiting.batch, &why, Pause::FIRST);
                    self.failed.push((waiting, Pause::new(Instant::now())));
                }
            }
            self.try_again(interrupt)?;
        }
        Ok(())
    }

    fn try_again(&mut self, interrupt: &Interrupt) -> Outcome {
        let now = Instant::now();
        for (mut waiting, mut pause) in std::mem::take(&mut self.failed) {
            if !pause.is_over(now) || interrupt.is_set() {
                self.failed.push((waiting, pause));
            } else if let Err(why) = self.take(&mut waiting)? {
                let next = pause.again(Instant::now());
                self.tell(&waiting.batch, &why, next);
                self.failed.push((waiting, pause));
            }
        }
        Ok(())
    }

    fn tell(&self, batch: &Batch, why: &str, pause: Duration) {
        let (count, stream, sender) = (human::records(batch.len() as u64), printable(batch.stream()), batch.sender());
        let pause = human::duration(pause);
        remark(format!("{count} of stream '{stream}' from {sender} not stored: {why}; the next try is in {pause}"));
    }

    /// Stores a batch and says so to the sender. A store that serves nothing more is a failure: to go on would give the
    /// same records to the command again and again.
    fn take(&mut self, waiting: &mut Waiting) -> Outcome<Result<(), NotStored>> {
        let batch = &waiting.batch;
        let delivery = batch.delivery();
        let swapped = match &self.store {
            Store::Command(exec) => {
                // Not if the cursor could not be moved afterwards.
                if let Err(error) = self.cursors.changed() {
                    return self.not_stored(error);
                }
                if !waiting.taken
                    && let Err(why) = slices(batch).iter().try_for_each(|slice| exec.run(slice))
                {
                    return match why {
                        exec::NotStored::Killed => Err(Failure::failed(format!("{why}; its records come again"))),
                        _ => Ok(Err(why.to_string())),
                    };
                }
                waiting.taken = true;
                // The cursor alone moves here; the records are where the command has put them.
                let run = Run::new(delivery.from.next);
                self.cursors.deliver(&Delivery { key: delivery.key.clone(), run, ..*delivery })
            }
            Store::Table(_) => self.cursors.deliver(delivery),
        };
        let accepted = match swapped {
            Ok(stayfast_store::Accepted::Fresh) => batch.fresh(Level::Power),
            Ok(stayfast_store::Accepted::Raced(at)) => batch.raced(at),
            Err(error) => return self.not_stored(error),
        };
        if let Accepted::Fresh(settled) = accepted {
            settled.stored();
            Missing::of(delivery).for_each(|missing| tell_missing(&missing));
            if let Store::Table(follow) = &self.store {
                follow.print(batch)?;
            }
        }
        Ok(Ok(()))
    }

    fn not_stored(&self, error: StoreError) -> Outcome<Result<(), NotStored>> {
        match error.is_lasting() {
            true => Err(Failure::store(&self.path, &error)),
            false => Ok(Err(format!("{}: {error}", self.path.display()))),
        }
    }
}

/// Says that numbers have no record; their sender was the last to have them.
pub fn tell_missing(missing: &Missing) {
    remark(no_record(missing));
}

fn no_record(missing: &Missing) -> String {
    let Missing { key, first, count, hole } = missing;
    let (number, have) = match count {
        1 => (format!("record {first}"), "was"),
        _ => (format!("records {first} to {}", first.0 + count - 1), "were"),
    };
    let why = match hole {
        Hole::Gap => format!("{have} damaged or given up at the sender and cannot come"),
        Hole::Expired => format!("{have} not sent in time: expired at the sender"),
    };
    format!("stream '{}' of {}: {number} {why}", printable(&key.stream), key.sender)
}

/// The records of a batch, cut where numbers have none, so that the numbers of each slice have no gap.
fn slices(batch: &Batch) -> Vec<Slice<'_>> {
    let store = batch.delivery().key.store.0;
    let mut slices: Vec<Slice<'_>> = Vec::new();
    let mut fresh = true;
    for item in batch.items() {
        let Item::Record(record) = item else {
            fresh = true;
            continue;
        };
        if std::mem::take(&mut fresh) {
            let (sender, stream, first) = (record.sender(), record.stream(), record.number().0);
            slices.push(Slice { sender, store, stream, first, records: Vec::new() });
        }
        if let Some(slice) = slices.last_mut() {
            slice.records.push(record.bytes());
        }
    }
    slices
}

impl Follow {
    fn print(self, batch: &Batch) -> Outcome {
        let mut out = BufWriter::new(stdout().lock());
        for item in batch.items() {
            match item {
                Item::Record(record) if self.json => {
                    let mut line = text::json(record.bytes());
                    line["sender"] = json!(record.sender());
                    line["stream"] = json!(record.stream());
                    line["number"] = json!(record.number().0);
                    writeln!(out, "{line}")?;
                }
                Item::Record(record) => self.framing.write(&mut out, record.bytes())?,
                // Remarked on already.
                Item::Gap(_) | Item::Expired(_) => {}
            }
        }
        Ok(out.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stayfast_store::CursorKey;
    use stayfast_units::{RecordNumber, StoreId};

    #[test]
    fn the_name_of_a_stream_with_a_gap_does_nothing_to_the_terminal() {
        let key = CursorKey { sender: "edge".into(), store: StoreId(1), stream: "x\u{1b}[31m".into() };
        let missing = Missing { key, first: RecordNumber(4), count: 2, hole: Hole::Gap };
        let told =
            "stream 'x\\u{1b}[31m' of edge: records 4 to 5 were damaged or given up at the sender and cannot come";
        assert_eq!(no_record(&missing), told);
    }
}
