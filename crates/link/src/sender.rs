//! The sending half of a link: streams of the outbox on their way to one receiver.

use crate::carried::{AliasNumber, Item};
use crate::config::{ALIAS_REACH, Config};
use crate::event::{Event, StreamStatus};
use crate::outgoing::{Claim, Known, Outgoing};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use stayfast_frame::{Refusal, Stored};
use stayfast_store::{Level, Loaded, Origin, StoreError, StoreOp, Tail};
use stayfast_units::{Lineage, RecordNumber, StoreId, StreamId, Time};

/// How long a refused stream, or a failed read, waits before it is tried again.
const RETRY: Duration = Duration::from_secs(5);

/// The short number under which records of one lineage of one stream travel. A number is never used twice
/// in a run: a packet that arrives late must not be read as another stream's.
#[derive(Debug)]
pub(crate) struct Alias {
    pub stream: StreamId,
    pub origin: Origin,
    /// The receiver's current run has acknowledged OPEN and ORIGIN.
    pub confirmed: bool,
}

/// Something a lost packet carried that must go again.
#[derive(Debug)]
pub(crate) struct Resend {
    pub packet: u64,
    pub item: Item,
}

#[derive(Debug)]
pub(crate) struct Sender {
    pub(super) store: StoreId,
    pub(super) required: Level,
    pub(super) read_ahead: usize,
    pub(super) ask_at_most: Duration,
    pub(super) streams: Vec<Outgoing>,
    pub(super) by_name: BTreeMap<Arc<str>, StreamId>,
    pub(super) aliases: BTreeMap<AliasNumber, Alias>,
    pub(super) next_alias: AliasNumber,
    /// Streams that may have something to send, next one first.
    pub(super) round: VecDeque<StreamId>,
    pub(super) resend: VecDeque<Resend>,
    /// The receiver's window for the whole link beyond STORED; unknown before the first CREDIT.
    pub(super) credit: Option<u64>,
    /// Body bytes begun and not STORED, all streams.
    pub(super) used: u64,
    /// The stream that waits for link credit: first come, first served.
    pub(super) waiting: Option<StreamId>,
    pub(super) ask_at: Option<Time>,
    pub(super) ask_after: Duration,
    pub(super) nonce: u64,
    /// The first stream to be asked about next.
    pub(super) ask_from: usize,
    pub(super) retry_at: Option<Time>,
    pub(super) trims: VecDeque<StreamId>,
    /// The packet in flight that a probe repeats.
    probed: Option<u64>,
    /// The store accepts nothing more.
    poisoned: bool,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_resent: u64,
}

impl Sender {
    pub(crate) fn new(config: &Config, store: StoreId, tails: Vec<Tail>, nonce: u64) -> Sender {
        let mut sender = Sender {
            store,
            required: config.required,
            read_ahead: config.read_ahead,
            ask_at_most: config.ask_at_most,
            streams: Vec::new(),
            by_name: BTreeMap::new(),
            aliases: BTreeMap::new(),
            next_alias: 0,
            round: VecDeque::new(),
            resend: VecDeque::new(),
            credit: None,
            used: 0,
            waiting: None,
            ask_at: None,
            ask_after: Duration::ZERO,
            nonce,
            ask_from: 0,
            retry_at: None,
            trims: VecDeque::new(),
            probed: None,
            poisoned: false,
            bytes_sent: 0,
            bytes_resent: 0,
        };
        for tail in tails {
            sender.add_stream(tail.stream, tail.trimmed, tail.next);
        }
        sender
    }

    fn add_stream(&mut self, name: Arc<str>, trimmed: RecordNumber, next: RecordNumber) -> StreamId {
        let id = StreamId(self.streams.len() as u32);
        self.streams.push(Outgoing::new(name.clone(), trimmed, next));
        self.by_name.insert(name, id);
        id
    }

    pub(super) fn stream(&mut self, id: StreamId) -> &mut Outgoing {
        &mut self.streams[id.0 as usize]
    }

    /// The outbox's tail moved: records of `name` below `next` are durable. True if the outbox is read next: while there is
    /// enough of the stream in memory it is not.
    pub(crate) fn appended(&mut self, name: &Arc<str>, next: RecordNumber) -> bool {
        let id = match self.by_name.get(name) {
            Some(id) => *id,
            None => self.add_stream(name.clone(), RecordNumber::ZERO, next),
        };
        let stream = self.stream(id);
        if next > stream.next {
            stream.next = next;
            stream.unread_until = None;
        }
        let stream = &self.streams[id.0 as usize];
        stream.reading.is_some() || stream.wanted(self.read_ahead).is_some()
    }

    // --- the store ---

    pub(crate) fn poll_store(&mut self) -> Option<StoreOp> {
        if self.poisoned {
            return None;
        }
        if let Some(id) = self.trims.pop_front() {
            let stream = self.stream(id);
            stream.trim_queued = false;
            return Some(StoreOp::Trim { stream: stream.name.clone(), to: stream.stored });
        }
        let read_ahead = self.read_ahead;
        self.streams.iter_mut().find_map(|stream| {
            let (from, max_bytes) = stream.wanted(read_ahead)?;
            stream.reading = Some(from);
            Some(StoreOp::Read { stream: stream.name.clone(), from, max_bytes })
        })
    }

    /// The store accepts nothing more until its process is started again. True if that is new.
    pub(crate) fn poison(&mut self) -> bool {
        !core::mem::replace(&mut self.poisoned, true)
    }

    /// A read came back. Errors are tried again after a while: a read error loses nothing. So is a read that brought
    /// nothing although the tail says that there is something.
    pub(crate) fn read_done(
        &mut self,
        now: Time,
        name: &Arc<str>,
        from: RecordNumber,
        result: Result<Vec<Loaded>, StoreError>,
        events: &mut VecDeque<Event>,
    ) {
        let Some(&id) = self.by_name.get(name) else { return };
        let stream = self.stream(id);
        stream.reading = None;
        let Ok(read) = result else {
            stream.unread_until = Some(now + RETRY);
            return self.retry_by(now + RETRY);
        };
        match stream.claim.filter(|claim| claim.next.0 - 1 == from.0) {
            Some(claim) => {
                stream.claim = None;
                match stream.lineage_at(from, &read) {
                    Known::Lineage(ours) => self.settle(id, claim, ours, events),
                    Known::LetGo => self.release(id, claim.next, events),
                    Known::Nothing => {}
                }
            }
            None => self.load(now, id, from, read, events),
        }
        self.join_round(id);
    }

    fn load(&mut self, now: Time, id: StreamId, from: RecordNumber, read: Vec<Loaded>, events: &mut VecDeque<Event>) {
        let stream = self.stream(id);
        if !stream.continues(from) {
            return;
        }
        // Records that the outbox has let go are stored: another node has seen to it.
        let first = read.first().map(|loaded| loaded.run.first).filter(|first| *first > from);
        if let Some(first) = first {
            self.release(id, first, events);
        }
        let stream = self.stream(id);
        if stream.load(read) == 0 {
            stream.unread_until = Some(now + RETRY);
            self.retry_by(now + RETRY);
        }
    }

    fn retry_by(&mut self, at: Time) {
        self.retry_at = Some(self.retry_at.map_or(at, |old| old.min(at)));
    }

    fn join_round(&mut self, id: StreamId) {
        let stream = self.stream(id);
        if !stream.in_round && !stream.halted {
            stream.in_round = true;
            self.round.push_back(id);
        }
    }

    // --- what the receiver says ---

    pub(crate) fn on_stored(&mut self, stored: &Stored, level: Level, events: &mut VecDeque<Event>) {
        let Some(id) = self.aliases.get(&stored.alias).map(|alias| alias.stream) else { return };
        let required = self.required;
        let stream = self.stream(id);
        if stored.next <= stream.stored || stream.halted {
            return;
        }
        if level < required {
            events.push_back(Event::TooWeak { stream: stream.name.clone(), level });
            return;
        }
        self.claim(id, Claim { next: stored.next, lineage: stored.lineage }, events);
    }

    /// The answer to a QUERY was read from the receiver's durable cursor after it was asked. Only it can
    /// show that the receiver went back behind what it had reported. It frees nothing: how durable the records are
    /// is said by the STORED that goes with it.
    pub(crate) fn on_answer(
        &mut self,
        nonce: u64,
        alias: AliasNumber,
        next: RecordNumber,
        events: &mut VecDeque<Event>,
    ) {
        let Some(id) = self.aliases.get(&alias).map(|alias| alias.stream) else { return };
        let stream = self.stream(id);
        let Some((_, trimmed)) = stream.question.take_if(|(asked, _)| *asked == nonce) else { return };
        if next < trimmed && !stream.halted {
            let event = Event::Rollback { stream: stream.name.clone(), theirs: next, ours: trimmed };
            events.push_back(event);
            self.halt(id);
        }
    }

    /// Somebody says that records below `claim.next` are stored: true only if the last of them has the
    /// lineage that our store has there.
    fn claim(&mut self, id: StreamId, claim: Claim, events: &mut VecDeque<Event>) {
        let stream = self.stream(id);
        let last = RecordNumber(claim.next.0 - 1);
        if let Some(ours) = stream.find(last).map(|(origin, _)| origin.lineage) {
            self.settle(id, claim, ours, events);
        } else if stream.claim.is_none_or(|old| old.next < claim.next) {
            stream.claim = Some(claim);
        }
    }

    fn settle(&mut self, id: StreamId, claim: Claim, ours: Lineage, events: &mut VecDeque<Event>) {
        let stream = self.stream(id);
        if ours != claim.lineage {
            events.push_back(Event::Fenced {
                stream: stream.name.clone(),
                number: RecordNumber(claim.next.0 - 1),
                theirs: claim.lineage,
                ours,
            });
            self.halt(id);
            return;
        }
        self.release(id, claim.next, events);
    }

    /// Everything below `next` is stored.
    fn release(&mut self, id: StreamId, next: RecordNumber, events: &mut VecDeque<Event>) {
        let stream = self.stream(id);
        if next <= stream.stored {
            return;
        }
        let freed = stream.release(next);
        events.push_back(Event::Stored { stream: stream.name.clone(), next });
        if !stream.trim_queued {
            stream.trim_queued = true;
            self.trims.push_back(id);
        }
        self.used -= freed;
        self.ask_at = None;
        self.ask_after = Duration::ZERO;
    }

    /// Forgets aliases that are out of reach, but for the newest of each stream: the receiver may speak of it.
    pub(super) fn prune_aliases(&mut self) {
        let Sender { aliases, streams, next_alias, .. } = self;
        aliases.retain(|number, alias| {
            number.saturating_add(ALIAS_REACH) >= *next_alias || streams[alias.stream.0 as usize].alias == Some(*number)
        });
    }

    pub(crate) fn on_heard(&mut self, alias: AliasNumber, next: RecordNumber, events: &mut VecDeque<Event>) {
        let Some(id) = self.aliases.get(&alias).map(|alias| alias.stream) else { return };
        let stream = self.stream(id);
        if next > stream.heard && next <= stream.next {
            stream.heard = next;
            events.push_back(Event::Heard { stream: stream.name.clone(), next });
        }
    }

    pub(crate) fn on_credit(&mut self, link: u64, alias: AliasNumber, from: RecordNumber, bytes: u64) {
        self.credit = Some(link);
        let Some(id) = self.aliases.get(&alias).map(|alias| alias.stream) else { return };
        let stream = self.stream(id);
        if stream.credit.is_none_or(|(decided, _)| decided <= from) {
            stream.credit = Some((from, bytes));
        }
        for i in 0..self.streams.len() {
            self.join_round(StreamId(i as u32));
        }
    }

    pub(crate) fn on_refused(
        &mut self,
        now: Time,
        alias: AliasNumber,
        number: RecordNumber,
        reason: Refusal,
        events: &mut VecDeque<Event>,
    ) {
        let Some(id) = self.aliases.get(&alias).map(|alias| alias.stream) else { return };
        let until = now + RETRY;
        let stream = self.stream(id);
        stream.refused_until = Some(until);
        events.push_back(Event::Refused { stream: stream.name.clone(), number, reason });
        self.rewind(id);
        self.retry_by(until);
    }

    pub(crate) fn on_fenced(
        &mut self,
        alias: AliasNumber,
        number: RecordNumber,
        theirs: Lineage,
        yours: Lineage,
        events: &mut VecDeque<Event>,
    ) {
        let Some(id) = self.aliases.get(&alias).map(|alias| alias.stream) else { return };
        let stream = self.stream(id);
        if !stream.halted {
            events.push_back(Event::Fenced { stream: stream.name.clone(), number, theirs, ours: yours });
            self.halt(id);
        }
    }

    fn halt(&mut self, id: StreamId) {
        self.stream(id).halted = true;
        self.rewind(id);
    }

    /// Takes back what was sent of one stream, so that it holds no credit.
    fn rewind(&mut self, id: StreamId) {
        let stream = self.stream(id);
        let begun = stream.begun;
        stream.unsend();
        self.used -= begun;
        self.resend.retain(
            |resend| !matches!(resend.item, Item::Records { stream, .. } | Item::Part { stream, .. } if stream == id),
        );
        if self.waiting == Some(id) {
            self.waiting = None;
        }
    }

    /// Another run of the receiver answers: it has nothing in memory that it has not stored.
    pub(crate) fn unsend_all(&mut self) {
        self.resend.clear();
        self.probed = None;
        self.used = 0;
        self.waiting = None;
        self.ask_at = None;
        self.ask_after = Duration::ZERO;
        for alias in self.aliases.values_mut() {
            alias.confirmed = false;
        }
        for i in 0..self.streams.len() {
            self.streams[i].unsend();
            self.streams[i].refused_until = None;
            self.join_round(StreamId(i as u32));
        }
    }

    // --- the fate of packets ---

    /// The packet arrived, in time or late: what it carried and has not gone again need not go again.
    pub(crate) fn on_acked(&mut self, packet: u64, item: Item, late: bool) {
        if late || self.probed == Some(packet) {
            self.resend.retain(|resend| resend.packet != packet);
        }
        if let Item::Open { alias } = item
            && let Some(alias) = self.aliases.get_mut(&alias)
        {
            alias.confirmed = true;
        }
    }

    pub(crate) fn on_lost(&mut self, packet: u64, item: Item) {
        if matches!(item, Item::Records { .. } | Item::Part { .. }) {
            self.resend.push_back(Resend { packet, item });
        }
    }

    /// Something that was lost waits to be sent again.
    pub(crate) fn has_resend(&self) -> bool {
        !self.resend.is_empty()
    }

    // --- deadlines ---

    /// Starts the clock of the next question, if something is outstanding.
    pub(crate) fn arm(&mut self, now: Time, pto: Duration, jitter: u64) {
        if !self.is_outstanding() {
            self.ask_at = None;
            self.ask_after = Duration::ZERO;
        } else if self.ask_at.is_none() {
            let base = self.ask_after.max(pto).min(self.ask_at_most);
            self.ask_after = base.saturating_mul(2).min(self.ask_at_most);
            // Up to an eighth longer, so that a herd does not ask in step.
            self.ask_at = Some(now + base + base.saturating_mul((jitter % 128) as u32) / 1024);
        }
    }

    /// Something was sent that is not STORED.
    pub(crate) fn is_outstanding(&self) -> bool {
        self.streams.iter().any(Outgoing::is_outstanding)
    }

    /// Records, or a part of one, that are not STORED.
    pub(crate) fn is_missing(&self, item: Item) -> bool {
        match item {
            Item::Records { stream, first, count } => first.plus(count.into()) > self.streams[stream.0 as usize].stored,
            Item::Part { stream, number, .. } => number >= self.streams[stream.0 as usize].stored,
            Item::Open { .. } | Item::Ack { .. } | Item::News { .. } => false,
        }
    }

    /// A probe repeats what the oldest packet in flight carried.
    pub(crate) fn resend_first(&mut self, packet: u64, items: impl Iterator<Item = Item>) {
        if self.resend.iter().any(|resend| resend.packet == packet) {
            return;
        }
        self.probed = Some(packet);
        for item in items.filter(|item| matches!(item, Item::Records { .. } | Item::Part { .. })) {
            self.resend.push_front(Resend { packet, item });
        }
    }

    pub(crate) fn ask_at(&self) -> Option<Time> {
        self.ask_at
    }

    pub(crate) fn retry_at(&self) -> Option<Time> {
        self.retry_at
    }

    pub(crate) fn handle_retry(&mut self, now: Time) {
        if self.retry_at.is_some_and(|at| at <= now) {
            self.retry_at = None;
            for i in 0..self.streams.len() {
                let stream = &mut self.streams[i];
                stream.refused_until = stream.refused_until.filter(|at| *at > now);
                stream.unread_until = stream.unread_until.filter(|at| *at > now);
                self.join_round(StreamId(i as u32));
            }
            let waits = self.streams.iter().flat_map(|stream| [stream.refused_until, stream.unread_until]);
            self.retry_at = waits.flatten().min();
        }
    }

    pub(crate) fn status(&self) -> impl Iterator<Item = StreamStatus> + '_ {
        self.streams.iter().map(|stream| StreamStatus {
            name: stream.name.clone(),
            stored: stream.stored,
            heard: stream.heard,
            sent: stream.at.number,
            next: stream.next,
            halted: stream.halted,
        })
    }
}
