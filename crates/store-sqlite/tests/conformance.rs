//! The scripts and the operations that every store must pass.

use stayfast_store::conformance::{self, Subject};
use stayfast_store::fuzzing::{self, Harm};
use stayfast_store::{
    Accepted, AppendError, Appended, Cursor, CursorKey, Delivery, Inbox, Level, Loaded, Outbox, Position, StoreError,
    Tail,
};
use stayfast_store_sqlite::{Options, SqliteInbox, SqliteOutbox};
use stayfast_units::{RecordNumber, StoreId};
use std::path::PathBuf;
use tempfile::TempDir;

/// Both sides in one file, as a node that sends and receives has them.
struct Both {
    outbox: SqliteOutbox,
    inbox: SqliteInbox,
    dir: TempDir,
}

struct Sqlite {
    options: Options,
}

impl Sqlite {
    fn open(&self, dir: TempDir) -> Both {
        let path: PathBuf = dir.path().join("store.db");
        let outbox = SqliteOutbox::open(&path, &self.options).expect("opens");
        let mut both = Both { outbox, inbox: SqliteInbox::open(&path, &self.options).expect("opens"), dir };
        both.outbox.changed().expect("the inbox may have made the tables");
        both
    }
}

impl Subject for Sqlite {
    type Store = Both;
    fn fresh(&mut self) -> Both {
        self.open(tempfile::tempdir().expect("a directory"))
    }
    fn reopen(&mut self, store: Both) -> Both {
        let Both { outbox, inbox, dir } = store;
        drop((outbox, inbox));
        self.open(dir)
    }
}

impl Harm for Sqlite {
    fn effects(&mut self, store: &mut Both, key: &CursorKey) -> Vec<(RecordNumber, Vec<u8>)> {
        let records = store.inbox.records(0, usize::MAX).expect("records");
        let of_key = records.into_iter().filter(|r| r.key == *key);
        of_key.map(|r| (r.number, r.body.expect("nothing made a hole"))).collect()
    }
}

impl Outbox for Both {
    fn store_id(&self) -> StoreId {
        self.outbox.store_id()
    }
    fn append(&mut self, stream: &str, records: &[&[u8]]) -> Result<Appended, AppendError> {
        self.outbox.append(stream, records)
    }
    fn tails(&mut self) -> Result<Vec<Tail>, StoreError> {
        self.outbox.tails()
    }
    fn read(&mut self, stream: &str, from: RecordNumber, max_bytes: usize) -> Result<Vec<Loaded>, StoreError> {
        self.outbox.read(stream, from, max_bytes)
    }
    fn trim(&mut self, stream: &str, to: RecordNumber) -> Result<(), StoreError> {
        self.outbox.trim(stream, to)
    }
    fn changed(&mut self) -> Result<bool, StoreError> {
        self.outbox.changed()
    }
    fn note(&mut self, key: &str, value: &str) -> Result<(), StoreError> {
        self.outbox.note(key, value)
    }
    fn notes(&mut self) -> Result<Vec<(String, String)>, StoreError> {
        self.outbox.notes()
    }
}

impl Inbox for Both {
    fn level(&self) -> Level {
        self.inbox.level()
    }
    fn cursors(&mut self) -> Result<Vec<Cursor>, StoreError> {
        self.inbox.cursors()
    }
    fn cursor(&mut self, key: &CursorKey) -> Result<Position, StoreError> {
        self.inbox.cursor(key)
    }
    fn deliver(&mut self, delivery: &Delivery) -> Result<Accepted, StoreError> {
        self.inbox.deliver(delivery)
    }
    fn remember_peer(&mut self, name: &str, address: &str) -> Result<(), StoreError> {
        self.inbox.remember_peer(name, address)
    }
    fn peers(&mut self) -> Result<Vec<(String, String)>, StoreError> {
        self.inbox.peers()
    }
}

#[test]
fn the_outbox_conforms() {
    conformance::outbox(&mut Sqlite { options: Options::default() });
}

#[test]
fn the_inbox_conforms() {
    conformance::inbox(&mut Sqlite { options: Options::default() });
}

/// Without syncs, since only the logic is looked at, and many more operations fit into the time.
#[test]
fn sqlite_agrees_with_the_oracle() {
    let options = Options { level: Level::Process, ..Options::default() };
    bolero::check!()
        .with_test_time(core::time::Duration::from_secs(4))
        .with_max_len(1024)
        .for_each(|bytes: &[u8]| fuzzing::run(&mut Sqlite { options: options.clone() }, &fuzzing::ops(bytes)));
}
