//! How exact a path is on this machine.

use crate::{Emulator, Failure, Namespace, Schedule, Traffic};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

/// Between two probes of one way.
const INTERVAL: Duration = Duration::from_millis(1);
/// After the last probe should have come.
const PATIENCE: Duration = Duration::from_millis(500);
const PORT: u16 = 7;

/// What came of it.
#[derive(Clone, Debug)]
pub struct Exactness {
    /// Probes sent, both ways together.
    pub sent: usize,
    /// How much longer than half of the round trip those took that came, nanoseconds, the least first. The round trip is
    /// that of the path when the probe was sent.
    pub errors: Vec<i64>,
    /// When the first and the last of those that came were sent.
    pub span: Option<(Duration, Duration)>,
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
/// before. What the path becomes counts from the first probe.
///
/// # Errors
/// What the system does not allow.
pub fn probe(schedule: &Schedule, size: usize, duration: Duration) -> Result<Exactness, Failure> {
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
    let emulator = Emulator::start(schedule, left_device, right_device)?;
    let start = Instant::now();
    emulator.begin(start);
    let (mut sent, mut came) = (0, Vec::new());
    let until = duration + schedule.at(Duration::ZERO).rtt.max(schedule.at(duration).rtt) + PATIENCE;
    thread::scope(|scope| {
        let ways = [(&here, &there), (&there, &here)].map(|(from, to)| {
            let sending = scope.spawn(move || send(from, size, start, duration));
            (sending, scope.spawn(move || listen(to, start, until)))
        });
        for (sending, listening) in ways {
            sent += sending.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))?;
            came.extend(listening.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))?);
        }
        Ok(())
    })
    .map_err(failed())?;
    let traffic = emulator.stop()?;
    let half = |sent: Duration| (schedule.at(sent).rtt / 2).as_nanos() as i64;
    let mut errors: Vec<i64> = came.iter().map(|(sent, took)| took.as_nanos() as i64 - half(*sent)).collect();
    errors.sort_unstable();
    let times = || came.iter().map(|(sent, _)| *sent);
    Ok(Exactness { sent, errors, span: times().min().zip(times().max()), traffic })
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

/// When each probe that came was sent, and how long it took.
fn listen(socket: &UdpSocket, start: Instant, until: Duration) -> io::Result<Vec<(Duration, Duration)>> {
    let (mut probe, mut came) = (vec![0; 1 << 16], Vec::new());
    while let Some(wait) = until.checked_sub(start.elapsed()).filter(|wait| !wait.is_zero()) {
        socket.set_read_timeout(Some(wait))?;
        match socket.recv(&mut probe) {
            Ok(_) => {}
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => continue,
            Err(e) => return Err(e),
        }
        let now = start.elapsed();
        if let Some(at) = probe.first_chunk() {
            let sent = Duration::from_nanos(u64::from_le_bytes(*at));
            came.push((sent, now.saturating_sub(sent)));
        }
    }
    Ok(came)
}
