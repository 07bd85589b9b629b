use stayfast_store::{AppendError, Appended, StoreError};
use stayfast_store_sqlite::{LinkLock, LinkLockError, Options, SqliteOutbox};
use std::path::Path;

/// The sender's durable list of records that are not yet known to be stored at the other end.
///
/// Any number of processes append to one store; one runs the [`Link`](crate::Link), and sends what all have appended.
///
/// ```
/// use stayfast::Outbox;
///
/// # let dir = tempfile::tempdir()?;
/// let mut outbox = Outbox::open(dir.path().join("edge.db"))?;
/// let appended = outbox.append("orders", &[b"order 1", b"order 2"])?;   // durable; a link will send it some day
/// assert_eq!((appended.first.0, appended.count), (0, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Outbox(Kind);

enum Kind {
    Sqlite(Box<SqliteOutbox>),
    Other(Box<dyn stayfast_store::Outbox>),
}

impl Outbox {
    /// Opens the SQLite store in a file, or makes it.
    ///
    /// # Errors
    /// The file cannot be used; the text says why.
    pub fn open(path: impl AsRef<Path>) -> Result<Outbox, StoreError> {
        Outbox::open_with(path, &Options::default())
    }

    /// The same, with limits or another level of durability.
    ///
    /// # Errors
    /// The file cannot be used; the text says why.
    pub fn open_with(path: impl AsRef<Path>, options: &Options) -> Result<Outbox, StoreError> {
        Ok(Outbox(Kind::Sqlite(Box::new(SqliteOutbox::open(path, options)?))))
    }

    /// Another store. That only one process runs its link is up to it.
    pub fn custom(store: Box<dyn stayfast_store::Outbox>) -> Outbox {
        Outbox(Kind::Other(store))
    }

    /// Appends records to a stream, all or none, without a link. They are durable when this returns.
    ///
    /// # Errors
    /// Nothing was appended; the text says why.
    pub fn append(&mut self, stream: &str, records: &[&[u8]]) -> Result<Appended, AppendError> {
        match &mut self.0 {
            Kind::Sqlite(store) => stayfast_store::Outbox::append(&mut **store, stream, records),
            Kind::Other(store) => store.append(stream, records),
        }
    }

    /// The right to run the link, and the store.
    pub(crate) fn into_link(self) -> Result<(Option<LinkLock>, Box<dyn stayfast_store::Outbox>), LinkLockError> {
        match self.0 {
            Kind::Sqlite(store) => Ok((Some(store.lock_link()?), store)),
            Kind::Other(store) => Ok((None, store)),
        }
    }
}
