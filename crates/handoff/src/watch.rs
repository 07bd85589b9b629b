use crate::sync::{Condvar, Mutex, lock, wait_while};
use std::fmt;
use std::time::Duration;

/// A value that one thread updates and others wait on.
///
/// Share it in an `Arc`. A receipt waits in the watch of its stream until the number of stored records has
/// passed its own.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use stayfast_handoff::{WaitError, Watch};
///
/// let stored = Arc::new(Watch::new(0_u64));
/// let link = stored.clone();
/// let thread = std::thread::spawn(move || link.update(|next| *next = 7));
/// assert_eq!(stored.wait_until(|next| *next > 6, Some(Duration::from_secs(30))), Ok(7));
/// thread.join().unwrap();
///
/// assert_eq!(stored.wait_until(|next| *next > 7, Some(Duration::ZERO)), Err(WaitError::TimedOut));
/// stored.close();
/// assert_eq!(stored.wait_until(|next| *next > 7, None), Err(WaitError::Closed));
/// ```
pub struct Watch<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    value: T,
    closed: bool,
    /// Threads that wait. Notifying a condition variable costs a system call even if nobody does.
    waiting: usize,
}

impl<T> Watch<T> {
    /// A watch whose value is `value`.
    pub fn new(value: T) -> Watch<T> {
        Watch { state: Mutex::new(State { value, closed: false, waiting: 0 }), changed: Condvar::new() }
    }

    /// Changes the value and wakes those who wait. `change` runs under the lock: it must not wait, and not
    /// touch this watch. If it panics, the value stays as it left it and nobody is woken.
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        #[cfg(feature = "broken")]
        let stale = lock(&self.state).waiting;
        let mut state = lock(&self.state);
        let result = change(&mut state.value);
        let waiting = state.waiting;
        #[cfg(feature = "broken")]
        let waiting = waiting.min(stale);
        drop(state);
        if waiting > 0 {
            self.changed.notify_all();
        }
        result
    }

    /// A copy of the value as it is now.
    pub fn get(&self) -> T
    where
        T: Clone,
    {
        lock(&self.state).value.clone()
    }

    /// Waits until the value satisfies `enough`, for `timeout` at most; without one, for as long as it takes.
    /// Returns the value that did. `enough` runs under the lock, any number of times: it must not wait, and
    /// not touch this watch.
    ///
    /// # Errors
    /// The time is over, or the watch is closed and its value does not satisfy.
    pub fn wait_until(&self, mut enough: impl FnMut(&T) -> bool, timeout: Option<Duration>) -> Result<T, WaitError>
    where
        T: Clone,
    {
        let mut satisfied = false;
        let mut state = lock(&self.state);
        state.waiting += 1;
        let mut state = wait_while(&self.changed, state, timeout, |state| {
            satisfied = enough(&state.value);
            !satisfied && !state.closed
        });
        state.waiting -= 1;
        match state.closed {
            _ if satisfied => Ok(state.value.clone()),
            true => Err(WaitError::Closed),
            false => Err(WaitError::TimedOut),
        }
    }

    /// No more updates are to be expected: those who wait in vain are told so.
    pub fn close(&self) {
        lock(&self.state).closed = true;
        self.changed.notify_all();
    }
}

/// Why a wait ended without its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitError {
    /// The time is over; the value may still come.
    TimedOut,
    /// The watch is closed; the value will not come.
    Closed,
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WaitError::TimedOut => "the value did not come in time",
            WaitError::Closed => "the value will not come: its source has ended",
        })
    }
}

impl std::error::Error for WaitError {}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    const LONG: Option<Duration> = Some(Duration::from_secs(60));

    #[test]
    fn every_waiter_sees_its_number() {
        let watch = Arc::new(Watch::new(0_u32));
        let waiters: Vec<_> = (1..=20)
            .map(|n| {
                let watch = watch.clone();
                thread::spawn(move || watch.wait_until(|v| *v >= n, LONG))
            })
            .collect();
        for _ in 0..20 {
            watch.update(|v| *v += 1);
        }
        for (n, waiter) in (1..=20).zip(waiters) {
            assert!(waiter.join().unwrap().unwrap() >= n);
        }
        assert_eq!(watch.get(), 20);
    }

    #[test]
    fn a_value_that_is_there_is_not_waited_for_even_after_the_end() {
        let watch = Watch::new(3);
        watch.close();
        assert_eq!(watch.wait_until(|v| *v == 3, Some(Duration::ZERO)), Ok(3));
        assert_eq!(watch.wait_until(|v| *v == 4, LONG), Err(WaitError::Closed));
    }

    #[test]
    fn a_wait_ends_in_time() {
        let watch = Watch::new(3);
        assert_eq!(watch.wait_until(|v| *v == 4, Some(Duration::from_millis(5))), Err(WaitError::TimedOut));
    }

    #[test]
    fn closing_ends_a_wait() {
        let watch = Arc::new(Watch::new(0));
        let waiter = {
            let watch = watch.clone();
            thread::spawn(move || watch.wait_until(|v| *v == 1, LONG))
        };
        watch.close();
        assert_eq!(waiter.join().unwrap(), Err(WaitError::Closed));
    }

    #[test]
    fn a_panicking_update_spoils_nothing() {
        let watch = Arc::new(Watch::new(1));
        let other = watch.clone();
        thread::spawn(move || other.update(|_| panic!("on purpose"))).join().unwrap_err();
        assert_eq!(watch.update(|v| std::mem::replace(v, 2)), 1);
        assert_eq!(watch.get(), 2);
    }
}
