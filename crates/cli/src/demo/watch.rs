//! Looks over the receiver's shoulder: what is in its database now.

use crate::failure::{Failure, Outcome};
use stayfast_store_sqlite::{Options, SqliteInbox, StoredRecord};
use std::path::{Path, PathBuf};

/// Records read at a time.
const WINDOW: usize = 512;

/// A reader of the table of stored records, which tells news from what it has seen.
pub struct Watch {
    path: PathBuf,
    inbox: SqliteInbox,
    seq: i64,
}

impl Watch {
    /// Opens the inbox, or makes it.
    pub fn open(path: &Path) -> Outcome<Watch> {
        let inbox = SqliteInbox::open(path, &Options::default()).map_err(|e| Failure::store(path, &e))?;
        Ok(Watch { path: path.to_path_buf(), inbox, seq: 0 })
    }

    /// Shows every record stored since the last call, in the order stored, and says how many there were. Costs next to
    /// nothing if there were none.
    pub fn news(&mut self, mut show: impl FnMut(&StoredRecord)) -> Outcome<u64> {
        let fail = |e| Failure::store(&self.path, &e);
        // The first call reads what was there when the inbox was opened.
        if !self.inbox.changed().map_err(fail)? && self.seq > 0 {
            return Ok(0);
        }
        let mut count = 0;
        loop {
            let records = self.inbox.records(self.seq, WINDOW).map_err(fail)?;
            let Some(last) = records.last() else { return Ok(count) };
            self.seq = last.seq;
            count += records.len() as u64;
            records.iter().for_each(&mut show);
        }
    }
}
