use stayfast_net::Deliveries;
use stayfast_store::{Inbox, Level, StoreError};
use stayfast_store_sqlite::{Options, SqliteInbox};
use std::path::Path;

/// Where an inbox keeps how far each stream has come: in the application's own database, so that a cursor moves in the
/// transaction that holds the effect.
pub struct Cursors {
    pub(crate) store: Box<dyn Inbox>,
    pub(crate) level: Level,
    pub(crate) deliveries: Deliveries,
}

impl Cursors {
    /// In a SQLite file: that of the application, which opens it with `rusqlite` as ever. It is made if there is none,
    /// and uses a write-ahead log from now on.
    ///
    /// # Errors
    /// The file cannot be used; the text says why.
    pub fn sqlite(path: impl AsRef<Path>) -> Result<Cursors, StoreError> {
        Cursors::sqlite_with(path, &Options::default())
    }

    /// The same, with another level of durability.
    ///
    /// # Errors
    /// The file cannot be used; the text says why.
    pub fn sqlite_with(path: impl AsRef<Path>, options: &Options) -> Result<Cursors, StoreError> {
        let mut cursors = Cursors::custom(Box::new(SqliteInbox::open(path, options)?));
        cursors.level = options.level;
        Ok(cursors)
    }

    /// Another store. Its own `deliver` is used with [`keep_records`](Cursors::keep_records) only.
    pub fn custom(store: Box<dyn Inbox>) -> Cursors {
        Cursors { level: store.level(), store, deliveries: Deliveries::Application }
    }

    /// Lets the store keep the records itself, in the transaction that moves the cursor (in SQLite: in the table
    /// `stayfast_records`). [`Inbox::next`](crate::Inbox::next) then has nothing to give.
    #[must_use]
    pub fn keep_records(mut self) -> Cursors {
        self.deliveries = Deliveries::Inbox;
        self
    }
}
