//! Threads, with an error that helps.

use crate::failure::{Failure, Outcome};
use std::thread::{Builder, JoinHandle};

/// Starts a thread.
pub fn start<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> Outcome<JoinHandle<T>> {
    Builder::new().spawn(run).map_err(|e| {
        let remedy = "raise the limit of processes (`ulimit -u`) or of memory (`ulimit -v`), or stop something else";
        Failure::environment(format!("no thread can be started ({e}): {remedy}"))
    })
}
