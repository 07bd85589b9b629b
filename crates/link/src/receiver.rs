//! The receiving half of a link: streams of one sender node on their way into the application's store.

mod news;
mod streams;

use crate::carried::AliasNumber;
use crate::config::{Config, MAX_AHEAD, MAX_ALIASES};
use crate::incoming::{Incoming, Verdict};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use stayfast_frame::{Part, Refusal};
use stayfast_ranges::{Limits, Refused};
use stayfast_store::{Cursor, CursorKey, Delivery, Hole, Level, Origin, Position, StoreOp};
use stayfast_units::{Lineage, RecordNumber, RunId, StoreId, Time};

/// Open questions kept per peer; a sender asks again.
const MAX_QUESTIONS: usize = 64;
/// How long the store is left in peace after it has failed.
const RETRY: Duration = Duration::from_millis(250);
/// In place of the number of a question: the cursor is read for our own sake.
const OWN: u64 = u64::MAX;

/// What a frame with records asks of the receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Body<'a> {
    Record(&'a [u8]),
    Part { total: u32, offset: u32, bytes: &'a [u8] },
    Hole(Hole),
}

impl<'a> Body<'a> {
    pub(crate) const fn of(part: &Part<'a>) -> Body<'a> {
        match *part {
            Part { bytes, .. } if part.is_whole() => Body::Record(bytes),
            Part { total, offset, bytes, .. } => Body::Part { total, offset, bytes },
        }
    }
}

/// The packet's bytes are in memory now (or were, or are stored): it may be acknowledged. Or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Taken {
    Yes,
    No,
}

#[derive(Debug)]
struct AliasIn {
    /// Index into [`RunView::streams`].
    stream: usize,
    origin: Option<Origin>,
}

/// What one run of the sender was told about one stream.
#[derive(Debug)]
struct StreamView {
    /// Index into [`Receiver::streams`]; `None` if the stream is refused.
    incoming: Option<usize>,
    /// The newest alias the run opened for it.
    alias: AliasNumber,
    heard: RecordNumber,
    stored_due: bool,
    credit_due: bool,
    fenced: Option<Fence>,
    refused: Option<(RecordNumber, Refusal)>,
    fenced_due: bool,
    refused_due: bool,
}

#[derive(Clone, Copy, Debug)]
struct Fence {
    number: RecordNumber,
    theirs: Lineage,
    yours: Lineage,
}

/// What the receiver knows of one run of the sender.
#[derive(Debug, Default)]
pub(crate) struct RunView {
    aliases: BTreeMap<AliasNumber, AliasIn>,
    streams: Vec<StreamView>,
    answers: VecDeque<(AliasNumber, u64, Position)>,
    /// The sender has more to send now than its last packet carried.
    pub(crate) more: bool,
    /// No STORED before then, unless the sender may wait for it.
    quiet_until: Time,
}

impl RunView {
    /// Which streams the run was told about.
    pub(crate) fn incoming(&self) -> impl Iterator<Item = usize> {
        self.streams.iter().filter_map(|seen| seen.incoming)
    }

    fn has_news(&self) -> bool {
        !self.answers.is_empty()
            || self.streams.iter().any(|s| s.stored_due || s.credit_due || s.fenced_due || s.refused_due)
    }

    /// The run has proven itself: what it was told before may have gone astray unnoticed, so it is told again.
    pub(crate) fn renew(&mut self) {
        for seen in &mut self.streams {
            seen.stored_due = seen.incoming.is_some();
            seen.credit_due = seen.incoming.is_some();
            seen.fenced_due = seen.fenced.is_some();
            seen.refused_due = seen.refused.is_some();
        }
    }
}

impl StreamView {
    fn new(incoming: Result<usize, Refusal>, alias: AliasNumber) -> StreamView {
        StreamView {
            incoming: incoming.ok(),
            alias,
            heard: RecordNumber::ZERO,
            stored_due: false,
            credit_due: incoming.is_ok(),
            fenced: None,
            refused: incoming.err().map(|reason| (RecordNumber::ZERO, reason)),
            fenced_due: false,
            refused_due: incoming.is_err(),
        }
    }
}

#[derive(Debug)]
struct Question {
    run: RunId,
    alias: AliasNumber,
    nonce: u64,
    stream: usize,
    asked: bool,
    /// The cursor could not be read: there will be no answer.
    failed: bool,
}

#[derive(Debug)]
pub(crate) struct Receiver {
    name: Arc<str>,
    allow: Vec<String>,
    level: Level,
    limits: Limits,
    max_streams: usize,
    batch_records: usize,
    batch_bytes: usize,
    /// Cursors the store had when this run began.
    known: BTreeMap<(StoreId, Arc<str>), Position>,
    streams: Vec<Incoming>,
    /// The place of a stream that nobody uses any more.
    vacant: Option<usize>,
    questions: VecDeque<Question>,
    next_question: u64,
    /// Body bytes in memory, all streams.
    held: usize,
    /// The most that is ever granted; what lies within is never refused.
    pool: usize,
    /// What is granted now: less than the pool if many peers share our memory.
    granted: usize,
    next_stream: usize,
    /// After a failure of the store: when its cursors are read.
    retry_at: Option<Time>,
    /// The store accepts nothing more.
    poisoned: bool,
}

impl Receiver {
    pub(crate) fn new(
        config: &Config,
        name: Arc<str>,
        allow: Vec<String>,
        cursors: Vec<Cursor>,
        level: Level,
    ) -> Receiver {
        let known = cursors.into_iter().map(|c| ((c.key.store, c.key.stream), c.position)).collect();
        Receiver {
            name,
            allow,
            level,
            // A sender may always begin one record, however little is granted.
            limits: Limits { bytes: config.pool + config.max_record, gaps: 8 * 1024, record: config.max_record },
            max_streams: config.max_streams,
            batch_records: config.batch_records,
            batch_bytes: config.batch_bytes,
            known,
            streams: Vec::new(),
            vacant: None,
            questions: VecDeque::new(),
            next_question: 0,
            held: 0,
            pool: config.pool,
            granted: config.pool,
            next_stream: 0,
            retry_at: None,
            poisoned: false,
        }
    }

    /// May this peer send anything at all?
    pub(crate) fn is_open(&self) -> bool {
        !self.allow.is_empty()
    }

    /// Grants so many bytes from now on.
    pub(crate) fn grant<'a>(&mut self, bytes: usize, views: impl Iterator<Item = &'a mut RunView>) {
        let bytes = bytes.min(self.pool);
        if core::mem::replace(&mut self.granted, bytes) == bytes {
            return;
        }
        for seen in views.flat_map(|view| &mut view.streams) {
            seen.credit_due |= seen.incoming.is_some();
        }
    }

    // --- frames of the sender ---

    pub(crate) fn on_open(&mut self, view: &mut RunView, alias: AliasNumber, store: StoreId, name: &str) -> Taken {
        if view.aliases.contains_key(&alias) {
            return Taken::Yes;
        }
        if view.aliases.len() >= MAX_ALIASES {
            // The sender keeps to newer ones.
            let Some(oldest) = view.aliases.keys().next().copied() else { return Taken::No };
            if oldest > alias {
                return Taken::No;
            }
            view.aliases.remove(&oldest);
        }
        let incoming = self.stream_for(store, name);
        let RunView { aliases, streams, .. } = view;
        // A refused stream takes the place of one whose alias is forgotten, so that refusals have a bound, too.
        let known = streams.iter().position(|s| match incoming {
            Ok(_) => s.incoming == incoming.ok(),
            Err(_) => s.incoming.is_none() && !aliases.contains_key(&s.alias),
        });
        let stream = match known {
            Some(known) if incoming.is_ok() => known,
            Some(free) => {
                streams[free] = StreamView::new(incoming, alias);
                free
            }
            None => {
                streams.push(StreamView::new(incoming, alias));
                streams.len() - 1
            }
        };
        view.aliases.insert(alias, AliasIn { stream, origin: None });
        let seen = &mut view.streams[stream];
        seen.alias = seen.alias.max(alias);
        if let Some(n) = seen.incoming.and_then(|i| self.streams[i].rejected) {
            seen.refused = Some((n, Refusal::Rejected));
            seen.refused_due = true;
        }
        // What is stored already is news to a sender that just began.
        seen.stored_due |= seen.incoming.is_some();
        Taken::Yes
    }

    pub(crate) fn on_origin(&mut self, view: &mut RunView, alias: AliasNumber, origin: Origin) -> Taken {
        match view.aliases.get_mut(&alias) {
            Some(known) => {
                known.origin.get_or_insert(origin);
                Taken::Yes
            }
            None => Taken::No,
        }
    }

    /// Several records of one frame; ends at the first that cannot be taken.
    pub(crate) fn on_bodies<'a>(
        &mut self,
        now: Time,
        view: &mut RunView,
        alias: AliasNumber,
        mut bodies: impl Iterator<Item = (RecordNumber, Body<'a>)>,
    ) -> Taken {
        let all = bodies.all(|(n, body)| self.on_body(now, view, alias, n, body) == Taken::Yes);
        if all { Taken::Yes } else { Taken::No }
    }

    /// Numbers without records.
    pub(crate) fn on_holes(
        &mut self,
        now: Time,
        view: &mut RunView,
        alias: AliasNumber,
        first: RecordNumber,
        (count, hole): (u64, Hole),
    ) -> Taken {
        let known = view.aliases.get(&alias).and_then(|a| view.streams[a.stream].incoming);
        let next = known.map_or(first, |i| self.streams[i].bytes.next());
        // Of those that are known one is enough to look at: a frame may name more than anybody can count.
        let (end, skipped) = (first.plus(count), next.0.saturating_sub(first.0).min(count.saturating_sub(1)));
        let holes = (first.plus(skipped).0..end.0).map(|n| (RecordNumber(n), Body::Hole(hole)));
        self.on_bodies(now, view, alias, holes)
    }

    /// A record, a part of one, or a number without a record.
    pub(crate) fn on_body(
        &mut self,
        now: Time,
        view: &mut RunView,
        alias: AliasNumber,
        n: RecordNumber,
        body: Body<'_>,
    ) -> Taken {
        let Some((seen, origin)) = view.aliases.get(&alias).and_then(|a| Some((a.stream, a.origin?))) else {
            return Taken::No;
        };
        let seen = &mut view.streams[seen];
        let Some(i) = seen.incoming else {
            seen.refused_due = true;
            return Taken::No;
        };
        let stream = &mut self.streams[i];
        let before = stream.held();
        let verdict = stream.judge(now, origin, n);
        // Another history may have made way.
        self.held = self.held + stream.held() - before;
        match verdict {
            Verdict::Below => {
                seen.stored_due = true;
                return Taken::Yes;
            }
            Verdict::Wait => return Taken::No,
            Verdict::Fenced => {
                let theirs = stream.cursor.lineage;
                seen.fenced = Some(Fence { number: stream.cursor.next, theirs, yours: origin.lineage });
                seen.fenced_due = true;
                return Taken::No;
            }
            Verdict::Take => {}
        }
        let len = match body {
            Body::Record(bytes) => bytes.len(),
            Body::Part { total, .. } => total as usize,
            Body::Hole(_) => 0,
        };
        if n < stream.bytes.next() {
            return Taken::Yes;
        }
        // A record that is begun is in `held` with its whole length, so within credit this is never met.
        let over = self.held.saturating_add(len) > self.limits.bytes && !stream.has_begun(n, len);
        if over || n.0 >= stream.cursor.next.0.saturating_add(MAX_AHEAD) {
            return Taken::No;
        }
        let before = stream.held();
        let result = match body {
            Body::Record(bytes) => stream.bytes.record(n, bytes).map(|_| ()),
            Body::Part { total, offset, bytes } => stream.bytes.part(n, total, offset, bytes).map(|_| ()),
            Body::Hole(hole) => stream.hole(n, hole),
        };
        self.held = self.held + stream.held() - before;
        match result {
            Ok(()) => {
                stream.took(now, n);
                Taken::Yes
            }
            Err(Refused::Record) => {
                seen.refused = Some((n, Refusal::TooLarge));
                seen.refused_due = true;
                Taken::No
            }
            Err(_) => Taken::No,
        }
    }

    pub(crate) fn on_query(&mut self, view: &mut RunView, run: RunId, nonce: u64, alias: AliasNumber) -> Taken {
        let Some(seen) = view.aliases.get(&alias).map(|a| a.stream) else { return Taken::No };
        let seen = &mut view.streams[seen];
        // Whatever stands in the way is told again; and STORED, since an ANSWER does not say how durable it is.
        seen.refused_due = seen.refused.is_some();
        seen.fenced_due = seen.fenced.is_some();
        let Some(stream) = seen.incoming else { return Taken::Yes };
        (seen.credit_due, seen.stored_due) = (true, true);
        let same = |q: &&mut Question| !q.asked && q.run == run && q.stream == stream;
        if let Some(waiting) = self.questions.iter_mut().find(same) {
            (waiting.alias, waiting.nonce) = (alias, nonce);
        } else if self.questions.len() < MAX_QUESTIONS {
            self.questions.push_back(Question { run, alias, nonce, stream, asked: false, failed: false });
        }
        Taken::Yes
    }

    pub(crate) fn on_blocked(&mut self, view: &mut RunView, alias: AliasNumber) {
        if let Some(seen) = view.aliases.get(&alias).map(|a| a.stream) {
            let seen = &mut view.streams[seen];
            seen.credit_due = seen.incoming.is_some();
            seen.stored_due = seen.incoming.is_some();
            seen.refused_due = seen.refused.is_some();
        }
    }

    // --- the store ---

    pub(crate) fn poll_store(&mut self) -> Option<StoreOp> {
        if self.poisoned {
            return None;
        }
        if let Some(unsure) = self.streams.iter_mut().find_map(|stream| stream.must_read().then_some(stream)) {
            return Some(StoreOp::ReadCursor { key: unsure.key.clone(), nonce: OWN });
        }
        if let Some((i, question)) = self.questions.iter_mut().enumerate().find(|(_, q)| !q.asked) {
            question.asked = true;
            // The nonce that travels to the store names our own list: two senders' nonces may be equal.
            let (base, stream) = (self.next_question, question.stream);
            return Some(StoreOp::ReadCursor { key: self.streams[stream].key.clone(), nonce: base + i as u64 });
        }
        for _ in 0..self.streams.len() {
            self.next_stream = (self.next_stream + 1) % self.streams.len();
            let stream = &mut self.streams[self.next_stream];
            if let Some(delivery) = stream.deliver(self.batch_records, self.batch_bytes) {
                return Some(StoreOp::Deliver(delivery));
            }
        }
        None
    }

    /// The store accepts nothing more until its process is started again. True if that is new.
    pub(crate) fn poison(&mut self) -> bool {
        self.retry_at = None;
        self.questions.clear();
        !core::mem::replace(&mut self.poisoned, true)
    }

    /// An operation on a cursor failed, and nobody knows which, or what became of it.
    pub(crate) fn failed(&mut self, now: Time, key: &CursorKey) {
        let Some(i) = self.find(key) else { return };
        // Whoever asked asks again.
        self.questions.iter_mut().filter(|q| q.stream == i).for_each(|q| q.failed |= q.asked);
        self.forget_failed();
        if self.streams[i].failed() {
            self.retry_at.get_or_insert(now + RETRY);
        }
    }

    /// The list keeps its places, for the answers to the others.
    fn forget_failed(&mut self) {
        while self.questions.pop_front_if(|q| q.failed).is_some() {
            self.next_question += 1;
        }
    }

    pub(crate) fn retry_at(&self) -> Option<Time> {
        self.retry_at
    }

    pub(crate) fn handle_retry(&mut self, now: Time) {
        if self.retry_at.is_some_and(|at| at <= now) {
            self.retry_at = None;
            self.streams.iter_mut().for_each(Incoming::retry);
        }
    }

    fn find(&self, key: &CursorKey) -> Option<usize> {
        self.streams.iter().position(|s| s.key == *key)
    }

    /// The application's transaction is durable, with the cursor in it.
    pub(crate) fn delivered<'a>(
        &mut self,
        key: &CursorKey,
        level: Level,
        to: Position,
        views: impl Iterator<Item = &'a mut RunView>,
    ) {
        let Some(i) = self.find(key) else { return };
        self.level = level;
        self.change(i, |stream| stream.stored(to));
        self.announce(i, views);
    }

    pub(crate) fn conflict<'a>(&mut self, key: &CursorKey, at: Position, views: impl Iterator<Item = &'a mut RunView>) {
        let Some(i) = self.find(key) else { return };
        self.moved(i, at);
        self.announce(i, views);
    }

    fn moved(&mut self, i: usize, at: Position) {
        self.change(i, |stream| {
            stream.moved(at);
        });
    }

    fn change(&mut self, i: usize, f: impl FnOnce(&mut Incoming)) {
        let before = self.streams[i].held();
        f(&mut self.streams[i]);
        self.held = self.held + self.streams[i].held() - before;
    }

    fn announce<'a>(&self, i: usize, views: impl Iterator<Item = &'a mut RunView>) {
        for view in views {
            for seen in view.streams.iter_mut().filter(|seen| seen.incoming == Some(i)) {
                seen.stored_due = true;
            }
        }
    }

    /// A batch came back undelivered: the application dropped it.
    pub(crate) fn returned(&mut self, delivery: Delivery) {
        if let Some(i) = self.find(&delivery.key) {
            self.streams[i].returned();
        }
    }

    /// The application refuses a record for good: the sender is told and the stream stands still.
    pub(crate) fn rejected<'a>(
        &mut self,
        key: &CursorKey,
        n: RecordNumber,
        views: impl Iterator<Item = &'a mut RunView>,
    ) {
        let Some(i) = self.find(key) else { return };
        self.streams[i].rejected = Some(n);
        for view in views {
            for seen in view.streams.iter_mut().filter(|seen| seen.incoming == Some(i)) {
                seen.refused = Some((n, Refusal::Rejected));
                seen.refused_due = true;
            }
        }
    }

    /// The durable cursor was read, after its question came.
    pub(crate) fn cursor_read<'a>(
        &mut self,
        key: &CursorKey,
        nonce: u64,
        position: Position,
        views: impl Iterator<Item = (RunId, &'a mut RunView)>,
    ) {
        let Some(stream) = self.find(key) else { return };
        if nonce == OWN {
            if self.streams[stream].is_reading() {
                self.moved(stream, position);
                self.announce(stream, views.map(|(_, view)| view));
            }
            return;
        }
        let Some(i) = nonce.checked_sub(self.next_question).map(|i| i as usize) else { return };
        if self.questions.get(i).is_none_or(|question| question.stream != stream) {
            return;
        }
        // Those before it will not be answered any more; their senders ask again.
        self.next_question += i as u64 + 1;
        let Some(question) = self.questions.drain(..=i).next_back() else { return };
        self.forget_failed();
        // Another node, or another key of the same peer, has stored since: go on from there. With a delivery out, its
        // outcome will tell.
        if position.next > self.streams[stream].cursor.next && !self.streams[stream].is_given() {
            self.moved(stream, position);
        }
        let mut views = views.filter(|(run, _)| *run == question.run);
        if let Some((_, view)) = views.next() {
            // Only the newest answer about a stream says something.
            view.answers.retain(|(alias, ..)| *alias != question.alias);
            view.answers.push_back((question.alias, question.nonce, position));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_nul_is_refused_whatever_is_allowed() {
        let (config, allow) = (Config::default(), Vec::from(["*".into()]));
        let mut receiver = Receiver::new(&config, "pi3".into(), allow, Vec::new(), Level::Power);
        assert_eq!(receiver.stream_for(StoreId(1), "a\0b"), Err(Refusal::Unauthorized));
        assert_eq!(receiver.stream_for(StoreId(1), "a b"), Ok(0));
    }
}
