//! Outbox and inbox in SQLite (`docs/store.md`): write-ahead log, `synchronous=FULL`, one sync for each append and each
//! delivery, none for a trim.
//!
//! Two ways to use it. *Owned*: [`SqliteOutbox`] and [`SqliteInbox`] have a connection of their own. *Borrowed*:
//! [`Session::append`] and [`accept`] take part in a transaction of the application, in the application's own
//! database, so that its own rows and the records stand or fall together. All tables are named `stayfast_*`.
//!
//! ```
//! use stayfast_store::{Item, Outbox};
//! use stayfast_store_sqlite::{Options, SqliteOutbox};
//! use stayfast_units::RecordNumber;
//!
//! # let dir = tempfile::tempdir()?;
//! let mut outbox = SqliteOutbox::open(dir.path().join("edge.db"), &Options::default())?;
//! outbox.append("orders", &[b"order 1"])?;                       // durable
//! let loaded = outbox.read("orders", RecordNumber(0), 1 << 20)?;
//! assert_eq!(loaded[0].run.iter().next(), Some(Item::Record(RecordNumber(0), b"order 1")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod cursor;
mod error;
mod inbox;
mod inspect;
mod lock;
mod open;
mod outbox;
mod place;
mod quarantine;
mod row;
mod salvage;
mod schema;
mod session;
mod walk;

pub use cursor::accept;
pub use inbox::{SqliteInbox, StoredRecord};
pub use inspect::{Damage, StreamInfo, Verdict};
pub use lock::{LinkLock, LinkLockError};
pub use open::{Options, level_of};
pub use outbox::SqliteOutbox;
pub use quarantine::Quarantined;
pub use salvage::Salvaged;
pub use schema::{SCHEMA_VERSION, attach};
pub use session::Session;
