//! What happens between the protocol machines and the sockets: which socket, how many datagrams a call, and what
//! an error means.

use crate::socket::{Datagrams, Received, Socket};
use crate::status::Counters;
use rustix::io::Errno;
use stayfast_link::Transmit;
use stayfast_units::Time;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Sources whose way is remembered. At the bound all are forgotten; the kernel's choice is mostly the same.
const MAX_ROUTES: usize = 4096;
/// Receive calls per socket before the machines have their turn.
const MAX_RECEIVES: usize = 4;
/// How long a batch waits when the kernel has no room but the socket counts as writable.
const NO_BUFFERS: Duration = Duration::from_millis(1);

/// How long a batch waits for room. Its packets count as on their way meanwhile, and the machines stand still.
const PATIENCE: Duration = Duration::from_millis(50);

/// All sockets of a driver.
pub(crate) struct Sockets {
    slots: Vec<Slot>,
    /// How a peer's packets came here: answers go back the same way, or its firewall may not know them.
    routes: BTreeMap<SocketAddr, Route>,
    last: Option<(SocketAddr, Route)>,
    held: Option<Held>,
    received: Vec<Received>,
    pub counters: Counters,
}

struct Slot {
    socket: Box<dyn Socket>,
    segmentation: bool,
    /// The kernel takes ECN bits for what is sent.
    marking: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Route {
    slot: usize,
    local: Option<IpAddr>,
}

/// A batch that the kernel has not taken yet, or not all of it.
#[derive(Clone, Copy)]
struct Held {
    route: Route,
    batch: Transmit,
    /// Up to here the kernel has taken it.
    at: usize,
    /// It was this batch that segmentation was turned off for.
    blamed: bool,
    /// Not before then; without a time, when the socket is writable.
    until: Option<Time>,
    /// When the kernel first had no room for what is left of it.
    refused: Option<Time>,
}

/// What an error of a send means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// The kernel has no room: the same batch again, when the socket is writable.
    Full,
    /// The same, but the socket counts as writable all the time.
    NoBuffers,
    /// The device cannot cut batches: the same bytes again, one datagram at a time.
    NoSegmentation,
    /// The kernel does not take ECN bits: the same bytes again, without.
    NoMarking,
    /// Our address is gone: again, from any.
    NoSource,
    /// This destination's own trouble: as good as lost on the way.
    Lost,
}

fn meaning(error: &io::Error, several: bool, marked: bool, source: bool) -> Meaning {
    if error.kind() == io::ErrorKind::WouldBlock {
        return Meaning::Full;
    }
    match Errno::from_io_error(error) {
        Some(Errno::NOBUFS | Errno::NOMEM | Errno::INTR) => Meaning::NoBuffers,
        Some(Errno::IO | Errno::INVAL | Errno::MSGSIZE | Errno::OPNOTSUPP | Errno::NOPROTOOPT) if several => {
            Meaning::NoSegmentation
        }
        Some(Errno::IO | Errno::INVAL | Errno::OPNOTSUPP | Errno::NOPROTOOPT) if marked => Meaning::NoMarking,
        Some(Errno::INVAL | Errno::ADDRNOTAVAIL | Errno::NODEV) if source => Meaning::NoSource,
        _ => Meaning::Lost,
    }
}

impl Sockets {
    pub fn new(sockets: Vec<Box<dyn Socket>>, segmentation: bool) -> Sockets {
        let slots = sockets.into_iter().map(|socket| Slot { socket, segmentation, marking: true }).collect();
        Sockets {
            slots,
            routes: BTreeMap::new(),
            last: None,
            held: None,
            received: Vec::new(),
            counters: Counters::default(),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &dyn Socket> {
        self.slots.iter().map(|slot| &*slot.socket)
    }

    /// How many datagrams a batch may have.
    pub fn max_segments(&self) -> usize {
        let most = |slot: &Slot| if slot.segmentation { slot.socket.max_segments() } else { 1 };
        self.slots.iter().map(most).max().unwrap_or(1).max(1)
    }

    // --- receiving ---

    /// Receives what is there, up to a bound. True if there may be more.
    pub fn receive(&mut self, buffers: &mut [Vec<u8>], mut each: impl FnMut(SocketAddr, u8, &mut [u8])) -> bool {
        let mut more = false;
        for slot in 0..self.slots.len() {
            for call in 1..=MAX_RECEIVES {
                if !self.receive_once(slot, buffers, &mut each) {
                    break;
                }
                more |= call == MAX_RECEIVES;
            }
        }
        more
    }

    fn receive_once(
        &mut self,
        slot: usize,
        buffers: &mut [Vec<u8>],
        each: &mut impl FnMut(SocketAddr, u8, &mut [u8]),
    ) -> bool {
        self.received.clear();
        let received = &mut self.received;
        match self.slots[slot].socket.receive(buffers, &mut |one| received.push(one)) {
            Ok(0) => return false,
            Ok(_) => self.counters.receive_calls += 1,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return false,
            Err(error) => {
                // Some systems report a peer's closed port here. All other peers are as well as before.
                self.counters.receive_errors += 1;
                tracing::debug!(%error, "a receive failed");
                return true;
            }
        }
        for i in 0..self.received.len() {
            let one = self.received[i];
            self.counters.truncated += u64::from(one.truncated);
            self.learn(one.from, Route { slot, local: one.to });
            let Some(bytes) = buffers.get_mut(one.buffer).and_then(|buffer| buffer.get_mut(..one.len)) else {
                continue;
            };
            for datagram in bytes.chunks_mut(one.segment.max(1)) {
                self.counters.received += 1;
                each(one.from, one.ecn, datagram);
            }
        }
        true
    }

    fn learn(&mut self, from: SocketAddr, route: Route) {
        if self.last == Some((from, route)) {
            return;
        }
        if self.routes.len() >= MAX_ROUTES && !self.routes.contains_key(&from) {
            self.routes.clear();
        }
        self.routes.insert(from, route);
        self.last = Some((from, route));
    }

    // --- sending ---

    /// A batch is waiting for the kernel: there must be no other one until it is gone.
    pub fn is_holding(&self) -> bool {
        self.held.is_some()
    }

    /// When to try again, if a batch waits, at the latest.
    pub fn retry_at(&self) -> Option<Time> {
        let held = self.held?;
        held.until.into_iter().chain(held.refused.map(|at| at + PATIENCE)).min()
    }

    /// What the kernel had no room for, for too long: these packets never left.
    pub fn give_back(&mut self, now: Time) -> Option<Transmit> {
        let held = self.held.take_if(|held| held.refused.is_some_and(|at| now >= at + PATIENCE))?;
        let first = held.batch.first + (held.at / held.batch.segment) as u64;
        self.counters.returned += held.batch.last - first + 1;
        Some(Transmit { first, ..held.batch })
    }

    /// Which socket to wait for until it is writable, if a batch waits for that.
    pub fn waits_for(&self) -> Option<usize> {
        self.held.filter(|held| held.until.is_none()).map(|held| held.route.slot)
    }

    /// Takes over a batch, the first bytes of the buffer; then [`flush`](Sockets::flush).
    pub fn send(&mut self, transmit: &Transmit) {
        let Some(route) = self.route(transmit.to) else {
            self.counters.send_errors += 1;
            return;
        };
        let batch = Transmit { segment: transmit.segment.max(1), ..*transmit };
        self.held = Some(Held { route, batch, at: 0, blamed: false, until: None, refused: None });
    }

    fn route(&self, to: SocketAddr) -> Option<Route> {
        if let Some(route) = self.routes.get(&to) {
            return Some(*route);
        }
        let reaches = |slot: &Slot| {
            let local = slot.socket.local_address();
            local.is_ipv6() == to.is_ipv6() || (local.is_ipv6() && local.ip().is_unspecified())
        };
        self.slots.iter().position(reaches).map(|slot| Route { slot, local: None })
    }

    /// Sends what is held, as far as the kernel takes it. `bytes` must be what they were when it was taken over.
    pub fn flush(&mut self, now: Time, bytes: &[u8]) {
        while let Some(mut held) = self.held.take() {
            if held.until.is_some_and(|until| until > now) {
                self.held = Some(held);
                return;
            }
            held.until = None;
            let Transmit { to, segment, len, ecn, .. } = held.batch;
            let slot = &mut self.slots[held.route.slot];
            let most = if slot.segmentation { slot.socket.max_segments().max(1) } else { 1 };
            let end = len.min(held.at + most * segment);
            let several = end - held.at > segment;
            let ecn = if slot.marking { ecn } else { 0 };
            let batch = Datagrams { to, from: held.route.local, bytes: &bytes[held.at..end], segment, ecn };
            let count = (end - held.at).div_ceil(segment) as u64;
            match slot.socket.send(&batch) {
                Ok(()) => {
                    self.counters.sent += count;
                    self.counters.send_calls += 1;
                    (held.at, held.refused) = (end, None);
                }
                Err(error) => match meaning(&error, several, ecn != 0, held.route.local.is_some()) {
                    meaning @ (Meaning::Full | Meaning::NoBuffers) => {
                        self.counters.waited += 1;
                        held.refused.get_or_insert(now);
                        held.until = (meaning == Meaning::NoBuffers).then(|| now + NO_BUFFERS);
                        self.held = Some(held);
                        return;
                    }
                    Meaning::NoSegmentation => {
                        (slot.segmentation, held.blamed) = (false, true);
                        self.counters.unsegmented += 1;
                        tracing::info!(%error, "this network device cannot cut batches: datagrams go one by one");
                    }
                    Meaning::NoMarking => {
                        // Alone it is refused as well, so it was not the number of datagrams.
                        slot.segmentation |= held.blamed;
                        slot.marking = false;
                        self.counters.unmarked += 1;
                        tracing::info!(%error, "this kernel takes no ECN bits: datagrams go without");
                    }
                    Meaning::NoSource => {
                        held.route.local = None;
                        self.routes.remove(&to);
                        self.last = None;
                    }
                    Meaning::Lost => {
                        if held.blamed && Errno::from_io_error(&error) == Some(Errno::MSGSIZE) {
                            // Alone it is too large as well: the interface takes less now, and can cut all the same.
                            slot.segmentation = true;
                        }
                        self.counters.send_errors += 1;
                        tracing::debug!(%error, %to, "a send failed");
                        held.at = end;
                    }
                },
            }
            if held.at < len {
                self.held = Some(held);
            }
        }
    }
}
