//! A UDP proxy whose way through is as bad as asked for: the simulator's path in real time.

use crate::failure::{Failure, Outcome};
use crate::sockets;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use stayfast_sim::{Datagram, Path, PathSpec, Stats};
use stayfast_units::Time;
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Clients at a time; one more takes the place of the one that has been silent for longest.
const MAX_CLIENTS: usize = 256;
/// Datagrams taken from one socket before the others have their turn.
const TURN: usize = 64;
/// Longest wait, so that a request to stop is seen.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// What the proxy does beside the path itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Habits {
    /// All clients get a new port towards the target every so often, as behind a forgetful NAT.
    pub rebind: Option<Duration>,
}

/// The proxy: clients on one side, one target on the other.
pub struct Proxy {
    listen: UdpSocket,
    target: SocketAddr,
    clients: BTreeMap<SocketAddr, Client>,
    forward: Path,
    back: Path,
    habits: Habits,
    rebound: Instant,
    start: Instant,
    arrivals: Arc<AtomicU64>,
    buffer: Vec<u8>,
}

/// A client and its own socket towards the target, as a NAT would have it.
struct Client {
    socket: UdpSocket,
    heard: Instant,
    /// A datagram of its has come through.
    arrived: bool,
}

impl Proxy {
    /// Listens on `listen` for clients of `target`.
    pub fn bind(listen: SocketAddr, target: SocketAddr, path: &PathSpec, habits: Habits) -> Outcome<Proxy> {
        let socket = sockets::bind(listen).map_err(|e| sockets::cannot_bind(listen, &e))?;
        Ok(Proxy {
            listen: socket,
            target,
            clients: BTreeMap::new(),
            forward: path.forward(),
            back: path.back(),
            habits,
            rebound: Instant::now(),
            start: Instant::now(),
            arrivals: Arc::default(),
            buffer: vec![0; 1 << 16],
        })
    }

    /// Where clients send to.
    pub fn local_addr(&self) -> Outcome<SocketAddr> {
        self.listen.local_addr().map_err(|e| Failure::environment(format!("the socket has no address: {e}")))
    }

    /// Carries datagrams until `stop` says so, which is asked a few times a second.
    pub fn run(&mut self, stop: impl Fn() -> bool) -> Outcome {
        while !stop() {
            self.rebind_if_due();
            self.take_in()?;
            self.let_out();
            self.wait()?;
        }
        Ok(())
    }

    /// What became of the datagrams, forward and back.
    pub fn stats(&self) -> (Stats, Stats) {
        (self.forward.stats(), self.back.stats())
    }

    /// Counts clients of which a datagram has come through.
    pub fn arrivals(&self) -> Arc<AtomicU64> {
        self.arrivals.clone()
    }

    fn now(&self) -> Time {
        Time::ZERO + self.start.elapsed()
    }

    fn take_in(&mut self) -> Outcome {
        for _ in 0..TURN {
            match self.listen.recv_from(&mut self.buffer) {
                Ok((len, from)) => self.take_from_client(from, len)?,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                // A client that went away; the socket is fine.
                Err(_) => {}
            }
        }
        let now = self.now();
        for (address, client) in &self.clients {
            for _ in 0..TURN {
                match client.socket.recv(&mut self.buffer) {
                    Ok(len) => enter(&mut self.back, now, self.target, *address, &self.buffer[..len]),
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                    // Nobody listens at the target: it may come back.
                    Err(_) => {}
                }
            }
        }
        Ok(())
    }

    fn take_from_client(&mut self, from: SocketAddr, len: usize) -> Outcome {
        let heard = Instant::now();
        match self.clients.get_mut(&from) {
            Some(client) => client.heard = heard,
            None => {
                self.make_room();
                let socket = self.towards_target()?;
                self.clients.insert(from, Client { socket, heard, arrived: false });
            }
        }
        enter(&mut self.forward, Time::ZERO + (heard - self.start), from, self.target, &self.buffer[..len]);
        Ok(())
    }

    fn make_room(&mut self) {
        if self.clients.len() >= MAX_CLIENTS
            && let Some(oldest) =
                self.clients.iter().min_by_key(|(_, client)| client.heard).map(|(address, _)| *address)
        {
            self.clients.remove(&oldest);
        }
    }

    fn towards_target(&self) -> Outcome<UdpSocket> {
        let any = match self.target {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let socket = sockets::bind(any).map_err(|e| sockets::cannot_bind(any, &e))?;
        let target = self.target;
        socket.connect(target).map_err(|e| Failure::environment(format!("no way to {target}: {e}")))?;
        Ok(socket)
    }

    fn let_out(&mut self) {
        let now = self.now();
        while let Some(datagram) = self.forward.pop(now) {
            if let Some(client) = self.clients.get_mut(&datagram.from) {
                // Whatever the system does not send is lost, as it would be on any path.
                drop(client.socket.send(&datagram.bytes));
                if !std::mem::replace(&mut client.arrived, true) {
                    self.arrivals.fetch_add(1, Ordering::SeqCst);
                }
            }
            self.forward.recycle(datagram.bytes);
        }
        while let Some(datagram) = self.back.pop(now) {
            drop(self.listen.send_to(&datagram.bytes, datagram.to));
            self.back.recycle(datagram.bytes);
        }
    }

    fn rebind_if_due(&mut self) {
        if self.habits.rebind.is_none_or(|every| self.rebound.elapsed() < every) {
            return;
        }
        self.rebound = Instant::now();
        let addresses: Vec<_> = self.clients.keys().copied().collect();
        for address in addresses {
            // Without a new socket the old one goes on.
            if let (Ok(socket), Some(client)) = (self.towards_target(), self.clients.get_mut(&address)) {
                client.socket = socket;
            }
        }
    }

    /// Until something arrives or is due to leave.
    fn wait(&self) -> Outcome {
        let due = [self.forward.next_timeout(), self.back.next_timeout()].into_iter().flatten().min();
        let wait = due.map_or(LONGEST_WAIT, |due| (due - self.now()).min(LONGEST_WAIT));
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
        let sockets = self.clients.values().map(|client| &client.socket).chain([&self.listen]);
        let mut ready: Vec<PollFd<'_>> = sockets.map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
        match poll(&mut ready, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(Failure::environment(format!("sockets cannot be watched: {e}"))),
        }
    }
}

fn enter(path: &mut Path, now: Time, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
    let mut buffer = path.buffer();
    buffer.extend_from_slice(bytes);
    path.push(now, Datagram::new(from, to, buffer));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    /// Runs `test` with a proxy before `target`, on this path.
    fn with_proxy(path: &str, habits: Habits, test: impl FnOnce(SocketAddr, &UdpSocket)) -> (Stats, Stats) {
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let target = UdpSocket::bind(here).unwrap();
        target.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let mut proxy = Proxy::bind(here, target.local_addr().unwrap(), &path.parse().unwrap(), habits).unwrap();
        let address = proxy.local_addr().unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let running = scope.spawn(|| proxy.run(|| stop.load(Ordering::Relaxed)));
            test(address, &target);
            stop.store(true, Ordering::Relaxed);
            running.join().unwrap().unwrap();
        });
        proxy.stats()
    }

    fn client(proxy: SocketAddr) -> UdpSocket {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        socket.connect(proxy).unwrap();
        socket
    }

    /// Signals, such as that another test's child has ended, are no reason to fail.
    fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        loop {
            match socket.recv_from(buffer) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                received => return received,
            }
        }
    }

    #[test]
    fn clients_get_their_own_answers_after_a_round_trip() {
        let (forward, back) = with_proxy("rtt=40ms", Habits::default(), |proxy, target| {
            let (a, b) = (client(proxy), client(proxy));
            let sent = Instant::now();
            a.send(b"from a").unwrap();
            b.send(b"from b").unwrap();
            let mut buffer = [0; 100];
            for _ in 0..2 {
                let (len, from) = receive(target, &mut buffer).unwrap();
                buffer[..4].copy_from_slice(b"to  ");
                target.send_to(&buffer[..len], from).unwrap();
            }
            for (socket, expected) in [(&a, b"to   a"), (&b, b"to   b")] {
                let (len, _) = receive(socket, &mut buffer).unwrap();
                assert_eq!(&buffer[..len], expected);
            }
            assert!(sent.elapsed() >= Duration::from_millis(40), "{:?}", sent.elapsed());
        });
        assert_eq!((forward.left, back.left), (2, 2));
    }

    #[test]
    fn what_is_to_be_lost_is_lost() {
        let (forward, _) = with_proxy("loss=100%", Habits::default(), |proxy, target| {
            client(proxy).send(b"x").unwrap();
            assert!(receive(target, &mut [0; 10]).is_err());
        });
        assert_eq!((forward.lost, forward.oversize), (1, 0));
    }

    #[test]
    fn large_packets_vanish_and_rebinding_changes_the_port() {
        let habits = Habits { rebind: Some(Duration::from_millis(60)) };
        let (forward, _) = with_proxy("mtu=128", habits, |proxy, target| {
            let client = client(proxy);
            let mut ports = std::collections::BTreeSet::new();
            for _ in 0..5 {
                client.send(&[0; 101]).unwrap();
                client.send(&[0; 100]).unwrap();
                let (len, from) = receive(target, &mut [0; 200]).unwrap();
                assert_eq!(len, 100);
                ports.insert(from.port());
                std::thread::sleep(Duration::from_millis(100));
            }
            assert!(ports.len() >= 3, "{ports:?}");
        });
        assert_eq!(forward.oversize, 5);
    }

    #[test]
    fn a_target_that_is_not_there_yet_stops_nothing() {
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let port = UdpSocket::bind(here).unwrap().local_addr().unwrap();
        let mut proxy = Proxy::bind(here, port, &PathSpec::default(), Habits::default()).unwrap();
        let client = client(proxy.local_addr().unwrap());
        let start = Instant::now();
        for byte in 0..3 {
            client.send(&[byte]).unwrap();
            let until = start + Duration::from_millis(100) * u32::from(byte + 1);
            proxy.run(|| Instant::now() >= until).unwrap();
        }
        let target = UdpSocket::bind(port).unwrap();
        target.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        client.send(b"now").unwrap();
        let until = Instant::now() + Duration::from_millis(100);
        proxy.run(|| Instant::now() >= until).unwrap();
        assert_eq!(receive(&target, &mut [0; 10]).unwrap().0, 3);
    }
}
