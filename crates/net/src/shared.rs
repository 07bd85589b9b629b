use crate::bell::Bell;
use crate::outbox::OutboxRequest;
use crate::pending::Queue;
use stayfast_frame::Refusal;
use stayfast_handoff::{Producer, Watch};
use stayfast_store::{CursorKey, Delivery, Hole, Level, StoreError, Tail};
use stayfast_units::{Lineage, RecordNumber};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One peer of a driver, by a number that the driver never uses again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerRef(pub(crate) u32);

/// How far one outgoing stream has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// All records below are stored at the receiver.
    pub stored: RecordNumber,
    /// All records below are in the receiver's memory.
    pub heard: RecordNumber,
    /// Why the stream stands still, if it does. Ends by itself when the stream goes on.
    pub trouble: Option<Trouble>,
}

/// Why a stream stands still.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// The receiver stores less durably than required, so nothing is let go.
    #[error("the receiver stores only at level {0}: raise its durability, or require less here")]
    TooWeak(Level),
    /// The receiver holds other records under these numbers.
    #[error(
        "the receiver has another history from record {number} on ({}): this outbox was restored from an old copy, or has a clone; stop the copy, or start a new stream", histories(*theirs, *ours)
    )]
    Fenced {
        /// Where the histories part.
        number: RecordNumber,
        /// The lineage that the receiver has there.
        theirs: Lineage,
        /// The lineage that this outbox has there.
        ours: Lineage,
    },
    /// The receiver does not take the stream or the record.
    #[error("the receiver refuses record {number}: {}", remedy(*reason))]
    Refused {
        /// The record.
        number: RecordNumber,
        /// Why.
        reason: Refusal,
    },
    /// The receiver has lost records that it had reported as stored.
    #[error(
        "the receiver stands at record {theirs}, but had stored all below {ours}: it was restored from an old copy, and the records between are no longer here; bring its newer state back, or accept the gap and start a new stream"
    )]
    Rollback {
        /// Where the receiver stands now.
        theirs: RecordNumber,
        /// What it had reported.
        ours: RecordNumber,
    },
    /// The outbox does not give its records out.
    #[error("the outbox cannot be read: {0}")]
    Unreadable(StoreError),
}

fn histories(theirs: Lineage, ours: Lineage) -> String {
    match ours {
        Lineage::NONE => format!("lineage {theirs} there, while this outbox begins the stream anew"),
        _ => format!("lineage {theirs} there, {ours} here"),
    }
}

fn remedy(reason: Refusal) -> &'static str {
    match reason {
        Refusal::Unauthorized => "this stream is not allowed there; add a pattern for it to the receiver's list",
        Refusal::TooLarge => "it is over the receiver's limit; raise the limit there",
        Refusal::TooManyStreams => "it has as many streams as it takes; use fewer, or raise the limit there",
        Refusal::Rejected => "its application has rejected the record for good; a person must decide",
    }
}

/// Consecutive numbers of a stream that came without a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Whose stream.
    pub key: CursorKey,
    /// The first number.
    pub first: RecordNumber,
    /// How many.
    pub count: u64,
    /// Why.
    pub hole: Hole,
}

impl Missing {
    /// What is missing in a delivery.
    pub fn of(delivery: &Delivery) -> impl Iterator<Item = Missing> {
        let one = |(first, count, hole)| Missing { key: delivery.key.clone(), first, count, hole };
        delivery.run.hole_ranges().map(one)
    }
}

/// Most entries of [`Shared::missing`].
const MOST_MISSING: usize = 1024;

/// What the threads of a driver share.
pub(crate) struct Shared {
    pub bell: Bell,
    pub registry: Watch<Registry>,
    /// Outbox tails that have moved since the link thread last looked: one entry per stream, whatever the rate.
    tails: Watch<BTreeMap<(PeerRef, Arc<str>), RecordNumber>>,
    pub deliveries: Queue,
    /// What the inbox has stored as missing and nobody has taken note of yet.
    pub missing: Watch<Vec<Missing>>,
    /// Why the inbox does not store, if it does not.
    pub inbox_trouble: Watch<Option<StoreError>>,
    pub stopped: Watch<bool>,
}

/// What is known of the peers, outside of the link thread.
#[derive(Default)]
pub(crate) struct Registry {
    next: u32,
    pub peers: BTreeMap<PeerRef, Entry>,
}

pub(crate) struct Entry {
    pub name: Arc<str>,
    pub outbox: Option<Producer<OutboxRequest>>,
    pub streams: BTreeMap<Arc<str>, Arc<Watch<Progress>>>,
}

impl Registry {
    pub fn enter(&mut self, name: Arc<str>, outbox: Option<Producer<OutboxRequest>>, tails: &[Tail]) -> PeerRef {
        let peer = PeerRef(self.next);
        self.next += 1;
        let progress = |tail: &Tail| Progress { stored: tail.trimmed, heard: tail.trimmed, trouble: None };
        let streams = tails.iter().map(|tail| (tail.stream.clone(), Arc::new(Watch::new(progress(tail))))).collect();
        self.peers.insert(peer, Entry { name, outbox, streams });
        peer
    }
}

impl Entry {
    pub fn progress(&mut self, stream: &str) -> Arc<Watch<Progress>> {
        if let Some(watch) = self.streams.get(stream) {
            return watch.clone();
        }
        let watch = Arc::new(Watch::new(Progress::default()));
        self.streams.insert(stream.into(), watch.clone());
        watch
    }

    fn close(&self) {
        self.streams.values().for_each(|watch| watch.close());
        if let Some(outbox) = &self.outbox {
            outbox.close();
        }
    }
}

impl Shared {
    pub fn new(bell: Bell) -> Shared {
        Shared {
            bell,
            registry: Watch::new(Registry::default()),
            tails: Watch::new(BTreeMap::new()),
            deliveries: Queue::new(),
            missing: Watch::new(Vec::new()),
            inbox_trouble: Watch::new(None),
            stopped: Watch::new(false),
        }
    }

    /// Records of `stream` below `next` are durable.
    pub fn appended(&self, peer: PeerRef, stream: &Arc<str>, next: RecordNumber) {
        let first = self.tails.update(|tails| {
            let first = tails.is_empty();
            let tail = tails.entry((peer, stream.clone())).or_default();
            *tail = next.max(*tail);
            first
        });
        if first {
            self.bell.ring();
        }
    }

    /// The inbox has stored this.
    pub fn delivered(&self, delivery: &Delivery) {
        if delivery.run.hole_ranges().next().is_some() {
            self.missing.update(|missing| {
                let room = MOST_MISSING.saturating_sub(missing.len());
                missing.extend(Missing::of(delivery).take(room));
            });
        }
    }

    pub fn take_tails(&self) -> BTreeMap<(PeerRef, Arc<str>), RecordNumber> {
        self.tails.update(std::mem::take)
    }

    pub fn progress(&self, peer: PeerRef, stream: &str) -> Option<Arc<Watch<Progress>>> {
        self.registry.update(|registry| registry.peers.get_mut(&peer).map(|entry| entry.progress(stream)))
    }

    /// All streams of a peer.
    pub fn streams(&self, peer: PeerRef) -> Vec<Arc<Watch<Progress>>> {
        let streams = |entry: &Entry| entry.streams.values().cloned().collect();
        self.registry.update(|registry| registry.peers.get(&peer).map(streams).unwrap_or_default())
    }

    pub fn knows(&self, peer: PeerRef) -> bool {
        self.registry.update(|registry| registry.peers.contains_key(&peer))
    }

    /// Forgets a peer. Whoever waits for its receipts is told that there will be none.
    pub fn remove(&self, peer: PeerRef) {
        if let Some(entry) = self.registry.update(|registry| registry.peers.remove(&peer)) {
            entry.close();
        }
    }

    /// The driver has ended.
    pub fn stop(&self) {
        self.stopped.update(|stopped| *stopped = true);
        self.stopped.close();
        self.deliveries.close();
        let peers = self.registry.update(|registry| std::mem::take(&mut registry.peers));
        peers.values().for_each(Entry::close);
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped.get()
    }
}
