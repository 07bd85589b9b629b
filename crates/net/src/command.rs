use crate::outbox::OutboxRequest;
use crate::shared::PeerRef;
use crate::status::{Counters, PeerStatus};
use stayfast_handoff::{Producer, Watch};
use stayfast_link::PeerId;
use stayfast_seal::PublicKey;
use stayfast_store::{Cursor, Delivery, Level, Position, StoreDone, Tail};
use stayfast_units::StoreId;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

/// What other threads tell the link thread.
pub(crate) enum Command {
    Add(Box<NewPeer>),
    Remove(PeerRef),
    /// What became of an operation of the inbox.
    Done(PeerId, StoreDone),
    /// Another node was first with a delivery, and this is where the cursor stands. If that is amid the delivery, here
    /// is what was delivered: its rest is still to be stored, and no longer in the machine's memory.
    Raced(PeerId, Position, Delivery),
    /// What became of an operation of this peer's outbox.
    OutboxDone(PeerRef, StoreDone),
    /// Where a peer may be reached.
    Addresses(PeerRef, Vec<SocketAddr>),
    /// Everything said before is done. From the first of these on, datagrams are taken: those that came earlier wait in
    /// the kernel, lest they meet a node that does not know its peers yet.
    Settle(Answer<()>),
    Status(Answer<(Vec<PeerStatus>, Counters)>),
    Stop,
}

/// A place for an answer that somebody waits for.
pub(crate) type Answer<T> = Arc<Watch<Option<T>>>;

/// A peer with all that its machines need to begin.
pub(crate) struct NewPeer {
    pub peer: PeerRef,
    pub name: Arc<str>,
    pub keys: Vec<PublicKey>,
    pub psk: Option<[u8; 32]>,
    pub hosts: Vec<String>,
    pub outbox: Option<NewOutbox>,
    pub inbound: Option<NewInbound>,
}

pub(crate) struct NewOutbox {
    pub store: StoreId,
    pub tails: Vec<Tail>,
    pub requests: Producer<OutboxRequest>,
    pub thread: JoinHandle<()>,
    /// What an earlier link has left as the trouble of streams.
    pub noted_trouble: BTreeMap<Arc<str>, String>,
}

pub(crate) struct NewInbound {
    pub allow: Vec<String>,
    /// Filled in by the inbox's thread.
    pub cursors: Vec<Cursor>,
    pub level: Level,
    /// Where the peer was last heard, in an earlier run.
    pub remembered: Option<SocketAddr>,
}
