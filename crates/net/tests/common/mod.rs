//! Stores that a test can look into, and sockets that fail on command.
#![allow(dead_code, reason = "each test uses its part")]

use stayfast_net::{Datagrams, Driver, Handle, PeerRef, PeerSpec, Received, Settings, Socket, Udp, generate};
use stayfast_seal::Identity;
use stayfast_store::{
    Accepted, AppendError, Appended, Cursor, CursorKey, Delivery, Inbox, Item, Level, Loaded, Memory, Outbox, Position,
    StoreError, Tail,
};
use stayfast_units::{RecordNumber, StoreId};
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub const LONG: Option<Duration> = Some(Duration::from_secs(20));

/// A model store that outlives its driver. `slow` is how long a delivery takes.
#[derive(Clone)]
pub struct Store {
    pub memory: Arc<Mutex<Memory>>,
    pub slow: Duration,
}

impl Store {
    pub fn new(seed: u64) -> Store {
        Store { memory: Arc::new(Mutex::new(Memory::new(seed))), slow: Duration::ZERO }
    }

    pub fn lock(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bodies stored of a stream, in order.
    pub fn stored(&self, sender: &str, store: StoreId, stream: &str) -> Vec<Vec<u8>> {
        let key = CursorKey { sender: sender.into(), store, stream: stream.into() };
        let body = |item: Item<'_>| match item {
            Item::Record(_, body) => body.to_vec(),
            Item::Hole(..) => panic!("a hole"),
        };
        self.lock().effects(&key).map(body).collect()
    }
}

impl Outbox for Store {
    fn store_id(&self) -> StoreId {
        self.lock().store_id()
    }
    fn append(&mut self, stream: &str, records: &[&[u8]]) -> Result<Appended, AppendError> {
        self.lock().append(stream, records)
    }
    fn tails(&mut self) -> Result<Vec<Tail>, StoreError> {
        self.lock().tails()
    }
    fn read(&mut self, stream: &str, from: RecordNumber, max_bytes: usize) -> Result<Vec<Loaded>, StoreError> {
        self.lock().read(stream, from, max_bytes)
    }
    fn trim(&mut self, stream: &str, to: RecordNumber) -> Result<(), StoreError> {
        self.lock().trim(stream, to)
    }
    fn changed(&mut self) -> Result<bool, StoreError> {
        self.lock().changed()
    }
    fn note(&mut self, key: &str, value: &str) -> Result<(), StoreError> {
        self.lock().note(key, value)
    }
    fn notes(&mut self) -> Result<Vec<(String, String)>, StoreError> {
        self.lock().notes()
    }
}

impl Inbox for Store {
    fn level(&self) -> Level {
        self.lock().level()
    }
    fn cursors(&mut self) -> Result<Vec<Cursor>, StoreError> {
        self.lock().cursors()
    }
    fn cursor(&mut self, key: &CursorKey) -> Result<Position, StoreError> {
        self.lock().cursor(key)
    }
    fn deliver(&mut self, delivery: &Delivery) -> Result<Accepted, StoreError> {
        std::thread::sleep(self.slow);
        self.lock().deliver(delivery)
    }
    fn remember_peer(&mut self, name: &str, address: &str) -> Result<(), StoreError> {
        self.lock().remember_peer(name, address)
    }
    fn peers(&mut self) -> Result<Vec<(String, String)>, StoreError> {
        self.lock().peers()
    }
}

/// What a socket is about to do.
pub enum Call<'a> {
    Send(&'a Datagrams<'a>),
    Receive,
}

pub type Plan = Box<dyn FnMut(Call<'_>) -> Option<io::Error> + Send>;

/// A real socket that fails when its plan says so; the call is not made then.
pub struct Faulty {
    pub inner: Udp,
    pub plan: Plan,
    /// Bytes of each buffer that the kernel may use.
    pub room: usize,
}

impl Faulty {
    pub fn new(plan: impl FnMut(Call<'_>) -> Option<io::Error> + Send + 'static) -> Faulty {
        Faulty { inner: Udp::bind(loopback()).unwrap(), plan: Box::new(plan), room: usize::MAX }
    }
}

impl Socket for Faulty {
    fn local_address(&self) -> SocketAddr {
        self.inner.local_address()
    }
    fn send(&mut self, datagrams: &Datagrams<'_>) -> io::Result<()> {
        match (self.plan)(Call::Send(datagrams)) {
            Some(error) => Err(error),
            None => self.inner.send(datagrams),
        }
    }
    fn receive(&mut self, buffers: &mut [Vec<u8>], each: &mut dyn FnMut(Received)) -> io::Result<usize> {
        if let Some(error) = (self.plan)(Call::Receive) {
            return Err(error);
        }
        let room = self.room;
        if buffers.iter().all(|buffer| buffer.len() <= room) {
            return self.inner.receive(buffers, each);
        }
        let mut short: Vec<Vec<u8>> = buffers.iter().map(|buffer| vec![0; room.min(buffer.len())]).collect();
        let count = self.inner.receive(&mut short, each)?;
        for (buffer, short) in buffers.iter_mut().zip(&short) {
            buffer[..short.len()].copy_from_slice(short);
        }
        Ok(count)
    }
    fn max_segments(&self) -> usize {
        self.inner.max_segments()
    }
    fn descriptor(&self) -> BorrowedFd<'_> {
        self.inner.descriptor()
    }
}

pub fn errno(errno: rustix::io::Errno) -> Option<io::Error> {
    Some(errno.into())
}

pub fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

pub fn here() -> Settings {
    Settings { bind: vec![loopback()], ..Settings::default() }
}

/// A receiver that stores by itself.
pub fn receiver(socket: impl Socket + 'static, hub: &Identity, edges: &[&Identity], store: &Store) -> Driver {
    let settings = Settings { deliveries: stayfast_net::Deliveries::Inbox, ..here() };
    let allow = Some(vec!["*".to_string()]);
    let spec = |(i, edge): (usize, &&Identity)| PeerSpec { allow: allow.clone(), ..name(i, edge) };
    let peers = edges.iter().enumerate().map(spec).collect();
    Driver::spawn_on(vec![Box::new(socket)], hub, settings, peers, Some(Box::new(store.clone()))).unwrap()
}

fn name(i: usize, edge: &Identity) -> PeerSpec {
    PeerSpec::new(format!("edge{i}"), edge.public())
}

/// A sender with an outbox.
pub fn sender(socket: impl Socket + 'static, edge: &Identity, hub: &Identity, to: SocketAddr, store: &Store) -> Driver {
    let outbox = Some(Box::new(store.clone()) as Box<dyn Outbox>);
    let spec = PeerSpec { hosts: vec![to.to_string()], outbox, ..PeerSpec::new("hub", hub.public()) };
    Driver::spawn_on(vec![Box::new(socket)], edge, here(), vec![spec], None).unwrap()
}

/// One sender, one receiver, each with its store.
pub struct Pair {
    pub edge: Identity,
    pub hub: Identity,
    pub outbox: Store,
    pub inbox: Store,
    pub receiver: Driver,
    pub sender: Driver,
}

impl Pair {
    pub fn new(sending: impl Socket + 'static, receiving: impl Socket + 'static) -> Pair {
        Pair::with(sending, receiving, Store::new(2))
    }

    pub fn with(sending: impl Socket + 'static, receiving: impl Socket + 'static, inbox: Store) -> Pair {
        let (edge, hub, outbox) = (generate().unwrap(), generate().unwrap(), Store::new(1));
        let receiver = receiver(receiving, &hub, &[&edge], &inbox);
        let sender = sender(sending, &edge, &hub, receiver.local_addresses()[0], &outbox);
        Pair { edge, hub, outbox, inbox, receiver, sender }
    }

    pub fn put(&self, records: &[Vec<u8>]) -> RecordNumber {
        put(&self.sender.handle(), records)
    }

    /// Puts records and waits until they are stored, then compares what is.
    pub fn transfer(&self, records: &[Vec<u8>]) {
        let before = self.stored().len();
        let end = self.put(records);
        self.wait(end);
        assert_eq!(self.stored()[before..], *records);
    }

    pub fn wait(&self, end: RecordNumber) {
        stored(&self.sender.handle(), end, &self.receiver.handle());
    }

    pub fn stored(&self) -> Vec<Vec<u8>> {
        self.inbox.stored("edge0", self.outbox.store_id(), "s")
    }

    /// Every packet that was ever built has left once, or never.
    pub fn all_left(&self) {
        let handle = self.sender.handle();
        let begun = std::time::Instant::now();
        loop {
            let (counters, status) = (handle.counters(), self.status());
            match counters.sent + counters.returned == status.packets_sent {
                true => return,
                false => assert!(begun.elapsed() < Duration::from_secs(5), "{counters:?} {status:?}"),
            }
        }
    }

    pub fn status(&self) -> stayfast_link::Status {
        self.sender.handle().status().remove(0).link
    }
}

pub fn hub(handle: &Handle) -> PeerRef {
    handle.find("hub").unwrap()
}

pub fn put(handle: &Handle, records: &[Vec<u8>]) -> RecordNumber {
    let records: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
    handle.append(hub(handle), "s", &records).unwrap().end()
}

/// Records that differ, of these lengths in turn.
pub fn records(count: usize, lengths: &[usize]) -> Vec<Vec<u8>> {
    let one = |i: usize| (0..lengths[i % lengths.len()]).map(|at| (at * 7 + i * 13) as u8).collect();
    (0..count).map(one).collect()
}

pub fn plain() -> Udp {
    Udp::bind(loopback()).unwrap()
}

/// Waits until all records below `end` are stored; tells all there is to know if they are not.
pub fn stored(sender: &Handle, end: RecordNumber, receiver: &Handle) {
    let progress = sender.stored(hub(sender), "s");
    if progress.wait_until(|progress| progress.stored >= end, LONG).is_err() {
        let (out, into) = (sender.counters(), receiver.counters());
        panic!("{:?}\n{:#?}\n{out:?}\n{:#?}\n{into:?}", progress.get(), sender.status(), receiver.status());
    }
}
