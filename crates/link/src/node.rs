//! Many peers behind one socket.

use crate::config::{Config, FIRST_CREDIT, MIN_DATAGRAM};
use crate::event::{Deadline, Event, Status};
use crate::path::Path;
use crate::peer::Peer;
use crate::random::Random;
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::transmit::Transmit;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::SocketAddr;
use stayfast_frame::{Header, Rejected, Seal};
use stayfast_store::{Cursor, Level, StoreDone, StoreOp, Tail};
use stayfast_units::{RecordNumber, StoreId, Time};

/// One peer of a [`Node`], by a number that the node never uses again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u32);

/// What a peer is to us.
#[derive(Clone, Debug)]
pub struct Role {
    /// The name under which our store knows it.
    pub name: Arc<str>,
    /// We send it records.
    pub outbound: Option<Outbound>,
    /// It may send us records.
    pub inbound: Option<Inbound>,
    /// Where it may be reached; none if it will write first.
    pub addresses: Vec<SocketAddr>,
}

/// The outbox behind a sending link.
#[derive(Clone, Debug)]
pub struct Outbound {
    /// The store's name.
    pub store: StoreId,
    /// Its streams, as they stand now.
    pub tails: Vec<Tail>,
}

/// The inbox behind a receiving link.
#[derive(Clone, Debug)]
pub struct Inbound {
    /// Patterns of the streams that the peer may send (see [`matches`](crate::matches)).
    pub allow: Vec<String>,
    /// The cursors of this peer, as they stand now.
    pub cursors: Vec<Cursor>,
    /// What a stored record survives here.
    pub level: Level,
}

/// The machines of all peers that share a socket, and the way from a datagram to its peer.
///
/// It knows no clock and does no I/O: the owner hands in datagrams, outcomes of store operations and the
/// time, and after each call drains [`poll_transmit`](Node::poll_transmit), [`poll_store`](Node::poll_store) and
/// [`poll_event`](Node::poll_event), then sleeps until [`next_timeout`](Node::next_timeout). It may lose all its
/// memory at any instant: what must survive is in the store.
pub struct Node<S: Seal> {
    config: Arc<Config>,
    peers: BTreeMap<PeerId, Peer<S>>,
    next_peer: u32,
    tags: BTreeMap<[u8; 8], PeerId>,
    indices: BTreeMap<u32, PeerId>,
    /// What each peer is granted of the memory for what comes in, bytes.
    share: usize,
    deadlines: BTreeSet<(Time, PeerId)>,
    /// Peers of which something has changed since their deadline was looked at.
    stale: Vec<PeerId>,
    ready: VecDeque<PeerId>,
    random: Random,
    rejected: [u64; Rejected::ALL.len()],
}

impl<S: Seal> Node<S> {
    /// A node without peers. `seed` feeds the jitter of questions and wake-ups, nothing secret.
    pub fn new(config: Config, seed: u64) -> Node<S> {
        let datagram = config.datagram.max(MIN_DATAGRAM);
        Node {
            config: Arc::new(Config { datagram, ..config }),
            peers: BTreeMap::new(),
            next_peer: 0,
            tags: BTreeMap::new(),
            indices: BTreeMap::new(),
            share: 0,
            deadlines: BTreeSet::new(),
            stale: Vec::new(),
            ready: VecDeque::new(),
            random: Random::new(seed),
            rejected: [0; Rejected::ALL.len()],
        }
    }

    /// Adds a peer. Nothing is dialled: the first packet leaves with the first record.
    pub fn add_peer(&mut self, now: Time, seal: S, role: Role) -> PeerId {
        let id = PeerId(self.next_peer);
        self.next_peer += 1;
        let config = self.config.clone();
        let nonce = self.random.next();
        let sender = role.outbound.map(|out| Sender::new(&config, out.store, out.tails, nonce));
        // Who may send nothing is told so, stream by stream.
        let none = Inbound { allow: Vec::new(), cursors: Vec::new(), level: Level::Memory };
        let inbound = role.inbound.unwrap_or(none);
        let receiver = Receiver::new(&config, role.name, inbound.allow, inbound.cursors, inbound.level);
        let random = Random::new(self.random.next());
        self.tags.insert(seal.tag(), id);
        let peer = Peer::new(config, now, seal, sender, receiver, Path::new(role.addresses), random);
        self.peers.insert(id, peer);
        self.divide();
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.grant(self.share);
        }
        self.touch(id);
        id
    }

    /// Divides the memory among those who may send us records.
    fn divide(&mut self) {
        let senders = self.peers.values().filter(|peer| peer.receiver.is_open()).count();
        let fair = (self.config.total_pool / senders.max(1)).max(FIRST_CREDIT as usize);
        let share = fair.min(self.config.pool);
        if core::mem::replace(&mut self.share, share) != share {
            self.peers.values_mut().for_each(|peer| peer.grant(share));
        }
    }

    /// Forgets a peer: its packets are unknown from now on. What it was to us stays in the store.
    pub fn remove_peer(&mut self, id: PeerId) {
        let Some(peer) = self.peers.remove(&id) else { return };
        self.tags.remove(&peer.seal.tag());
        self.indices.retain(|_, owner| *owner != id);
        if let Some((at, _)) = peer.scheduled {
            self.deadlines.remove(&(at, id));
        }
        self.ready.retain(|ready| *ready != id);
        self.stale.retain(|stale| *stale != id);
        self.divide();
    }

    /// All peers.
    pub fn peers(&self) -> impl Iterator<Item = PeerId> + '_ {
        self.peers.keys().copied()
    }

    /// Takes one datagram. `ecn` is the two ECN bits of its IP header. Whatever is wrong with it is counted by
    /// [`rejected`](Node::rejected) and answered by silence.
    pub fn handle_datagram(&mut self, now: Time, from: SocketAddr, ecn: u8, datagram: &mut [u8]) {
        if let Err(reason) = self.dispatch(now, from, ecn, datagram) {
            self.rejected[reason as usize] += 1;
        }
    }

    fn dispatch(&mut self, now: Time, from: SocketAddr, ecn: u8, datagram: &mut [u8]) -> Result<(), Rejected> {
        let id = match Header::parse(datagram)? {
            Header::Init { tag, .. } => *self.tags.get(&tag).ok_or(Rejected::Tag)?,
            Header::Reply { index, .. } | Header::Data { index } => *self.indices.get(&index).ok_or(Rejected::Index)?,
        };
        let peer = self.peers.get_mut(&id).ok_or(Rejected::Index)?;
        let result = peer.handle_datagram(now, from, ecn, datagram);
        self.index(id);
        self.touch(id);
        result
    }

    /// Brings the map of receiver indices up to date for one peer.
    fn index(&mut self, id: PeerId) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        if !core::mem::take(&mut peer.indices_changed) {
            return;
        }
        self.indices.retain(|_, owner| *owner != id);
        self.indices.extend(peer.seal.indices().map(|index| (index, id)));
    }

    /// Acts on every deadline that has passed. True if there was one.
    pub fn handle_timeout(&mut self, now: Time) -> bool {
        let mut stale = core::mem::take(&mut self.stale);
        stale.drain(..).for_each(|id| self.schedule(now, id));
        self.stale = stale;
        let mut any = false;
        while let Some((at, id)) = self.deadlines.first().copied().filter(|(at, _)| *at <= now) {
            self.deadlines.remove(&(at, id));
            if let Some(peer) = self.peers.get_mut(&id) {
                peer.scheduled = None;
                peer.handle_timeout(now);
                self.mark_ready(id);
                any = true;
            }
        }
        any
    }

    /// When [`handle_timeout`](Node::handle_timeout) must be called, and why. `None`: not before something happens.
    /// True only after [`poll_transmit`](Node::poll_transmit) has returned `None`.
    pub fn next_timeout(&self) -> Option<(Time, Deadline)> {
        let (_, id) = self.deadlines.first()?;
        self.peers.get(id)?.scheduled
    }

    /// Writes datagrams for one destination into `buf`, equal segments one behind the other, at most
    /// `max_segments` and at most as many as `buf` has room for. `None`: nothing to send now.
    pub fn poll_transmit(&mut self, now: Time, buf: &mut [u8], max_segments: usize) -> Option<Transmit> {
        while let Some(id) = self.ready.pop_front() {
            let Some(peer) = self.peers.get_mut(&id) else { continue };
            if let Some(transmit) = peer.poll_transmit(now, id, buf, max_segments) {
                self.index(id);
                self.ready.push_back(id);
                return Some(transmit);
            }
            self.schedule(now, id);
        }
        None
    }

    /// The driver could not send `transmit`: its packets never left. What they carried goes again, and nothing is
    /// charged to congestion.
    pub fn send_failed(&mut self, now: Time, transmit: &Transmit) {
        if let Some(peer) = self.peers.get_mut(&transmit.peer) {
            peer.unsent(now, transmit.first, transmit.last);
            self.touch(transmit.peer);
        }
    }

    /// The next operation for the store of a peer's link, if any is due.
    pub fn poll_store(&mut self) -> Option<(PeerId, StoreOp)> {
        self.peers.iter_mut().find_map(|(id, peer)| Some((*id, peer.poll_store()?)))
    }

    /// Takes the outcome of a store operation.
    pub fn handle_store(&mut self, now: Time, id: PeerId, done: StoreDone) {
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.handle_store(now, done);
            self.touch(id);
        }
    }

    /// The next thing that the owner may want to know.
    pub fn poll_event(&mut self) -> Option<(PeerId, Event)> {
        self.peers.iter_mut().find_map(|(id, peer)| Some((*id, peer.events.pop_front()?)))
    }

    /// Records of `stream` below `next` are durable in the outbox of this link.
    pub fn appended(&mut self, now: Time, id: PeerId, stream: &Arc<str>, next: RecordNumber) {
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.appended(now, stream, next);
            self.schedule(now, id);
            self.mark_ready(id);
        }
    }

    /// Where the peer may be reached, looked up anew.
    pub fn set_addresses(&mut self, now: Time, id: PeerId, addresses: Vec<SocketAddr>) {
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.set_addresses(now, addresses);
            self.touch(id);
        }
    }

    /// This run has just begun: tells the peer so, with at most three packets, lest it wait out a back-off.
    pub fn wake(&mut self, now: Time, id: PeerId) {
        if let Some(peer) = self.peers.get_mut(&id) {
            peer.wake(now);
            self.touch(id);
        }
    }

    /// How a peer is doing.
    pub fn status(&self, id: PeerId) -> Option<Status> {
        self.peers.get(&id).map(Peer::status)
    }

    /// Datagrams dropped, by reason.
    pub fn rejected(&self) -> impl Iterator<Item = (Rejected, u64)> + '_ {
        Rejected::ALL.into_iter().map(|reason| (reason, self.rejected[reason as usize]))
    }

    fn touch(&mut self, id: PeerId) {
        if !self.stale.contains(&id) {
            self.stale.push(id);
        }
        self.mark_ready(id);
    }

    fn mark_ready(&mut self, id: PeerId) {
        if !self.ready.contains(&id) {
            self.ready.push_back(id);
        }
    }

    fn schedule(&mut self, now: Time, id: PeerId) {
        self.stale.retain(|stale| *stale != id);
        let Some(peer) = self.peers.get_mut(&id) else { return };
        let next = peer.next_timeout(now);
        let old = core::mem::replace(&mut peer.scheduled, next);
        let [old, next] = [old, next].map(|at| at.map(|(at, _)| (at, id)));
        if old == next {
            return;
        }
        if let Some(old) = old {
            self.deadlines.remove(&old);
        }
        if let Some(next) = next {
            self.deadlines.insert(next);
        }
    }
}
