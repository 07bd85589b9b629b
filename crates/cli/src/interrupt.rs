//! Ctrl-C and SIGTERM: the first asks, the second does not.

use crate::failure::{Failure, Outcome};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Has the user had enough?
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on the first signal is only noted; another one ends the process, with exit code 1.
    pub fn catch() -> Outcome<Interrupt> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal finds the flag still down.
            signal_hook::flag::register_conditional_shutdown(signal, 1, flag.clone())
                .and_then(|_| signal_hook::flag::register(signal, flag.clone()))
                .map_err(|e| Failure::environment(format!("signals cannot be caught: {e}")))?;
        }
        Ok(Interrupt(flag))
    }

    /// Has there been a signal?
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
