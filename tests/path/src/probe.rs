//! How exact a path is on this machine.

use crate::{Emulator, Failure, Namespace, Traffic};
use stayfast_sim::PathSpec;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

/// Between two probes of one way.
const INTERVAL: Duration = Duration::from_millis(1);
/// After the last probe that came.
const PATIENCE: Duration = Duration::from_millis(500);
const PORT: u16 = 7;

/// What came of it.
#[derive(Clone, Debug)]
pub struct Exactness {
    /// Probes sent, both ways together.
    pub sent: usize,
    /// How much longer than half of the round trip those took that came, nanoseconds, the least first.
    pub errors: Vec<i64>,
    /// What the emulator says of itself.
    pub traffic: Traffic,
}

impl Exactness {
    /// So many thousandths are below this, nanoseconds; nothing if none came.
    pub fn permille(&self, permille: usize) -> Option<i64> {
        self.errors.get((self.errors.len() * permille / 1_000).min(self.errors.len().saturating_sub(1))).copied()
    }
}

/// Sends probes of `size` bytes over a path for so long, 1,000 a second each way. [`isolate`](crate::isolate) comes
/// before.
///
/// # Errors
/// What the system does not allow.
pub fn probe(spec: &PathSpec, size: usize, duration: Duration) -> Result<Exactness, Failure> {
    let (left, left_device) = Namespace::new(Ipv4Addr::new(10, 0, 0, 1))?;
    let (right, right_device) = Namespace::new(Ipv4Addr::new(10, 0, 0, 2))?;
    let failed = || Failure::system::<io::Error>("probes cannot be sent");
    let bind = |namespace: &Namespace| {
        let address = SocketAddr::from((namespace.address(), PORT));
        namespace.within(|| UdpSocket::bind(address))?.map_err(failed())
    };
    let (here, there) = (bind(&left)?, bind(&right)?);
    here.connect(there.local_addr().map_err(failed())?).map_err(failed())?;
    there.connect(here.local_addr().map_err(failed())?).map_err(failed())?;
    let emulator = Emulator::start(spec, left_device, right_device)?;
    let (start, half) = (Instant::now(), spec.rtt / 2);
    let mut exactness = Exactness { sent: 0, errors: Vec::new(), traffic: Traffic::default() };
    thread::scope(|scope| {
        let ways = [(&here, &there), (&there, &here)].map(|(from, to)| {
            let sending = scope.spawn(move || send(from, size, start, duration));
            (sending, scope.spawn(move || listen(to, start, half)))
        });
        for (sending, listening) in ways {
            exactness.sent += sending.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))?;
            exactness.errors.extend(listening.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))?);
        }
        Ok(())
    })
    .map_err(failed())?;
    exactness.errors.sort_unstable();
    exactness.traffic = emulator.stop()?;
    Ok(exactness)
}

fn send(socket: &UdpSocket, size: usize, start: Instant, duration: Duration) -> io::Result<usize> {
    let mut probe = vec![0; size.max(8)];
    let count = (duration.as_nanos() / INTERVAL.as_nanos()) as u32;
    for n in 0..count {
        thread::sleep((start + INTERVAL * n).saturating_duration_since(Instant::now()));
        let at = start.elapsed().as_nanos() as u64;
        probe[..8].copy_from_slice(&at.to_le_bytes());
        socket.send(&probe)?;
    }
    Ok(count as usize)
}

fn listen(socket: &UdpSocket, start: Instant, half: Duration) -> io::Result<Vec<i64>> {
    socket.set_read_timeout(Some(PATIENCE + half))?;
    let (mut probe, mut errors) = (vec![0; 1 << 16], Vec::new());
    loop {
        match socket.recv(&mut probe) {
            Ok(_) => {}
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => return Ok(errors),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        }
        let now = start.elapsed().as_nanos() as i64;
        if let Some(at) = probe.first_chunk() {
            errors.push(now - i64::from_le_bytes(*at) - half.as_nanos() as i64);
        }
    }
}
