//! The thread of one outbox: appends, grouped; reads and trims for the link; a look whether others have appended.

use crate::command::{Answer, Command};
use crate::gaps::Gaps;
use crate::shared::{PeerRef, Progress, Shared, Trouble};
use stayfast_handoff::{Consumer, PopError, Producer, Watch};
use stayfast_store::{AppendError, Appended, Hole, Loaded, Outbox, StoreDone, StoreError, StoreOp, perform};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Requests that wait for the store before whoever makes the next one waits too.
pub(crate) const CAPACITY: usize = 1024;
/// Records in one transaction, of whatever many appends.
const GROUP_RECORDS: usize = 256;
/// Bytes of bodies in one transaction.
const GROUP_BYTES: usize = 1 << 20;

pub(crate) enum OutboxRequest {
    Op(StoreOp),
    Append(Append),
    /// A hint to keep.
    Note(String, String),
}

pub(crate) struct Append {
    pub stream: Arc<str>,
    pub records: Vec<Vec<u8>>,
    pub answer: Answer<Result<Appended, AppendError>>,
}

impl Append {
    fn bytes(&self) -> usize {
        self.records.iter().map(Vec::len).sum()
    }
}

impl Drop for Append {
    fn drop(&mut self) {
        // Nobody shall wait for a thread that has ended.
        self.answer.close();
    }
}

pub(crate) struct OutboxThread {
    pub peer: PeerRef,
    pub store: Box<dyn Outbox>,
    pub requests: Consumer<OutboxRequest>,
    pub commands: Producer<Command>,
    pub shared: Arc<Shared>,
    pub watch_every: Duration,
    /// What was found damaged, in earlier runs, too.
    pub gaps: BTreeMap<String, Gaps>,
}

impl OutboxThread {
    /// Until the queue is closed and everything in it is done: what was accepted is not lost.
    pub fn run(mut self) {
        let mut waiting = VecDeque::new();
        let mut look_at = Instant::now() + self.watch_every;
        loop {
            match self.requests.pop(Some(look_at.saturating_duration_since(Instant::now()))) {
                Ok(request) => {
                    waiting.push_back(request);
                    let _ = self.requests.drain(CAPACITY, |request| waiting.push_back(request));
                    while let Some(request) = waiting.pop_front() {
                        self.serve(request, &mut waiting);
                    }
                }
                Err(PopError::TimedOut) => {}
                Err(PopError::Closed) => return,
            }
            if Instant::now() >= look_at {
                self.look();
                look_at = Instant::now() + self.watch_every;
            }
        }
    }

    fn serve(&mut self, request: OutboxRequest, waiting: &mut VecDeque<OutboxRequest>) {
        match request {
            OutboxRequest::Op(op) => {
                if let Some(done) = perform(op, Some(&mut *self.store), None) {
                    if let StoreDone::Read { stream, result, .. } = &done {
                        if let Ok(loaded) = result {
                            self.count_gaps(stream, loaded);
                        }
                        if let Some(progress) = self.shared.progress(self.peer, stream) {
                            tell_trouble(&progress, result.as_ref().err());
                        }
                    }
                    let _ = self.commands.push(Command::OutboxDone(self.peer, done), None);
                }
            }
            OutboxRequest::Append(first) => self.append(first, waiting),
            OutboxRequest::Note(key, value) => {
                if let Err(error) = self.store.note(&key, &value) {
                    tracing::debug!(%error, key, "a hint could not be kept");
                }
            }
        }
    }

    /// The receiver hears of numbers without a record as they come; here they are kept, for they are lost.
    fn count_gaps(&mut self, stream: &Arc<str>, loaded: &[Loaded]) {
        let mut new = 0;
        for (first, count, hole) in loaded.iter().flat_map(|loaded| loaded.run.hole_ranges()) {
            if hole == Hole::Gap {
                new += self.gaps.entry(stream.to_string()).or_default().add(first.0, count);
            }
        }
        if new > 0
            && let Some(gaps) = self.gaps.get(&**stream)
        {
            tracing::warn!(%stream, records = new, "damaged in the outbox: they cannot be sent");
            if let Err(error) = self.store.note(&Gaps::key(stream), &gaps.to_string()) {
                tracing::warn!(%error, %stream, %gaps, "the loss could not be noted");
            }
        }
    }

    /// Everything that waits for the same stream goes into one transaction, and so into one sync.
    fn append(&mut self, first: Append, waiting: &mut VecDeque<OutboxRequest>) {
        let (mut records, mut bytes) = (first.records.len(), first.bytes());
        let mut group = vec![first];
        while let Some(OutboxRequest::Append(next)) = waiting.front() {
            records += next.records.len();
            bytes += next.bytes();
            if next.stream != group[0].stream || records > GROUP_RECORDS || bytes > GROUP_BYTES {
                break;
            }
            let Some(OutboxRequest::Append(next)) = waiting.pop_front() else { break };
            group.push(next);
        }
        match self.commit(&group) {
            // One of them is at fault, and nothing was written: each on its own.
            Err(error) if group.len() > 1 && !matches!(error, AppendError::Store(_)) => {
                for one in group {
                    let result = self.commit(std::slice::from_ref(&one));
                    self.tell(&[one], result);
                }
            }
            result => self.tell(&group, result),
        }
    }

    fn commit(&mut self, group: &[Append]) -> Result<Appended, AppendError> {
        let records: Vec<&[u8]> = group.iter().flat_map(|one| one.records.iter().map(Vec::as_slice)).collect();
        self.store.append(&group[0].stream, &records)
    }

    fn tell(&mut self, group: &[Append], result: Result<Appended, AppendError>) {
        match result {
            Ok(all) => {
                // The link first: who has an answer may ask the link about it.
                self.shared.appended(self.peer, &group[0].stream, all.end());
                let mut first = all.first;
                for one in group {
                    let mine = Appended { first, count: one.records.len() as u32, origin: all.origin };
                    first = mine.end();
                    one.answer.update(|answer| *answer = Some(Ok(mine)));
                }
            }
            Err(error) => {
                for one in group {
                    one.answer.update(|answer| *answer = Some(Err(error.clone())));
                }
                // It may be there all the same.
                if matches!(error, AppendError::Store(StoreError::Io(_))) {
                    self.announce_all();
                }
            }
        }
    }

    /// Has another process appended? Then the link must send that too.
    fn look(&mut self) {
        match self.store.changed() {
            Ok(true) => self.announce_all(),
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(%error, "the outbox cannot be watched");
                let streams = self.shared.streams(self.peer);
                streams.iter().for_each(|progress| tell_trouble(progress, Some(&error)));
            }
        }
    }

    fn announce_all(&mut self) {
        match self.store.tails() {
            Ok(tails) => tails.iter().for_each(|tail| self.shared.appended(self.peer, &tail.stream, tail.next)),
            Err(error) => tracing::warn!(%error, "the outbox cannot be read"),
        }
    }
}

/// A stream that cannot be read stands still, and whoever waits for it learns why. It ends when it can be read again.
fn tell_trouble(progress: &Watch<Progress>, error: Option<&StoreError>) {
    let trouble = error.cloned().map(Trouble::Unreadable);
    let now = progress.get().trouble;
    if now != trouble && (trouble.is_some() || matches!(now, Some(Trouble::Unreadable(_)))) {
        if let Some(trouble) = &trouble {
            tracing::warn!(%trouble, "a stream stands still");
        }
        progress.update(|progress| progress.trouble = trouble);
    }
}
