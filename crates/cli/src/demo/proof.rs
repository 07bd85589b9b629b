//! What the two databases say when all is over. Nothing else is asked.

use super::corpus::Corpus;
use super::watch::Watch;
use crate::failure::{Failure, Outcome};
use crate::files;
use crate::human;
use crate::output::{Paint, table};
use serde_json::{Value, json};
use stayfast_store_sqlite::StoredRecord;
use std::path::Path;

/// What became of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Its name.
    pub stream: String,
    /// Records that were to be sent.
    pub given: u64,
    /// Records that the sender's outbox ever took.
    pub appended: u64,
    /// Records of which the sender knows that they are stored.
    pub known: u64,
    /// Records in the receiver's table.
    pub stored: u64,
    /// Numbers that are not there.
    pub missing: u64,
    /// Records that are there although their number was there before.
    pub twice: u64,
    /// Records that came after one with a higher number.
    pub disordered: u64,
    /// Records with other bytes than were given, or with a number that was never given.
    pub different: u64,
}

impl Account {
    /// Everything arrived, once, in order, as it was.
    pub fn is_proven(&self) -> bool {
        let counts = [self.appended, self.known, self.stored].iter().all(|count| *count == self.given);
        counts && [self.missing, self.twice, self.disordered, self.different].iter().all(|count| *count == 0)
    }
}

/// Reads both databases and compares every record.
pub fn read(corpus: &Corpus, outbox: &Path, inbox: &Path) -> Outcome<Vec<Account>> {
    let streams = corpus.streams();
    let mut books: Vec<Book> = streams.iter().map(|(_, count)| Book::new(*count)).collect();
    let mut strangers = 0;
    let mut scratch = Vec::new();
    Watch::open(inbox)?.news(|record| match streams.iter().position(|(name, _)| **name == *record.key.stream) {
        Some(index) => books[index].enter(record, |n, body| corpus.is(index, n, body, &mut scratch)),
        None => strangers += 1,
    })?;
    if strangers > 0 {
        return Err(Failure::failed(format!("{} of streams that nobody sent", human::records(strangers))));
    }
    let tails = files::outbox(outbox)?.streams().map_err(|e| Failure::store(outbox, &e))?;
    let close = |((name, given), book): ((String, u64), Book)| {
        let tail = tails.iter().find(|tail| tail.name == name);
        let (appended, known) = tail.map_or((0, 0), |tail| (tail.next.0, tail.first.0));
        Account { stream: name, given, appended, known, ..book.close() }
    };
    Ok(streams.into_iter().zip(books).map(close).collect())
}

/// One stream, while its records are read.
struct Book {
    seen: Vec<bool>,
    highest: Option<u64>,
    account: Account,
}

impl Book {
    fn new(given: u64) -> Book {
        Book { seen: vec![false; given as usize], highest: None, account: Account::default() }
    }

    fn enter(&mut self, record: &StoredRecord, is: impl FnOnce(u64, &[u8]) -> bool) {
        let number = record.number.0;
        self.account.stored += 1;
        if self.highest.is_some_and(|highest| number < highest) {
            self.account.disordered += 1;
        }
        self.highest = self.highest.max(Some(number));
        match usize::try_from(number).ok().and_then(|n| self.seen.get_mut(n)) {
            Some(seen) if *seen => self.account.twice += 1,
            Some(seen) => *seen = true,
            None => {}
        }
        if !record.body.as_ref().is_ok_and(|body| is(number, body)) {
            self.account.different += 1;
        }
    }

    fn close(self) -> Account {
        let missing = self.seen.iter().filter(|seen| !**seen).count() as u64;
        Account { missing, ..self.account }
    }
}

/// The table, and the verdict below it.
pub fn text(accounts: &[Account], paint: Paint) -> String {
    let row = |a: &Account| {
        let numbers = [a.appended, a.stored, a.known, a.missing, a.twice, a.disordered, a.different];
        [a.stream.clone()].into_iter().chain(numbers.map(human::count)).collect()
    };
    let header = ["STREAM", "APPENDED", "STORED", "SENDER KNOWS", "MISSING", "TWICE", "OUT OF ORDER", "OTHER BYTES"];
    let rows: Vec<_> = accounts.iter().map(row).collect();
    let total = human::records(accounts.iter().map(|a| a.given).sum());
    let verdict = match accounts.iter().all(Account::is_proven) {
        true => paint.green(&format!("PROOF: {total}, each one stored exactly once, in order, byte for byte")),
        false => {
            paint.red(&format!("NOT PROVEN: of {total} not every one is stored exactly once, in order, as it was"))
        }
    };
    format!("{}\n{verdict}", table(&header, &rows, paint))
}

/// The same for programs.
pub fn json(accounts: &[Account]) -> Value {
    let account = |a: &Account| {
        json!({
            "stream": a.stream, "given": a.given, "appended": a.appended, "stored": a.stored, "known": a.known,
            "missing": a.missing, "twice": a.twice, "out_of_order": a.disordered, "different": a.different,
        })
    };
    json!({
        "proven": accounts.iter().all(Account::is_proven),
        "streams": accounts.iter().map(account).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stayfast_store::{Accepted, CursorKey, Delivery, Inbox, Outbox, Position, Run};
    use stayfast_store_sqlite::{Options, SqliteInbox, SqliteOutbox};
    use stayfast_units::{Lineage, RecordNumber, StoreId};

    /// Lines sent, lines stored from which number on, and what the proof says.
    fn account(sent: &[&str], stored: &[(u64, &[&str])], trimmed: u64) -> Account {
        let dir = tempfile::tempdir().unwrap();
        let (edge, hub) = (dir.path().join("edge.db"), dir.path().join("hub.db"));
        let mut outbox = SqliteOutbox::open(&edge, &Options::default()).unwrap();
        let lines: Vec<&[u8]> = sent.iter().map(|line| line.as_bytes()).collect();
        outbox.append(Corpus::LINES, &lines).unwrap();
        outbox.trim(Corpus::LINES, RecordNumber(trimmed)).unwrap();
        let mut inbox = SqliteInbox::open(&hub, &Options::default()).unwrap();
        for (i, (first, bodies)) in stored.iter().enumerate() {
            let mut run = Run::new(RecordNumber(*first));
            bodies.iter().for_each(|body| run.push(body.as_bytes()).unwrap());
            // A cursor each: this receiver is wrong on purpose.
            let key = CursorKey { sender: "edge".into(), store: StoreId(i as u64), stream: Corpus::LINES.into() };
            let to = Position { next: run.end(), lineage: Lineage(1) };
            let delivery = Delivery { key, from: Position::default(), to, run };
            assert_eq!(inbox.deliver(&delivery), Ok(Accepted::Fresh));
        }
        let corpus = Corpus::Lines(lines.iter().map(|line| line.to_vec()).collect());
        read(&corpus, &edge, &hub).unwrap().remove(0)
    }

    #[test]
    fn a_perfect_transfer_is_proven() {
        let account = account(&["a", "b", "c"], &[(0, &["a"]), (1, &["b", "c"])], 3);
        assert!(account.is_proven(), "{account:?}");
        assert!(text(&[account], Paint::stdout()).contains("PROOF: 3 records"));
    }

    #[test]
    fn every_fault_is_seen() {
        let good: (u64, &[&str]) = (0, &["a", "b", "c"]);
        let faults = [
            account(&["a", "b", "c"], &[good], 2),
            account(&["a", "b", "c"], &[(0, &["a", "b"])], 3),
            account(&["a", "b", "c"], &[good, (1, &["b"])], 3),
            account(&["a", "b", "c"], &[(1, &["b", "c"]), (0, &["a"])], 3),
            account(&["a", "b", "c"], &[(0, &["a", "B", "c"])], 3),
            account(&["a", "b", "c"], &[(0, &["a", "b", "c", "d"])], 3),
        ];
        assert!(faults.iter().all(|account| !account.is_proven()));
        let counts = |a: &Account| (a.known, a.missing, a.twice, a.disordered, a.different);
        let expected =
            [(2, 0, 0, 0, 0), (3, 1, 0, 0, 0), (3, 0, 1, 1, 0), (3, 0, 0, 1, 0), (3, 0, 0, 0, 1), (3, 0, 0, 0, 1)];
        assert_eq!(faults.iter().map(counts).collect::<Vec<_>>(), expected);
        assert!(text(&faults, Paint::stdout()).contains("NOT PROVEN"));
    }
}
