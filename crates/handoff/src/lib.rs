//! What passes between threads: the only locks of the workspace.
//!
//! * [`queue`]: many threads insert, one takes. The taker may sleep in the queue itself or somewhere else,
//!   such as in a poll of sockets; it is woken when the queue stops being empty.
//! * [`Watch`]: a value that one thread updates and others wait on. Receipts wait in it for a number.
//!
//! Every interleaving of small cases is tried in `models/`, where `--cfg loom` replaces the primitives.
#![forbid(unsafe_code)]

mod queue;
mod sync;
mod watch;

pub use queue::{Closed, Consumer, PopError, Producer, PushError, queue};
pub use watch::{WaitError, Watch};
