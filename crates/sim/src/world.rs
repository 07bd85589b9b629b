use crate::datagram::{Datagram, Pool};
use crate::digest::Digest;
use crate::path::Path;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::any::Any;
use core::marker::PhantomData;
use core::net::SocketAddr;
use core::time::Duration;
use stayfast_units::Time;

/// A machine at the end of a path: it is told of datagrams and of the time, and says what it sends and when it
/// wants to be asked again.
pub trait Node: Any {
    /// A datagram has arrived. Its contents may be changed in place; its buffer is used again afterwards.
    fn handle(&mut self, now: Time, datagram: &mut Datagram);

    /// What now? Called after a datagram, after [`World::node_mut`], after [`Poll::Transmit`] and when the time of
    /// [`Poll::WakeAt`] has come. `out` is empty: with [`Poll::Transmit`] its `to`, `ecn` and `bytes` are sent.
    fn poll(&mut self, now: Time, out: &mut Datagram) -> Poll;
}

/// The answer of [`Node::poll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poll {
    /// Send the datagram that has been filled in, and ask again.
    Transmit,
    /// Nothing to send before this moment. A moment that is not after now counts as the next nanosecond.
    WakeAt(Time),
    /// Nothing to do until a datagram arrives.
    Idle,
}

/// A place in a [`World`] where a machine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

/// A [`Path`] in a [`World`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(u32);

/// A place whose machine is a `T`.
#[derive(Debug)]
pub struct Handle<T> {
    id: NodeId,
    machine: PhantomData<fn() -> T>,
}

impl<T> Handle<T> {
    /// The place, whatever runs there.
    pub const fn id(self) -> NodeId {
        self.id
    }
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handle<T> {}

impl<T> From<Handle<T>> for NodeId {
    fn from(handle: Handle<T>) -> NodeId {
        handle.id
    }
}

/// What an observer of [`World::run_observed`] is told.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A node sent this.
    Sent(NodeId, &'a Datagram),
    /// A node is about to be given this.
    Delivered(NodeId, &'a Datagram),
    /// There is no route from the sender to this address, no longer a node at it, or no machine running there.
    Unreachable(&'a Datagram),
}

/// Datagrams that a node may send at one moment; the next ones are put off by a microsecond, so that a machine
/// that never stops sending cannot stop the time.
const BURST_MAX: u32 = 1 << 16;

/// Machines and the paths between them, in virtual time.
///
/// One event after the other: an action of [`World::at`] first, then what leaves a path, then a node that wants to
/// be polled; among equals in the order they were added. The example is at the [crate's root](crate).
pub struct World {
    seed: u64,
    now: Time,
    nodes: Vec<Place>,
    paths: Vec<Path>,
    /// When each node, and each path, wants to be looked at.
    node_due: Vec<Time>,
    path_due: Vec<Time>,
    addresses: BTreeMap<SocketAddr, NodeId>,
    routes: Vec<Route>,
    route_of: BTreeMap<(NodeId, NodeId), u32>,
    actions: BTreeMap<(Time, u64), Action>,
    actions_added: u64,
    unreachable: u64,
    digest: Option<Digest>,
    pool: Pool,
}

type Action = Box<dyn FnOnce(&mut World)>;
type Observer<'a> = &'a mut dyn FnMut(Time, Event<'_>);

struct Place {
    name: String,
    address: SocketAddr,
    machine: Option<Box<dyn Node>>,
    /// Datagrams sent at the moment `burst_at`.
    burst: u32,
    burst_at: Time,
}

struct Route {
    to: NodeId,
    hops: Vec<PathId>,
}

enum Due {
    Nothing,
    Action,
    Path(usize),
    Node(usize),
}

/// Building.
impl World {
    /// An empty world at [`Time::ZERO`].
    pub fn new(seed: u64) -> World {
        World {
            seed,
            now: Time::ZERO,
            nodes: Vec::new(),
            paths: Vec::new(),
            node_due: Vec::new(),
            path_due: Vec::new(),
            addresses: BTreeMap::new(),
            routes: Vec::new(),
            route_of: BTreeMap::new(),
            actions: BTreeMap::new(),
            actions_added: 0,
            unreachable: 0,
            digest: None,
            pool: Pool::default(),
        }
    }

    /// Adds a place with a machine, which is polled at once. An address already in use moves here.
    pub fn add<T: Node>(&mut self, name: &str, address: SocketAddr, machine: T) -> Handle<T> {
        let id = NodeId(self.nodes.len() as u32);
        let machine: Option<Box<dyn Node>> = Some(Box::new(machine));
        self.nodes.push(Place { name: String::from(name), address, machine, burst: 0, burst_at: self.now });
        self.node_due.push(self.now);
        self.addresses.insert(address, id);
        Handle { id, machine: PhantomData }
    }

    /// Adds a path from `a` to `b`. The other direction is a path of its own.
    pub fn connect(&mut self, a: impl Into<NodeId>, b: impl Into<NodeId>, path: Path) -> PathId {
        let (a, b) = (a.into(), b.into());
        let name = format!("{}>{}", self.name(a), self.name(b));
        let id = self.add_path(&name, path);
        self.route(a, b, &[id]);
        id
    }

    /// Adds a path that belongs to nobody yet, such as a bottleneck that several routes share.
    pub fn add_path(&mut self, name: &str, path: Path) -> PathId {
        let id = PathId(self.paths.len() as u32);
        let path = path.seeded(self.seed, name);
        self.path_due.push(path.next_timeout().unwrap_or(Time::MAX));
        self.paths.push(path);
        id
    }

    /// From now on, what `a` sends to `b` takes these paths, one after the other; none means at once. What is
    /// under way stays on its old route.
    pub fn route(&mut self, a: impl Into<NodeId>, b: impl Into<NodeId>, hops: &[PathId]) {
        let (a, b) = (a.into(), b.into());
        self.route_of.insert((a, b), self.routes.len() as u32);
        self.routes.push(Route { to: b, hops: hops.to_vec() });
    }
}

/// Nodes and paths, between events.
impl World {
    /// The machine at this place; none while it is stopped.
    pub fn node<T: Node>(&self, node: Handle<T>) -> Option<&T> {
        let machine: &dyn Any = self.nodes.get(node.id.0 as usize)?.machine.as_deref()?;
        machine.downcast_ref()
    }

    /// The machine at this place, to change; it will be polled. None while it is stopped.
    pub fn node_mut<T: Node>(&mut self, node: Handle<T>) -> Option<&mut T> {
        let place = node.id.0 as usize;
        let machine: &mut dyn Any = self.nodes.get_mut(place)?.machine.as_deref_mut()?;
        self.node_due[place] = self.now;
        machine.downcast_mut()
    }

    /// Takes the machine away, as `kill -9` does: it is asked nothing more, and what arrives is
    /// [unreachable](Event::Unreachable). Returns what it was, for a test to look at.
    pub fn stop<T: Node>(&mut self, node: Handle<T>) -> Option<T> {
        let place = node.id.0 as usize;
        let machine: Box<dyn Any> = self.nodes.get_mut(place)?.machine.take()?;
        self.node_due[place] = Time::MAX;
        self.note(3, node.id, None);
        machine.downcast().ok().map(|machine| *machine)
    }

    /// Puts a machine in, in place of the one that runs there, if one does. It is polled at once.
    pub fn start<T: Node>(&mut self, node: Handle<T>, machine: T) {
        let place = node.id.0 as usize;
        if let Some(slot) = self.nodes.get_mut(place) {
            slot.machine = Some(Box::new(machine));
            self.node_due[place] = self.now;
            self.note(4, node.id, None);
        }
    }

    /// Gives a node another address, as a new network or a NAT does, and the old one is dead: what is under way to
    /// it, or is sent to it later, is [unreachable](Event::Unreachable). What the node has sent keeps the address it
    /// was sent from. Nobody is told; others see the new address on what the node sends next.
    pub fn rebind(&mut self, node: impl Into<NodeId>, address: SocketAddr) {
        let node = node.into();
        if let Some(place) = self.nodes.get_mut(node.0 as usize) {
            let old = core::mem::replace(&mut place.address, address);
            // Another node may have moved there.
            if self.addresses.get(&old) == Some(&node) {
                self.addresses.remove(&old);
            }
            self.addresses.insert(address, node);
        }
    }

    /// The address of a node.
    pub fn address(&self, node: impl Into<NodeId>) -> Option<SocketAddr> {
        self.nodes.get(node.into().0 as usize).map(|place| place.address)
    }

    /// The name that a node was added under; empty for a node of another world.
    pub fn name(&self, node: impl Into<NodeId>) -> &str {
        self.nodes.get(node.into().0 as usize).map_or("", |place| &place.name)
    }

    /// A path, to read its [`Stats`](crate::Stats). None for a path of another world.
    pub fn path(&self, path: PathId) -> Option<&Path> {
        self.paths.get(path.0 as usize)
    }

    /// Changes the parameters of a path from now on, as [`Path::set`] does. False if it has no such element.
    pub fn set(&mut self, path: PathId, element: crate::Element) -> bool {
        let i = path.0 as usize;
        let now = self.now;
        self.with_path(i, |path| path.set(now, element)).unwrap_or(false)
    }

    /// Has the bottlenecks of a path follow a profile from now on, as [`Path::follow`] does. False if it has none.
    pub fn follow(&mut self, path: PathId, profile: Option<&crate::Profile>) -> bool {
        let now = self.now;
        self.with_path(path.0 as usize, |path| path.follow(now, profile)).unwrap_or(false)
    }

    /// Does `action` when it is `time`, before everything else that happens then; now, if that has passed.
    pub fn at(&mut self, time: Time, action: impl FnOnce(&mut World) + 'static) {
        self.actions_added += 1;
        self.actions.insert((time, self.actions_added), Box::new(action));
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Datagrams so far that had no route, no node at their address, or no machine to take them.
    pub fn unreachable(&self) -> u64 {
        self.unreachable
    }

    /// Starts, from here, a fingerprint of every event: time, node, addresses, ECN bits and contents.
    pub fn record_digest(&mut self) {
        self.digest = Some(Digest::new());
    }

    /// The fingerprint; none unless [`World::record_digest`] was called.
    pub fn digest(&self) -> Option<u64> {
        self.digest.map(Digest::value)
    }
}

/// Running.
impl World {
    /// When the next event is; none if nothing will ever happen by itself.
    pub fn next_event(&self) -> Option<Time> {
        Some(self.next().0).filter(|time| *time < Time::MAX)
    }

    /// Lets one thing happen and returns its time; none if nothing is left to happen.
    pub fn step(&mut self) -> Option<Time> {
        self.step_by(Time::MAX, &mut |_, _| ())
    }

    /// Lets everything happen up to and at `time`; it is `time` afterwards.
    pub fn run_until(&mut self, time: Time) {
        self.run_observed(time, &mut |_, _| ());
    }

    /// As [`World::run_until`], and tells `observer` of every event.
    pub fn run_observed(&mut self, time: Time, observer: &mut dyn FnMut(Time, Event<'_>)) {
        while self.step_by(time, observer).is_some() {}
        self.now = self.now.max(time);
    }

    /// Lets the next thing happen, unless it would be after `last`.
    fn step_by(&mut self, last: Time, observer: Observer<'_>) -> Option<Time> {
        let (time, due) = self.next();
        if time > last {
            return None;
        }
        match due {
            Due::Nothing => return None,
            Due::Action => {
                let (_, action) = self.actions.pop_first()?;
                self.now = self.now.max(time);
                action(self);
            }
            Due::Path(i) => {
                self.now = self.now.max(time);
                self.move_on(i, observer);
            }
            Due::Node(i) => {
                self.now = self.now.max(time);
                self.poll_node(i, observer);
            }
        }
        Some(self.now)
    }

    fn next(&self) -> (Time, Due) {
        let mut next = match self.actions.first_key_value() {
            Some(((time, _), _)) => (*time, Due::Action),
            None => (Time::MAX, Due::Nothing),
        };
        for (i, due) in self.path_due.iter().enumerate() {
            if *due < next.0 {
                next = (*due, Due::Path(i));
            }
        }
        for (i, due) in self.node_due.iter().enumerate() {
            if *due < next.0 {
                next = (*due, Due::Node(i));
            }
        }
        next
    }

    fn poll_node(&mut self, i: usize, observer: Observer<'_>) {
        let mut datagram = Datagram::blank(self.pool.take());
        let place = &mut self.nodes[i];
        let answer = place.machine.as_mut().map_or(Poll::Idle, |machine| machine.poll(self.now, &mut datagram));
        self.node_due[i] = match answer {
            Poll::Idle => Time::MAX,
            Poll::WakeAt(time) => time.max(self.now + Duration::from_nanos(1)),
            Poll::Transmit => place.after_sending(self.now),
        };
        if answer != Poll::Transmit {
            return self.pool.put(datagram.bytes);
        }
        datagram.from = place.address;
        self.send(NodeId(i as u32), datagram, observer);
    }

    fn send(&mut self, from: NodeId, mut datagram: Datagram, observer: Observer<'_>) {
        observer(self.now, Event::Sent(from, &datagram));
        self.note(0, from, Some(&datagram));
        let route = self.addresses.get(&datagram.to).and_then(|to| self.route_of.get(&(from, *to)));
        let Some(&route) = route else {
            return self.lose(from, datagram, observer);
        };
        datagram.route = route;
        self.hop(datagram, observer);
    }

    /// Something is due on a path: at most one datagram comes out of it and goes on.
    fn move_on(&mut self, i: usize, observer: Observer<'_>) {
        let now = self.now;
        if let Some(datagram) = self.with_path(i, |path| path.pop(now)).flatten() {
            self.hop(datagram, observer);
        }
    }

    /// Puts a datagram on the next path of its route, or delivers it after the last.
    fn hop(&mut self, mut datagram: Datagram, observer: Observer<'_>) {
        let route = &self.routes[datagram.route as usize];
        let (to, next) = (route.to, route.hops.get(datagram.hops as usize));
        let Some(&PathId(next)) = next else {
            return self.deliver(to, datagram, observer);
        };
        datagram.hops += 1;
        let now = self.now;
        self.with_path(next as usize, |path| path.push(now, datagram));
    }

    fn deliver(&mut self, to: NodeId, mut datagram: Datagram, observer: Observer<'_>) {
        let place = self.nodes.get(to.0 as usize);
        if place.is_none_or(|place| place.address != datagram.to || place.machine.is_none()) {
            return self.lose(to, datagram, observer);
        }
        observer(self.now, Event::Delivered(to, &datagram));
        self.note(1, to, Some(&datagram));
        if let Some(machine) = &mut self.nodes[to.0 as usize].machine {
            machine.handle(self.now, &mut datagram);
        }
        self.node_due[to.0 as usize] = self.now;
        self.pool.put(datagram.bytes);
    }

    fn lose(&mut self, node: NodeId, datagram: Datagram, observer: Observer<'_>) {
        self.unreachable += 1;
        observer(self.now, Event::Unreachable(&datagram));
        self.note(2, node, Some(&datagram));
        self.pool.put(datagram.bytes);
    }

    /// Uses a path and notes when it wants to be looked at next. Meanwhile it has the world's buffers, so that
    /// what it drops comes back and what it copies costs no allocation.
    fn with_path<R>(&mut self, i: usize, use_it: impl FnOnce(&mut Path) -> R) -> Option<R> {
        let path = self.paths.get_mut(i)?;
        core::mem::swap(&mut self.pool, &mut path.account.pool);
        let result = use_it(path);
        core::mem::swap(&mut self.pool, &mut path.account.pool);
        self.path_due[i] = path.next_timeout().unwrap_or(Time::MAX);
        Some(result)
    }

    fn note(&mut self, what: u64, node: NodeId, datagram: Option<&Datagram>) {
        let Some(digest) = &mut self.digest else { return };
        digest.word(self.now.as_nanos());
        digest.word(what << 32 | u64::from(node.0));
        if let Some(datagram) = datagram {
            digest.address(datagram.from);
            digest.address(datagram.to);
            digest.word(u64::from(datagram.ecn.bits()));
            digest.bytes(&datagram.bytes);
        }
    }
}

impl Place {
    /// When to ask again after a datagram was sent: at once, unless it has sent too many at this moment.
    fn after_sending(&mut self, now: Time) -> Time {
        if self.burst_at != now {
            (self.burst_at, self.burst) = (now, 0);
        }
        self.burst += 1;
        if self.burst < BURST_MAX { now } else { now + Duration::from_micros(1) }
    }
}
