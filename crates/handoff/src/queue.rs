use crate::sync::{Arc, Condvar, Mutex, MutexGuard, lock, wait_while};
use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// A bounded queue from many producers to one consumer, first in, first out for each producer.
///
/// At most `capacity` items wait in it (at least one). `wake` is called, on the pushing thread and without
/// a lock held, whenever the queue stops being empty and when it is closed; a consumer that sleeps outside
/// of the queue lets it ring its bell. A push into a queue that is not empty costs no wake-up.
///
/// ```
/// use stayfast_handoff::{Closed, PushError, queue};
///
/// let (producer, mut consumer) = queue(2, || { /* ring the poller's bell */ });
/// producer.try_push("a").unwrap();
/// producer.clone().try_push("b").unwrap();
/// assert_eq!(producer.try_push("c"), Err(PushError::Full("c")));
///
/// let mut seen = Vec::new();
/// assert_eq!(consumer.drain(10, |item| seen.push(item)), Ok(2));
/// assert_eq!(seen, ["a", "b"]);
///
/// drop(producer);
/// assert_eq!(consumer.drain(10, |_| ()), Err(Closed));
/// ```
pub fn queue<T>(capacity: usize, wake: impl Fn() + Send + Sync + 'static) -> (Producer<T>, Consumer<T>) {
    let capacity = capacity.max(1);
    let state = State { items: VecDeque::new(), closed: false, producers: 1, pushing: 0, popping: false };
    let shared = Arc::new(Shared {
        state: Mutex::new(state),
        emptied: Condvar::new(),
        filled: Condvar::new(),
        capacity,
        wake: Box::new(wake),
    });
    (Producer { shared: shared.clone() }, Consumer { shared, taken: VecDeque::new() })
}

struct Shared<T> {
    state: Mutex<State<T>>,
    /// There is room: producers wait here.
    emptied: Condvar,
    /// There are items: the consumer waits here.
    filled: Condvar,
    capacity: usize,
    wake: Box<dyn Fn() + Send + Sync>,
}

struct State<T> {
    items: VecDeque<T>,
    closed: bool,
    /// Handles alive. The last one closes.
    producers: usize,
    /// Producers that wait for room. Notifying a condition variable costs a system call even if nobody waits.
    pushing: usize,
    /// The consumer waits for an item.
    popping: bool,
}

impl<T> Shared<T> {
    fn close(&self) {
        let mut state = lock(&self.state);
        if std::mem::replace(&mut state.closed, true) {
            return;
        }
        drop(state);
        self.emptied.notify_all();
        self.filled.notify_one();
        (self.wake)();
    }

    /// Tells the consumer of what was pushed. Only the push that finds the queue empty, under the same lock
    /// as it pushes, has to: whoever finds items there comes after one that will tell, and before the
    /// consumer has looked.
    fn announce(&self, state: MutexGuard<'_, State<T>>, was_empty: bool) {
        let popping = state.popping;
        drop(state);
        if was_empty {
            if popping {
                self.filled.notify_one();
            }
            (self.wake)();
        }
    }

    /// Tells the producers that there is room.
    fn make_room(&self, state: MutexGuard<'_, State<T>>) {
        let pushing = state.pushing;
        drop(state);
        if pushing > 0 {
            self.emptied.notify_all();
        }
    }

    /// The mistake that the models must find: looking before the lock under which the push happens.
    #[cfg(feature = "broken")]
    fn stale_look(&self) -> bool {
        lock(&self.state).items.is_empty()
    }
}

/// The end that inserts. Clones share the queue; when the last one is dropped, it is closed.
pub struct Producer<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Producer<T> {
    /// Inserts without waiting.
    ///
    /// # Errors
    /// The item comes back if the queue is full or closed.
    pub fn try_push(&self, item: T) -> Result<(), PushError<T>> {
        self.push(item, Some(Duration::ZERO))
    }

    /// Inserts, waiting for room for `timeout` at most; without one, until there is room or an end.
    ///
    /// # Errors
    /// The item comes back if the queue stayed full or is closed.
    pub fn push(&self, item: T, timeout: Option<Duration>) -> Result<(), PushError<T>> {
        #[cfg(feature = "broken")]
        let stale = self.shared.stale_look();
        let mut state = self.wait_for_room(timeout);
        if state.closed {
            return Err(PushError::Closed(item));
        }
        if state.items.len() >= self.shared.capacity {
            return Err(PushError::Full(item));
        }
        let was_empty = state.items.is_empty();
        #[cfg(feature = "broken")]
        let was_empty = was_empty && stale;
        state.items.push_back(item);
        self.shared.announce(state, was_empty);
        Ok(())
    }

    /// Inserts all of `items` in order, as many at a time as there is room for. Items of other producers may
    /// come between. `timeout` limits each wait for room, not their sum.
    ///
    /// # Errors
    /// Those not inserted come back if the queue stayed full or is closed.
    pub fn push_many(&self, items: Vec<T>, timeout: Option<Duration>) -> Result<(), PushError<Vec<T>>> {
        let mut items = items.into_iter();
        while items.len() > 0 {
            let mut state = self.wait_for_room(timeout);
            if state.closed {
                return Err(PushError::Closed(items.collect()));
            }
            let room = self.shared.capacity - state.items.len();
            if room == 0 {
                return Err(PushError::Full(items.collect()));
            }
            let was_empty = state.items.is_empty();
            state.items.extend(items.by_ref().take(room));
            self.shared.announce(state, was_empty);
        }
        Ok(())
    }

    /// Closes the queue for everybody: nothing can be inserted any more, what is in it can still be taken.
    pub fn close(&self) {
        self.shared.close();
    }

    /// Whether nothing can be inserted any more.
    pub fn is_closed(&self) -> bool {
        lock(&self.shared.state).closed
    }

    fn wait_for_room(&self, timeout: Option<Duration>) -> MutexGuard<'_, State<T>> {
        let shared = &*self.shared;
        let mut state = lock(&shared.state);
        state.pushing += 1;
        let full = |state: &mut State<T>| state.items.len() >= shared.capacity && !state.closed;
        let mut state = wait_while(&shared.emptied, state, timeout, full);
        state.pushing -= 1;
        state
    }
}

impl<T> Clone for Producer<T> {
    fn clone(&self) -> Self {
        lock(&self.shared.state).producers += 1;
        Producer { shared: self.shared.clone() }
    }
}

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        let mut state = lock(&self.shared.state);
        state.producers -= 1;
        let last = state.producers == 0;
        drop(state);
        if last {
            self.shared.close();
        }
    }
}

/// The end that takes. Dropping it closes the queue and drops what is in it.
pub struct Consumer<T> {
    shared: Arc<Shared<T>>,
    /// Items out of the queue, on their way to the caller of `drain`.
    taken: VecDeque<T>,
}

impl<T> Consumer<T> {
    /// Takes up to `max` items and hands them to `each`, without waiting and without a lock held. Returns
    /// how many. **Sleep elsewhere only after it returned zero**: nobody wakes a consumer for items that it
    /// left behind, or for an end that came with the last of them.
    ///
    /// # Errors
    /// The queue is closed and everything has been taken.
    pub fn drain(&mut self, max: usize, mut each: impl FnMut(T)) -> Result<usize, Closed> {
        let mut count = 0;
        // Taken but not handed over: `each` has panicked last time.
        let closed = self.take(max.saturating_sub(self.taken.len()));
        while count < max
            && let Some(item) = self.taken.pop_front()
        {
            count += 1;
            each(item);
        }
        if closed && count == 0 && max > 0 { Err(Closed) } else { Ok(count) }
    }

    /// Takes one item, waiting for `timeout` at most; without one, until there is an item or an end.
    ///
    /// # Errors
    /// No item came in time, or the queue is closed and everything has been taken.
    pub fn pop(&mut self, timeout: Option<Duration>) -> Result<T, PopError> {
        if let Some(item) = self.taken.pop_front() {
            return Ok(item);
        }
        let mut state = lock(&self.shared.state);
        state.popping = true;
        let mut state = wait_while(&self.shared.filled, state, timeout, |s| s.items.is_empty() && !s.closed);
        state.popping = false;
        match state.items.pop_front() {
            Some(item) => {
                self.shared.make_room(state);
                Ok(item)
            }
            None if state.closed => Err(PopError::Closed),
            None => Err(PopError::TimedOut),
        }
    }

    /// Closes the queue for everybody: nothing can be inserted any more, what is in it can still be taken.
    pub fn close(&self) {
        self.shared.close();
    }

    /// Moves up to `n` items out of the queue; whether it is closed and empty then.
    fn take(&mut self, n: usize) -> bool {
        let mut state = lock(&self.shared.state);
        if n >= state.items.len() && self.taken.is_empty() {
            std::mem::swap(&mut state.items, &mut self.taken);
        } else {
            let n = n.min(state.items.len());
            self.taken.extend(state.items.drain(..n));
        }
        let closed = state.closed && state.items.is_empty();
        self.shared.make_room(state);
        closed
    }
}

impl<T> Drop for Consumer<T> {
    fn drop(&mut self) {
        self.shared.close();
        // Items may have a `drop` of their own, which must find no lock held.
        let items = std::mem::take(&mut lock(&self.shared.state).items);
        drop(items);
    }
}

/// Why an item was not inserted; it comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushError<T> {
    /// There was no room in time: try again later.
    Full(T),
    /// The queue is closed and stays so.
    Closed(T),
}

impl<T> PushError<T> {
    /// What was not inserted.
    pub fn into_inner(self) -> T {
        match self {
            PushError::Full(item) | PushError::Closed(item) => item,
        }
    }
}

/// The queue is closed and everything has been taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

/// Why no item was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PopError {
    /// No item came in time.
    TimedOut,
    /// The queue is closed and everything has been taken.
    Closed,
}

impl<T> fmt::Display for PushError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PushError::Full(_) => "the queue is full",
            PushError::Closed(_) => "the queue is closed",
        })
    }
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the queue is closed")
    }
}

impl fmt::Display for PopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PopError::TimedOut => "no item came in time",
            PopError::Closed => "the queue is closed",
        })
    }
}

impl<T: fmt::Debug> std::error::Error for PushError<T> {}
impl std::error::Error for Closed {}
impl std::error::Error for PopError {}

#[cfg(all(test, not(loom)))]
mod tests;
