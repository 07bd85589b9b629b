//! Going on with an input that was sent in part: which of its records the stream has already.

use crate::failure::{Failure, Outcome};
use crate::files;
use crate::human;
use crate::input::Batch;
use crate::uplink::Uplink;
use stayfast_store::{Item, Outbox};
use stayfast_store_sqlite::{LinkLock, LinkLockError, SqliteOutbox};
use stayfast_units::RecordNumber;
use std::path::Path;

/// Records compared at a time, bytes.
const WINDOW: usize = 1 << 20;

/// A stream, and how much of its input to skip.
pub struct Resume {
    /// The stream.
    pub name: String,
    /// Number of the next record to be appended.
    pub next: u64,
    skip: Option<Skip>,
    /// Nobody else resumes it until the input ends.
    sole: Option<LinkLock>,
}

struct Skip {
    /// Number of the next record of the input.
    at: u64,
    /// The outbox, to compare with what it still has.
    outbox: SqliteOutbox,
    /// What of it was read last, beginning with number `at` or later.
    held: std::collections::VecDeque<(u64, Option<Vec<u8>>)>,
}

impl Resume {
    /// Nothing is skipped.
    pub fn nothing(name: String, uplink: &mut Uplink) -> Outcome<Resume> {
        let (_, next) = uplink.tail(&name)?;
        Ok(Resume { name, next, skip: None, sole: None })
    }

    /// The first record of the input is number `first` of the stream.
    pub fn from(name: String, first: u64, uplink: &mut Uplink, outbox: &Path) -> Outcome<Resume> {
        // Before the stream is looked at, or two would count on the same end of it.
        let sole = Some(sole(outbox, &name)?);
        let (_, next) = uplink.tail(&name)?;
        if next < first {
            let (has, first) = (human::records(next), human::count(first));
            return Err(Failure::environment(format!(
                "stream '{name}' has only {has}, so the input cannot begin at number {first}: say --resume={next}"
            )));
        }
        let skip = Skip { at: first, outbox: files::outbox(outbox)?, held: Default::default() };
        Ok(Resume { name, next, skip: Some(skip), sole })
    }

    /// Takes away from the batch what the stream has, and says how many records that were.
    ///
    /// # Errors
    /// They are not the same.
    pub fn skip(&mut self, batch: &mut Batch) -> Outcome<u64> {
        let Some(skip) = &mut self.skip else { return Ok(0) };
        let known = (self.next - skip.at).min(batch.len() as u64);
        for record in batch.records().iter().take(known as usize) {
            skip.compare(&self.name, record)?;
        }
        batch.skip(known as usize);
        if skip.at == self.next {
            self.skip = None;
        }
        Ok(known)
    }

    /// So many records were appended, the last of them before number `next`.
    ///
    /// # Errors
    /// Others have put records between, so that this input can never be resumed.
    pub fn appended(&mut self, count: u64, next: u64) -> Outcome {
        let others = next.saturating_sub(self.next).saturating_sub(count);
        self.next = next;
        match others {
            1.. if self.sole.is_some() => Err(Failure::failed(format!(
                "another process has put {} into stream '{}' meanwhile, but --resume counts on this input being all of \
                 it: this run has appended all records of the input below number {}, go on without --resume from there",
                human::records(others),
                self.name,
                human::count(next)
            ))),
            _ => Ok(()),
        }
    }

    /// The input has ended: another process may resume the stream.
    pub fn finish(&mut self) {
        self.sole = None;
    }

    /// Has the input been as long as what the stream has?
    pub fn has_skipped_all(&self) -> bool {
        self.skip.as_ref().is_none_or(|skip| skip.at == self.next)
    }
}

/// The right to resume this stream: a lock on a file beside the outbox, which means nothing once it is free.
fn sole(outbox: &Path, name: &str) -> Outcome<LinkLock> {
    // FNV-1a: any name makes a file name, and the same one in every version.
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mut path = outbox.canonicalize().unwrap_or_else(|_| outbox.to_path_buf()).into_os_string();
    path.push(format!("-resume-{hash:016x}"));
    LinkLock::take(Path::new(&path)).map_err(|error| match error {
        LinkLockError::Held { .. } => Failure::environment(format!(
            "another process resumes stream '{name}' of {}: wait until it has read its input, or stop it",
            outbox.display()
        )),
        error => Failure::environment(error),
    })
}

impl Skip {
    fn compare(&mut self, name: &str, record: &[u8]) -> Outcome {
        let at = self.at;
        self.at += 1;
        if self.held.is_empty() {
            let loaded = self.outbox.read(name, RecordNumber(at), WINDOW);
            let loaded = loaded.map_err(|e| Failure::failed(format!("stream '{name}' cannot be compared: {e}")))?;
            self.held = loaded.iter().flat_map(|loaded| loaded.run.iter().map(own)).collect();
        }
        // What was trimmed or damaged cannot be compared.
        match self.held.pop_front_if(|(number, _)| *number <= at) {
            Some((_, Some(held))) if held != record => Err(Failure::failed(format!(
                "record {} of the input is not what stream '{name}' has under number {at}: nothing was appended; \
                 --resume needs the same input again",
                human::count(at)
            ))),
            _ => Ok(()),
        }
    }
}

fn own(item: Item<'_>) -> (u64, Option<Vec<u8>>) {
    match item {
        Item::Record(number, body) => (number.0, Some(body.to_vec())),
        Item::Hole(number, _) => (number.0, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(records: &[&str]) -> Batch {
        let mut batch = Batch::default();
        records.iter().for_each(|record| batch.push(record.as_bytes()));
        batch
    }

    /// A stream with records one to four, of which the first two are trimmed.
    fn stream(dir: &tempfile::TempDir, first: u64) -> Outcome<Resume> {
        let path = dir.path().join("edge.db");
        let mut uplink = Uplink::append_only(&path, None)?;
        if uplink.tail("s")?.1 == 0 {
            uplink.append("s", &[b"zero", b"one"]).map_err(|e| Failure::append(&path, &e))?;
            uplink.append("s", &[b"two", b"three"]).map_err(|e| Failure::append(&path, &e))?;
            let mut outbox = files::outbox(&path)?;
            outbox.trim("s", RecordNumber(2)).map_err(|e| Failure::store(&path, &e))?;
        }
        Resume::from("s".into(), first, &mut uplink, &path)
    }

    #[test]
    fn what_the_stream_has_is_skipped_whatever_the_batches() {
        let dir = tempfile::tempdir().unwrap();
        for sizes in [[6, 0], [1, 5], [3, 3], [4, 2], [5, 1]] {
            let mut resume = stream(&dir, 0).unwrap();
            let input = ["zero", "one", "two", "three", "four", "five"];
            let mut left = Vec::new();
            for part in [&input[..sizes[0]], &input[sizes[0]..]] {
                let mut batch = batch(part);
                resume.skip(&mut batch).unwrap();
                left.extend(batch.records().iter().map(|record| record.to_vec()));
            }
            assert_eq!(left, [b"four", b"five"]);
            assert!(resume.has_skipped_all());
        }
    }

    #[test]
    fn another_input_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let mut resume = stream(&dir, 0).unwrap();
        let refused = resume.skip(&mut batch(&["zero", "one", "two", "THREE"])).unwrap_err();
        assert!(matches!(refused, Failure::Failed(text) if text.contains("record 3 of the input")));
    }

    #[test]
    fn an_input_may_begin_later_but_not_beyond_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let mut rest = batch(&["three", "four"]);
        assert_eq!(stream(&dir, 3).unwrap().skip(&mut rest).unwrap(), 1);
        assert_eq!(rest.records(), [b"four"]);
        assert!(matches!(stream(&dir, 5), Err(Failure::Environment(text)) if text.contains("--resume=4")));
        let mut short = stream(&dir, 0).unwrap();
        short.skip(&mut batch(&["zero"])).unwrap();
        assert!(!short.has_skipped_all());
    }
}
