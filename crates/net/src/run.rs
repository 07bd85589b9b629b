//! The link thread: datagrams in, machines, datagrams out, sleep.

use crate::chores::look_up;
use crate::clock::Clock;
use crate::command::{Command, NewPeer};
use crate::entropy::{OsEntropy, run_id};
use crate::handle::Handle;
use crate::inbox::InboxRequest;
use crate::peer::{Peer, PeerOutbox};
use crate::pending::PendingDelivery;
use crate::sending::Sockets;
use crate::settings::{Deliveries, Settings};
use crate::shared::{PeerRef, Trouble};
use crate::status::{Figures, PeerStatus};
use crate::wait::{Source, precise_timers, wait};
use stayfast_handoff::{Consumer, PushError};
use stayfast_link::{Event, Inbound, Node, Outbound, PeerId, Role};
use stayfast_seal::{Identity, Sessions};
use stayfast_store::{StoreDone, StoreError, StoreOp};
use stayfast_units::{RecordNumber, Time};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

/// Buffers for one receive call.
const BUFFERS: usize = 16;
/// Bytes of each: as much as the kernel ever puts together, 64 segments or not.
const BUFFER: usize = 1 << 16;
/// Batches sent before what has arrived has its turn.
const MAX_TRANSMITS: usize = 32;
/// Commands taken before the sockets have their turn.
const MAX_COMMANDS: usize = 1024;
/// Bytes of a batch: a UDP datagram's limit holds for the batch too.
const MAX_BATCH: usize = 65_000;
/// How often the figures of a link that is busy are kept as a hint.
const NOTE_EVERY: Duration = Duration::from_secs(1);
/// When a store's queue was full, it is tried again after this.
const BACKLOG_RETRY: Duration = Duration::from_millis(5);
/// A deadline that has passed and brings nothing must not keep the processor busy.
const SHORTEST_SLEEP: Duration = Duration::from_micros(200);

/// Who we are.
pub(crate) struct Keys {
    pub identity: Identity,
    pub aes: bool,
}

pub(crate) struct LinkThread {
    clock: Clock,
    node: Node<Sessions>,
    keys: Keys,
    sockets: Sockets,
    buffers: Vec<Vec<u8>>,
    out: Vec<u8>,
    commands: Consumer<Command>,
    handle: Handle,
    deliveries: Deliveries,
    peers: BTreeMap<PeerRef, Peer>,
    owners: BTreeMap<PeerId, PeerRef>,
    /// Tails of outboxes whose peers are not here yet.
    early: BTreeMap<(PeerRef, Arc<str>), RecordNumber>,
    inbox_backlog: VecDeque<InboxRequest>,
    note_at: Option<Time>,
    /// Datagrams are taken.
    open: bool,
    stopping: bool,
    /// Passes in a row that found a deadline passed and nothing to do.
    idle: u32,
}

impl LinkThread {
    pub fn new(
        clock: Clock,
        node: Node<Sessions>,
        keys: Keys,
        sockets: Sockets,
        commands: Consumer<Command>,
        handle: Handle,
        settings: &Settings,
    ) -> LinkThread {
        let datagram = usize::from(settings.config.datagram.max(settings.config.max_datagram)).max(1);
        let batch = (MAX_BATCH / datagram).max(1).min(sockets.max_segments());
        LinkThread {
            clock,
            node,
            keys,
            sockets,
            buffers: vec![vec![0; BUFFER]; BUFFERS],
            out: vec![0; batch * datagram],
            commands,
            handle,
            deliveries: settings.deliveries,
            peers: BTreeMap::new(),
            owners: BTreeMap::new(),
            early: BTreeMap::new(),
            inbox_backlog: VecDeque::new(),
            note_at: None,
            open: false,
            stopping: false,
            idle: 0,
        }
    }

    pub fn run(mut self) {
        precise_timers();
        loop {
            let mut more = self.receive();
            more |= self.obey();
            let now = self.clock.now();
            // What the kernel does not take cannot be answered: no probe is due because of that.
            if !self.sockets.is_holding() {
                self.node.handle_timeout(now);
            }
            self.settle();
            more |= self.transmit();
            self.settle();
            self.note(now);
            if self.stopping {
                break;
            }
            if !more {
                self.sleep();
            }
        }
        self.end();
    }

    // --- the machines and the sockets ---

    fn receive(&mut self) -> bool {
        if !self.open {
            return false;
        }
        let (node, now) = (&mut self.node, self.clock.now());
        let before = self.sockets.counters.received;
        let more = self.sockets.receive(&mut self.buffers, |from, ecn, datagram| {
            node.handle_datagram(now, from, ecn, datagram);
        });
        if self.sockets.counters.received > before {
            self.active(now);
        }
        more
    }

    /// Sends what the machines have, up to a bound. True if there may be more.
    fn transmit(&mut self) -> bool {
        for _ in 0..MAX_TRANSMITS {
            let now = self.clock.now();
            self.sockets.flush(now, &self.out);
            if let Some(never_left) = self.sockets.give_back(now) {
                self.node.send_failed(now, &never_left);
            }
            if self.sockets.is_holding() {
                return false;
            }
            let segments = self.sockets.max_segments();
            let Some(transmit) = self.node.poll_transmit(now, &mut self.out, segments) else { return false };
            self.idle = 0;
            self.active(now);
            self.sockets.send(&transmit);
        }
        let now = self.clock.now();
        self.sockets.flush(now, &self.out);
        !self.sockets.is_holding()
    }

    fn sleep(&mut self) {
        let shared = self.handle.shared.clone();
        let now = self.clock.now();
        let timeout = self.deadline(now).map(|at| self.patience(now, at));
        let waits_for = self.sockets.waits_for();
        let mut sources = vec![Source { fd: shared.bell.as_fd(), writable: false }];
        for (slot, socket) in self.sockets.iter().enumerate().filter(|_| self.open) {
            sources.push(Source { fd: socket.descriptor(), writable: waits_for == Some(slot) });
        }
        let ready = wait(&sources, timeout);
        if ready {
            self.idle = 0;
            shared.bell.silence();
        }
        self.sockets.counters.wakes += 1;
    }

    fn deadline(&self, now: Time) -> Option<Time> {
        let backlog = !self.inbox_backlog.is_empty() || self.peers.values().any(Peer::has_backlog);
        let machines = || self.node.next_timeout().map(|(at, _)| at);
        // While a batch waits for the kernel, nothing else can leave, and what is due stays due.
        let machines = if self.sockets.is_holding() { None } else { machines() };
        [machines, self.sockets.retry_at(), self.note_at, backlog.then(|| now + BACKLOG_RETRY)]
            .into_iter()
            .flatten()
            .min()
    }

    /// How long to sleep until `at`.
    fn patience(&mut self, now: Time, at: Time) -> Duration {
        let mut nanos = at.as_nanos().saturating_sub(now.as_nanos());
        if nanos == 0 {
            self.idle += 1;
            if self.idle > 2 {
                nanos = SHORTEST_SLEEP.as_nanos() as u64;
            }
        }
        Duration::from_nanos(nanos)
    }

    // --- what others say ---

    fn obey(&mut self) -> bool {
        let mut taken = Vec::new();
        let count = self.commands.drain(MAX_COMMANDS, |command| taken.push(command)).unwrap_or(0);
        // After the commands were taken and before they are obeyed: whoever asks how things are has appended before.
        let now = self.clock.now();
        for ((peer, stream), next) in self.handle.shared.take_tails() {
            self.appended(now, peer, stream, next);
        }
        for command in taken {
            self.command(command);
        }
        // The queue rings only when it stops being empty, so sleep only after it was seen empty.
        count > 0
    }

    fn command(&mut self, command: Command) {
        let now = self.clock.now();
        match command {
            Command::Add(new) => self.add(now, *new),
            Command::Remove(peer) => self.remove(peer),
            Command::Done(id, done) => self.node.handle_store(now, id, done),
            Command::Raced(id, at, delivery) => {
                let key = delivery.key.clone();
                let amid = delivery.from.next < at.next && at.next < delivery.to.next;
                self.node.handle_store(now, id, StoreDone::Conflict { key, at });
                if amid {
                    self.node.handle_store(now, id, StoreDone::Returned(delivery));
                }
            }
            Command::OutboxDone(peer, done) => {
                self.unreadable(now, peer, &done);
                if let Some(id) = self.peers.get(&peer).and_then(Peer::sender) {
                    self.node.handle_store(now, id, done);
                }
            }
            Command::Addresses(peer, addresses) => {
                for id in self.peers.get(&peer).map(|peer| peer.ids.clone()).unwrap_or_default() {
                    self.node.set_addresses(now, id, addresses.clone());
                }
            }
            Command::Settle(answer) => {
                self.open = true;
                answer.update(|answer| *answer = Some(()));
            }
            Command::Status(answer) => {
                let status = self.status(now);
                answer.update(|answer| *answer = Some(status));
            }
            Command::Stop => self.stopping = true,
        }
    }

    fn add(&mut self, now: Time, new: NewPeer) {
        let literal: Option<Vec<SocketAddr>> = new.hosts.iter().map(|host| host.parse().ok()).collect();
        let mut addresses = literal.clone().map(|_| look_up(&new.hosts)).unwrap_or_default();
        let remembered = new.inbound.as_ref().and_then(|inbound| inbound.remembered);
        addresses.extend(remembered.filter(|address| !addresses.contains(address)));
        let hosts = if literal.is_some() { Vec::new() } else { new.hosts };
        let mut ids = Vec::new();
        for (i, key) in new.keys.iter().enumerate() {
            let outbound = new.outbox.as_ref().filter(|_| i == 0);
            let role = Role {
                name: new.name.clone(),
                outbound: outbound.map(|outbox| Outbound { store: outbox.store, tails: outbox.tails.clone() }),
                inbound: new.inbound.as_ref().map(|inbound| Inbound {
                    allow: inbound.allow.clone(),
                    cursors: inbound.cursors.clone(),
                    level: inbound.level,
                }),
                addresses: addresses.clone(),
            };
            let Keys { identity, aes } = &self.keys;
            let seal = Sessions::new(identity, *key, new.psk, run_id(), *aes, Box::new(OsEntropy));
            let id = self.node.add_peer(now, seal, role);
            if remembered.is_some() && i == 0 {
                self.node.wake(now, id);
            }
            self.owners.insert(id, new.peer);
            ids.push(id);
        }
        let progress =
            self.handle.shared.registry.update(|registry| {
                registry.peers.get(&new.peer).map(|entry| entry.streams.clone()).unwrap_or_default()
            });
        let mut noted_trouble = BTreeMap::new();
        let outbox = new.outbox.map(|outbox| {
            noted_trouble = outbox.noted_trouble;
            PeerOutbox { requests: outbox.requests, thread: outbox.thread, backlog: VecDeque::new() }
        });
        let (noted, noted_heard) = (Figures::default(), BTreeMap::new());
        let peer = Peer { name: new.name, ids, hosts, outbox, progress, noted, noted_heard, noted_trouble };
        peer.resolve(new.peer, &self.handle);
        self.peers.insert(new.peer, peer);
        for ((peer, stream), next) in std::mem::take(&mut self.early) {
            self.appended(now, peer, stream, next);
        }
    }

    fn remove(&mut self, peer: PeerRef) {
        let Some(gone) = self.peers.remove(&peer) else { return };
        for id in gone.ids {
            self.owners.remove(&id);
            self.node.remove_peer(id);
        }
        if let Some(outbox) = gone.outbox {
            // It ends by itself once its queue is empty; it must not keep the links waiting.
            outbox.requests.close();
        }
    }

    /// Is this a read that no later one can mend? The outbox's thread has said so to whoever waits for the stream; here
    /// it is seen to that others can read it, too.
    fn unreadable(&mut self, now: Time, owner: PeerRef, done: &StoreDone) {
        let StoreDone::Read { stream, result: Err(error), .. } = done else { return };
        if matches!(error, StoreError::Corrupt { .. } | StoreError::Poisoned)
            && let Some(peer) = self.peers.get_mut(&owner)
        {
            let _ = peer.watch(&self.handle, owner, stream);
            self.active(now);
        }
    }

    fn appended(&mut self, now: Time, peer: PeerRef, stream: Arc<str>, next: RecordNumber) {
        match self.peers.get(&peer) {
            Some(known) => {
                if let Some(id) = known.sender() {
                    self.node.appended(now, id, &stream, next);
                }
            }
            // On its way to us: nobody will say it again.
            None if self.handle.shared.knows(peer) => {
                self.early.insert((peer, stream), next);
            }
            None => {}
        }
    }

    // --- what the machines say ---

    fn settle(&mut self) {
        while let Some((id, op)) = self.node.poll_store() {
            self.dispatch(id, op);
        }
        while let Some((id, event)) = self.node.poll_event() {
            self.tell(id, event);
        }
        self.peers.values_mut().for_each(Peer::flush);
        if let Some(inbox) = &self.handle.inbox {
            while let Some(request) = self.inbox_backlog.pop_front() {
                if let Err(PushError::Full(request)) = inbox.try_push(request) {
                    self.inbox_backlog.push_front(request);
                    break;
                }
            }
        }
    }

    fn dispatch(&mut self, id: PeerId, op: StoreOp) {
        match op {
            StoreOp::Deliver(delivery) if self.deliveries == Deliveries::Application => {
                let pending = PendingDelivery::new(id, delivery, self.handle.commands.clone());
                self.handle.shared.deliveries.put(pending);
            }
            StoreOp::Deliver(_) | StoreOp::ReadCursor { .. } => self.inbox_backlog.push_back(InboxRequest::Op(id, op)),
            StoreOp::Read { .. } | StoreOp::Trim { .. } => {
                let peer = self.owners.get(&id).and_then(|owner| self.peers.get_mut(owner));
                if let Some(outbox) = peer.and_then(|peer| peer.outbox.as_mut()) {
                    outbox.queue(op);
                }
            }
        }
    }

    fn tell(&mut self, id: PeerId, event: Event) {
        let Some(owner) = self.owners.get(&id).copied() else { return };
        let Some(peer) = self.peers.get_mut(&owner) else { return };
        match event {
            Event::Stored { stream, next } => peer.update(&self.handle, owner, &stream, |progress| {
                progress.stored = progress.stored.max(next);
                progress.heard = progress.heard.max(next);
                progress.trouble = None;
            }),
            Event::Heard { stream, next } => peer.update(&self.handle, owner, &stream, |progress| {
                progress.heard = progress.heard.max(next);
            }),
            Event::TooWeak { stream, level } => peer.trouble(&self.handle, owner, &stream, Trouble::TooWeak(level)),
            Event::Fenced { stream, number, theirs, ours } => {
                peer.trouble(&self.handle, owner, &stream, Trouble::Fenced { number, theirs, ours });
            }
            Event::Refused { stream, number, reason } => {
                peer.trouble(&self.handle, owner, &stream, Trouble::Refused { number, reason });
            }
            Event::Rollback { stream, theirs, ours } => {
                peer.trouble(&self.handle, owner, &stream, Trouble::Rollback { theirs, ours });
            }
            Event::Resolve => peer.resolve(owner, &self.handle),
            Event::Poisoned => tracing::error!(peer = %peer.name, "a store failed for good: restart the process"),
            Event::RunChanged => tracing::debug!(peer = %peer.name, "another run of the peer has taken over"),
            Event::Address(address) => {
                tracing::debug!(peer = %peer.name, %address, "the peer is heard from another address");
                if self.handle.inbox.is_some() {
                    self.inbox_backlog.push_back(InboxRequest::Remember(peer.name.clone(), address));
                }
            }
        }
    }

    // --- figures ---

    fn status(&self, now: Time) -> (Vec<PeerStatus>, crate::status::Counters) {
        let mut counters = self.sockets.counters.clone();
        for (reason, count) in self.node.rejected() {
            counters.rejected[reason as usize] = count;
        }
        let one = |(peer, known): (&PeerRef, &Peer)| {
            // Of several keys, the one in use.
            let status = known.ids.iter().filter_map(|id| self.node.status(*id));
            let status = status.max_by_key(|status| status.last_heard)?;
            Some(PeerStatus::new(now, *peer, known.name.clone(), status))
        };
        (self.peers.iter().filter_map(one).collect(), counters)
    }

    fn active(&mut self, now: Time) {
        self.note_at.get_or_insert(now + NOTE_EVERY);
    }

    /// Keeps the figures where they can be read without us.
    fn note(&mut self, now: Time) {
        if self.note_at.is_none_or(|at| at > now) {
            return;
        }
        self.keep_figures(now);
    }

    fn keep_figures(&mut self, now: Time) {
        self.note_at = None;
        for peer in self.peers.values_mut() {
            let Some(status) = peer.ids.first().and_then(|id| self.node.status(*id)) else { continue };
            peer.note(Figures::of(now, &status), &status.streams);
        }
    }

    /// Says goodbye to the other threads. What was appended is written before its thread ends.
    fn end(mut self) {
        self.keep_figures(self.clock.now());
        let LinkThread { commands, handle, peers, .. } = self;
        drop(commands);
        handle.shared.stop();
        for peer in peers.into_values() {
            if let Some(outbox) = peer.outbox {
                outbox.requests.close();
                let _ = outbox.thread.join();
            }
        }
    }
}
