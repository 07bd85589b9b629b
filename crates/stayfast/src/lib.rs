//! Records that arrive: in order per stream, exactly once, encrypted, over UDP, with no connection to lose.
//!
//! Four things: an [`Identity`] (a key), an [`Outbox`] (records that are not yet known to be stored at the other end),
//! a [`Link`] that sends them, and an [`Inbox`] that takes them. Kill either process at any instant, pull the network
//! for a week, move a store to another machine: the link goes on with the next packet.
//!
//! The sender:
//!
//! ```no_run
//! use std::time::Duration;
//! use stayfast::{Identity, Link, Outbox};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let outbox = Outbox::open("edge.db")?;                       // SQLite; or your own store
//! let link = Link::new(Identity::load_or_create("edge.key")?, outbox)
//!     .to("hub.example:4711", "hSDwCYkwp1R0i33ctD73Wg2_Og0mOBr066SpjqqbTmo") // nothing is dialled
//!     .spawn()?;
//! let receipt = link.put("orders", b"order 1")?;               // durable on return
//! receipt.stored(Duration::from_secs(30))?;                    // optional
//! # Ok(())
//! # }
//! ```
//!
//! The receiver:
//!
//! ```no_run
//! use stayfast::{Cursors, Fresh, Identity, Inbox};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut db = rusqlite::Connection::open("hub.db")?;
//! let mut inbox = Inbox::bind("[::]:4711", Identity::load_or_create("hub.key")?, Cursors::sqlite("hub.db")?)?
//!     .authorized("authorized")?;
//! loop {
//!     let batch = inbox.next()?;                               // in order per (sender, stream)
//!     let tx = db.transaction()?;
//!     let Fresh(delivery) = batch.accept(&tx)? else { continue }; // Raced: another node was first
//!     for r in &batch {
//!         tx.execute("INSERT INTO orders VALUES (?1)", [r.bytes()])?;
//!     }
//!     tx.commit()?;                                            // cursor and effect together: exactly once
//!     delivery.stored();                                       // only now STORED leaves
//! }
//! # }
//! ```
//!
//! A file [`authorized`](Inbox::authorized) lists who may send. Anything but the cursor in the same transaction as the
//! effect is at-least-once.
#![forbid(unsafe_code)]

mod authorized;
mod batch;
mod cursors;
mod error;
mod identity;
mod inbox;
mod link;
mod outbox;
mod receipt;

pub use authorized::Authorized;
pub use batch::Accepted::{Fresh, Raced};
pub use batch::{Accepted, Batch, Delivery, Item, Record};
pub use cursors::Cursors;
pub use error::{AuthorizedError, BindError, IdentityError, LinkError, PutError, ReceiptError, Stopped};
pub use identity::Identity;
pub use inbox::Inbox;
pub use link::{Link, LinkBuilder};
pub use outbox::Outbox;
pub use receipt::Receipt;

pub use rusqlite;
pub use stayfast_net::{Counters, Ecn, Figures, Gaps, Missing, PeerStatus, Progress, Settings, StartError, Trouble};
pub use stayfast_seal::{KeyError, PublicKey};
pub use stayfast_store::{AppendError, Level, Limits, StoreError};
pub use stayfast_store_sqlite::{LinkLockError, Options};
pub use stayfast_units::RecordNumber;
