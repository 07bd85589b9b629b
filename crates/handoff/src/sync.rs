//! The primitives, from std or from loom, and the two things done with them everywhere.

#[cfg(loom)]
pub(crate) use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
#[cfg(not(loom))]
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use std::sync::PoisonError;
use std::time::Duration;

/// Locks. A panic elsewhere is no reason to panic here: this crate leaves nothing half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits while `condition` holds, for `timeout` at most; without one, for as long as it takes. A timeout
/// of zero looks once and does not wait.
pub(crate) fn wait_while<'a, T>(
    condvar: &Condvar,
    mut guard: MutexGuard<'a, T>,
    timeout: Option<Duration>,
    mut condition: impl FnMut(&mut T) -> bool,
) -> MutexGuard<'a, T> {
    if !condition(&mut guard) || timeout == Some(Duration::ZERO) {
        return guard;
    }
    wait_on(condvar, guard, timeout, condition)
}

#[cfg(not(loom))]
fn wait_on<'a, T>(
    condvar: &Condvar,
    guard: MutexGuard<'a, T>,
    timeout: Option<Duration>,
    condition: impl FnMut(&mut T) -> bool,
) -> MutexGuard<'a, T> {
    match timeout {
        None => condvar.wait_while(guard, condition).unwrap_or_else(PoisonError::into_inner),
        Some(limit) => condvar.wait_timeout_while(guard, limit, condition).unwrap_or_else(PoisonError::into_inner).0,
    }
}

/// Loom knows no time: whoever waits is notified, or the model reports a deadlock.
#[cfg(loom)]
fn wait_on<'a, T>(
    condvar: &Condvar,
    mut guard: MutexGuard<'a, T>,
    _timeout: Option<Duration>,
    mut condition: impl FnMut(&mut T) -> bool,
) -> MutexGuard<'a, T> {
    while condition(&mut guard) {
        guard = condvar.wait(guard).unwrap_or_else(PoisonError::into_inner);
    }
    guard
}
