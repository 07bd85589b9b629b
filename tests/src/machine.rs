use stayfast_link::{Config, Event, Inbound, Node as Link, Outbound, PeerId, Role, Transmit};
use stayfast_seal::{Identity, PublicKey, Sessions};
use stayfast_sim::{Datagram, Ecn, Node, Poll};
use stayfast_store::{Inbox, Memory, Outbox, StoreDone, StoreOp, perform};
/// Random bytes for the simulator: replayable from the seed, never the same for two runs.
pub use stayfast_testkit::SplitMix as Entropy;
use stayfast_units::{RecordNumber, RunId, Time};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

/// Which half of the link a machine runs.
#[derive(Clone, Debug)]
pub enum Part {
    /// It sends what is in its outbox to an address.
    Sender(SocketAddr),
    /// It stores what comes; after a restart it remembers the peer's address.
    Receiver(Option<SocketAddr>),
}

/// A real protocol machine with a model store and an application that stores at once, as a node of the simulator.
pub struct Machine {
    link: Link<Sessions>,
    peer: PeerId,
    /// The store, which outlives the machine.
    pub store: Memory,
    /// What the machine has told so far, but for progress.
    pub events: Vec<Event>,
    /// Per stream, the first record not known to be stored.
    pub stored: BTreeMap<String, RecordNumber>,
    /// How many records the application had taken, and when.
    pub taken: Vec<(Time, u64)>,
    /// How long each delivery takes to become durable.
    pub store_delay: Duration,
    /// Timers fire only at whole multiples of this, so late by up to as much; zero: they are exact.
    pub timer: Duration,
    done: VecDeque<(Time, StoreDone)>,
    buf: Vec<u8>,
    batch: Option<(Transmit, usize)>,
    appended: Vec<(String, RecordNumber)>,
}

/// Segments of one transmit.
const SEGMENTS: usize = 16;

impl Machine {
    /// A new run over what is in the store.
    pub fn new(now: Time, part: Part, keys: (&Identity, PublicKey), store: Memory, mut entropy: Entropy) -> Machine {
        let run = RunId(entropy.draw() | 1);
        let config = Config::default();
        let mut store = store;
        let seal = Sessions::new(keys.0, keys.1, None, run, true, Box::new(entropy.clone()));
        let mut link = Link::new(config.clone(), entropy.draw());
        let (outbound, inbound, addresses) = match part {
            Part::Sender(to) => {
                let tails = store.tails().expect("the model store can be read");
                (Some(Outbound { store: store.store_id(), tails }), None, vec![to])
            }
            Part::Receiver(from) => {
                let cursors = store.cursors().expect("the model store can be read");
                let allow = vec![String::from("*")];
                (None, Some(Inbound { allow, cursors, level: store.level() }), from.into_iter().collect())
            }
        };
        let wakes = inbound.is_some() && !addresses.is_empty();
        let peer = link.add_peer(now, seal, Role { name: "peer".into(), outbound, inbound, addresses });
        if wakes {
            link.wake(now, peer);
        }
        Machine {
            link,
            peer,
            store,
            events: Vec::new(),
            stored: BTreeMap::new(),
            taken: Vec::new(),
            store_delay: Duration::ZERO,
            timer: Duration::ZERO,
            done: VecDeque::new(),
            buf: vec![0; SEGMENTS * usize::from(config.max_datagram)],
            batch: None,
            appended: Vec::new(),
        }
    }

    /// Appends records to the outbox; the machine learns of it when it is polled next.
    pub fn append(&mut self, stream: &str, records: &[&[u8]]) {
        let appended = self.store.append(stream, records).expect("the model store takes records");
        let next = appended.first.plus(appended.count.into());
        self.appended.push((stream.into(), next));
    }

    /// A person would have to decide something: FENCED, ROLLBACK, REFUSED.
    pub fn has_trouble(&self) -> bool {
        self.events.iter().any(|event| {
            matches!(
                event,
                Event::Fenced { .. } | Event::Rollback { .. } | Event::Refused { .. } | Event::TooWeak { .. }
            )
        })
    }

    /// How the link is doing.
    pub fn status(&self) -> stayfast_link::Status {
        self.link.status(self.peer).unwrap_or_default()
    }

    /// Datagrams dropped, whatever the reason.
    pub fn rejected(&self) -> Vec<(&'static str, u64)> {
        self.link.rejected().filter(|(_, n)| *n > 0).map(|(reason, n)| (reason.name(), n)).collect()
    }

    fn work(&mut self, now: Time) {
        for (stream, next) in self.appended.drain(..) {
            self.link.appended(now, self.peer, &stream.as_str().into(), next);
        }
        while self.done.front().is_some_and(|(at, _)| *at <= now) {
            let Some((_, done)) = self.done.pop_front() else { break };
            self.link.handle_store(now, self.peer, done);
        }
        while let Some((_, op)) = self.link.poll_store() {
            // One model store is outbox and inbox at once; an operation needs one of them.
            let is_inbox = matches!(op, StoreOp::Deliver(_) | StoreOp::ReadCursor { .. });
            let records = if let StoreOp::Deliver(delivery) = &op { delivery.run.len() as u64 } else { 0 };
            let done = match is_inbox {
                true => perform(op, None, Some(&mut self.store)),
                false => perform(op, Some(&mut self.store), None),
            };
            if matches!(done, Some(StoreDone::Delivered { .. })) {
                let before = self.taken.last().map_or(0, |(_, taken)| *taken);
                self.taken.push((now + self.store_delay, before + records));
            }
            match done {
                Some(done) if is_inbox && !self.store_delay.is_zero() => {
                    self.done.push_back((now + self.store_delay, done));
                }
                Some(done) => self.link.handle_store(now, self.peer, done),
                None => {}
            }
        }
        while let Some((_, event)) = self.link.poll_event() {
            if let Event::Stored { stream, next } = &event {
                match self.stored.get_mut(&**stream) {
                    Some(stored) => *stored = *next,
                    None => _ = self.stored.insert(stream.to_string(), *next),
                }
            }
            if !matches!(event, Event::Stored { .. } | Event::Heard { .. }) {
                self.events.push(event);
            }
        }
    }

    /// When a timer that is set to `at` fires.
    fn timed(&self, at: Time) -> Time {
        match self.timer.as_nanos() as u64 {
            0 => at,
            timer => Time::from_nanos(at.as_nanos().next_multiple_of(timer)),
        }
    }

    fn next_segment(&mut self, out: &mut Datagram) -> bool {
        let Some((transmit, at)) = self.batch.take() else { return false };
        let end = (at + transmit.segment).min(transmit.len);
        (out.to, out.ecn) = (transmit.to, Ecn::from_bits(transmit.ecn));
        out.bytes.extend_from_slice(&self.buf[at..end]);
        if end < transmit.len {
            self.batch = Some((transmit, end));
        }
        true
    }
}

impl Node for Machine {
    fn handle(&mut self, now: Time, datagram: &mut Datagram) {
        self.link.handle_datagram(now, datagram.from, datagram.ecn.bits(), &mut datagram.bytes);
    }

    fn poll(&mut self, now: Time, out: &mut Datagram) -> Poll {
        if self.next_segment(out) {
            return Poll::Transmit;
        }
        self.work(now);
        if self.link.handle_timeout(now) {
            self.work(now);
        }
        if let Some(transmit) = self.link.poll_transmit(now, &mut self.buf, SEGMENTS) {
            self.batch = Some((transmit, 0));
            self.next_segment(out);
            return Poll::Transmit;
        }
        let next = self.link.next_timeout();
        // Whoever is due must have been served, or the driver would spin.
        assert!(next.is_none_or(|(at, _)| at > now), "{next:?} is due at {now:?} and nothing was done");
        let link = next.map(|(at, _)| at);
        let done = self.done.front().map(|(at, _)| *at);
        match [link, done].into_iter().flatten().min() {
            Some(at) => Poll::WakeAt(self.timed(at)),
            None => Poll::Idle,
        }
    }
}
