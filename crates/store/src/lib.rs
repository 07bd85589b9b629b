//! What must survive a crash, as operations and outcomes (`docs/store.md`).
//!
//! The sender keeps an [`Outbox`]: records that are not yet known to be stored at the other end. The receiver keeps an
//! [`Inbox`]: one cursor per stream, moved by compare-and-swap in the transaction that stores the records. Nothing
//! here opens a file; adapters do, and [`Memory`] is the model that every adapter must agree with: the scripts of
//! `conformance` (a feature) run against both.
//!
//! ```
//! use stayfast_store::{Inbox, Memory, Outbox};
//!
//! let mut outbox = Memory::new(1);
//! let appended = outbox.append("orders", &[b"order 1", b"order 2"])?;
//! assert_eq!((appended.first.0, appended.count), (0, 2));
//! assert_eq!(outbox.tails()?[0].next.0, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(test, feature = "fuzzing"))]
extern crate std;

mod error;
mod face;
mod limits;
mod memory;
mod op;
mod run;
mod types;

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;

pub use error::{AppendError, StoreError};
pub use face::{Inbox, Outbox};
pub use limits::{Limits, MAX_BATCH_BYTES, MAX_BATCH_RECORDS, MAX_STREAM_NAME};
pub use memory::{Fault, Memory, On};
pub use op::{StoreDone, StoreOp, perform};
pub use run::{BadRun, Hole, Holes, Item, Run, RunFull};
pub use types::{Accepted, Appended, Cursor, CursorKey, Delivery, Level, Loaded, Origin, Position, Tail};
