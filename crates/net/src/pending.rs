use crate::command::Command;
use stayfast_handoff::{Producer, Watch};
use stayfast_link::PeerId;
use stayfast_store::{Delivery, Level, Position, StoreDone};
use stayfast_units::RecordNumber;
use std::cell::Cell;
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// A batch for the application, which says what became of it: the first word counts. If it says nothing and drops it,
/// the batch is delivered again.
#[must_use = "a batch that is dropped is delivered again"]
pub struct PendingDelivery {
    /// The records, and the move of the cursor that makes them stored.
    pub delivery: Delivery,
    answer: Cell<Option<(PeerId, Producer<Command>)>>,
}

impl PendingDelivery {
    pub(crate) fn new(peer: PeerId, delivery: Delivery, commands: Producer<Command>) -> PendingDelivery {
        PendingDelivery { delivery, answer: Cell::new(Some((peer, commands))) }
    }

    /// The transaction that holds the records and the cursor is durable, at this level.
    pub fn stored(&self, level: Level) {
        let (key, to) = (self.delivery.key.clone(), self.delivery.to);
        self.answer(StoreDone::Delivered { key, level, to });
    }

    /// The cursor stood elsewhere: another node was first.
    pub fn conflict(&self, at: Position) {
        if let Some((peer, commands)) = self.answer.take() {
            let _ = commands.push(Command::Raced(peer, at, self.delivery.clone()), None);
        }
    }

    /// The application refuses this record for good. Those before it in the batch are not stored either; the stream
    /// stands still, and its sender is told.
    pub fn rejected(&self, number: RecordNumber) {
        let key = self.delivery.key.clone();
        self.answer(StoreDone::Rejected { key, number });
    }

    fn answer(&self, done: StoreDone) {
        if let Some((peer, commands)) = self.answer.take() {
            // After the driver has ended, the next run asks the store.
            let _ = commands.push(Command::Done(peer, done), None);
        }
    }
}

impl Drop for PendingDelivery {
    fn drop(&mut self) {
        if let Some((peer, commands)) = self.answer.take() {
            let delivery = Delivery { run: std::mem::take(&mut self.delivery.run), ..self.delivery.clone() };
            let _ = commands.push(Command::Done(peer, StoreDone::Returned(delivery)), None);
        }
    }
}

impl fmt::Debug for PendingDelivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PendingDelivery").field(&self.delivery).finish()
    }
}

/// Batches on their way to the application. A machine has at most one per stream outside, which bounds it.
pub(crate) struct Queue {
    waiting: Watch<VecDeque<PendingDelivery>>,
    /// Batches that were ever put in: what takers sleep on.
    count: Watch<u64>,
}

impl Queue {
    pub fn new() -> Queue {
        Queue { waiting: Watch::new(VecDeque::new()), count: Watch::new(0) }
    }

    pub fn put(&self, pending: PendingDelivery) {
        self.waiting.update(|waiting| waiting.push_back(pending));
        self.count.update(|count| *count += 1);
    }

    /// `None`: nothing came in time, or nothing will come any more.
    pub fn take(&self, timeout: Option<Duration>) -> Option<PendingDelivery> {
        loop {
            let seen = self.count.get();
            if let Some(pending) = self.waiting.update(VecDeque::pop_front) {
                return Some(pending);
            }
            self.count.wait_until(|count| *count != seen, timeout).ok()?;
        }
    }

    pub fn close(&self) {
        self.count.close();
        let left = self.waiting.update(std::mem::take);
        drop(left);
    }
}
