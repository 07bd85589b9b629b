//! Ctrl-C and SIGTERM: the first asks, the second does not.

use crate::failure::{Failure, Outcome};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Has the user had enough?
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    once: Arc<AtomicBool>,
    twice: Arc<AtomicBool>,
}

impl Interrupt {
    /// From now on the first signal is only noted; another one ends the process, with exit code 1.
    pub fn catch() -> Outcome<Interrupt> {
        let interrupt = Interrupt::default();
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal finds the flag still down.
            signal_hook::flag::register_conditional_shutdown(signal, 1, interrupt.once.clone())
                .and_then(|_| signal_hook::flag::register(signal, interrupt.once.clone()))
                .map_err(not_caught)?;
        }
        Ok(interrupt)
    }

    /// The second signal is noted as well, and does not end the process: for one that must first see to its children.
    pub fn catch_both() -> Outcome<Interrupt> {
        let (mut signals, hook) = UnixStream::pair().map_err(not_caught)?;
        for signal in [SIGINT, SIGTERM] {
            let hook = hook.try_clone().map_err(not_caught)?;
            signal_hook::low_level::pipe::register(signal, hook).map_err(not_caught)?;
        }
        let interrupt = Interrupt::default();
        let flags = [interrupt.once.clone(), interrupt.twice.clone()];
        let listen = move || {
            for flag in flags {
                if signals.read_exact(&mut [0]).is_err() {
                    return;
                }
                flag.store(true, Ordering::Relaxed);
            }
        };
        std::thread::Builder::new().name("signals".to_string()).spawn(listen).map_err(not_caught)?;
        Ok(interrupt)
    }

    /// Has there been a signal?
    pub fn is_set(&self) -> bool {
        self.once.load(Ordering::Relaxed)
    }

    /// Have there been two, as far as [`catch_both`](Interrupt::catch_both) notes them?
    pub fn is_set_again(&self) -> bool {
        self.twice.load(Ordering::Relaxed)
    }
}

fn not_caught(error: std::io::Error) -> Failure {
    Failure::environment(format!("signals cannot be caught: {error}"))
}
