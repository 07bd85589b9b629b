use crate::{Failure, Lateness, MTU, Schedule, packet};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::mm::{MlockAllFlags, mlockall};
use stayfast_sim::{Path, PathSpec, Stats};
use stayfast_units::Time;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};
use tun_rs::SyncDevice;

/// Packets taken from one device before the other has its turn, and before those that are due leave.
const TURN: usize = 32;
/// Longest wait, so that a request to stop is seen.
const LONGEST_WAIT: Duration = Duration::from_millis(20);
/// Above whatever else runs on the machine, below the kernel's own threads.
const PRIORITY: u8 = 50;

/// Moves packets between two devices until it is stopped: data from the left to the right, answers back.
pub struct Emulator {
    thread: JoinHandle<io::Result<Traffic>>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    queued: AtomicU64,
    /// From when on changes count. Whoever reads it waits for nobody.
    begin: OnceLock<Instant>,
}

/// What the emulator has done.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    /// What became of the packets, forward and back.
    pub stats: [Stats; 2],
    /// How late they left.
    pub lateness: Lateness,
    /// It ran before all other threads of the machine.
    pub first: bool,
}

impl Emulator {
    /// Starts. Its thread runs before all others of the machine where that is allowed, since a packet that leaves late is
    /// a delay that nobody asked for.
    ///
    /// # Errors
    /// No thread.
    pub fn start(schedule: &Schedule, left: SyncDevice, right: SyncDevice) -> Result<Emulator, Failure> {
        let shared = Arc::new(Shared::default());
        let mut wire = Wire {
            devices: [left, right],
            paths: [schedule.first().forward(), schedule.first().back()],
            changes: schedule.changes().iter().rev().copied().collect(),
            start: Instant::now(),
            traffic: Traffic::default(),
            shared: shared.clone(),
        };
        let body = move || {
            wire.traffic.first = run_first();
            wire.run()
        };
        let thread = thread::Builder::new().name("emulator".into()).spawn(body);
        Ok(Emulator { thread: thread.map_err(Failure::system("no thread for the emulator"))?, shared })
    }

    /// The changes of the schedule count from this moment; the first one that is told holds. One that was due before it was
    /// told comes at once, at most 20 ms later.
    pub fn begin(&self, at: Instant) {
        let _ = self.shared.begin.set(at);
    }

    /// Bytes that wait at the bottleneck of the way forward.
    pub fn queued(&self) -> u64 {
        self.shared.queued.load(Ordering::Relaxed)
    }

    /// Stops it; what is on the way is lost.
    ///
    /// # Errors
    /// A device failed meanwhile.
    pub fn stop(self) -> Result<Traffic, Failure> {
        self.shared.stop.store(true, Ordering::Relaxed);
        let traffic = self.thread.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
        traffic.map_err(Failure::system("the emulator failed"))
    }
}

/// Neither being paged out nor waiting for other threads may delay a packet; says whether the latter is granted.
fn run_first() -> bool {
    let _ = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE);
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZero::new(1));
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    ThreadPriority::try_from(PRIORITY)
        .is_ok_and(|priority| set_thread_priority_and_policy(thread_native_id(), priority, policy).is_ok())
}

struct Wire {
    devices: [SyncDevice; 2],
    /// From the first device to the second, and back.
    paths: [Path; 2],
    /// What they become, the next one last.
    changes: Vec<(Duration, PathSpec)>,
    start: Instant,
    traffic: Traffic,
    shared: Arc<Shared>,
}

impl Wire {
    fn run(&mut self) -> io::Result<Traffic> {
        while !self.shared.stop.load(Ordering::Relaxed) {
            for way in 0..2 {
                self.let_out(way)?;
            }
            for way in 0..2 {
                self.take_in(way)?;
            }
            self.shared.queued.store(self.paths[0].queued().1, Ordering::Relaxed);
            self.wait()?;
        }
        self.traffic.stats = [self.paths[0].stats(), self.paths[1].stats()];
        Ok(self.traffic.clone())
    }

    fn now(&self) -> Time {
        Time::ZERO + self.start.elapsed()
    }

    /// When the paths change next, once it is known.
    fn next_change(&self) -> Option<Time> {
        let (after, _) = self.changes.last()?;
        let begin = self.shared.begin.get()?;
        Some(Time::ZERO + begin.saturating_duration_since(self.start) + *after)
    }

    /// Does what is due on this way: changes of the paths, and packets that leave.
    fn let_out(&mut self, way: usize) -> io::Result<()> {
        while let Some(at) = self.next_change().filter(|at| *at <= self.now()) {
            let Some((_, spec)) = self.changes.pop() else { break };
            for (i, elements) in [spec.forward_elements(), spec.back_elements()].into_iter().enumerate() {
                self.let_out_by(i, at)?;
                for element in elements {
                    self.paths[i].set(at, element);
                }
            }
        }
        self.let_out_by(way, self.now())
    }

    /// Writes what is due by then. Goes from event to event, so that it is known when each packet should have left.
    fn let_out_by(&mut self, way: usize, now: Time) -> io::Result<()> {
        while let Some(due) = self.paths[way].next_timeout().filter(|due| *due <= now) {
            while let Some(mut datagram) = self.paths[way].pop(due) {
                packet::write_ecn(&mut datagram);
                match self.devices[1 - way].send(&datagram.bytes) {
                    Ok(_) => {}
                    // A packet that was corrupted on the way, or no room: lost, as it would be on any wire.
                    Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::InvalidInput) => {}
                    Err(e) => return Err(e),
                }
                self.traffic.lateness.add(self.now() - due);
                self.paths[way].recycle(datagram.bytes);
            }
        }
        Ok(())
    }

    fn take_in(&mut self, way: usize) -> io::Result<()> {
        for _ in 0..TURN {
            let mut buffer = self.paths[way].buffer();
            buffer.resize(usize::from(MTU), 0);
            match self.devices[way].recv(&mut buffer) {
                Ok(len) => buffer.truncate(len),
                Err(e) => {
                    self.paths[way].recycle(buffer);
                    return if e.kind() == io::ErrorKind::WouldBlock { Ok(()) } else { Err(e) };
                }
            }
            // What is due by now leaves before, for it to be counted at its time.
            self.let_out(way)?;
            let now = self.now();
            match packet::datagram(buffer) {
                Ok(datagram) => self.paths[way].push(now, datagram),
                Err(buffer) => self.paths[way].recycle(buffer),
            }
        }
        Ok(())
    }

    /// Until something arrives or is due to leave.
    fn wait(&self) -> io::Result<()> {
        let due = self.paths.iter().filter_map(Path::next_timeout).chain(self.next_change()).min();
        let wait = due.map_or(LONGEST_WAIT, |due| (due - self.now()).min(LONGEST_WAIT));
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
        let mut ready = [0, 1].map(|i| PollFd::new(&self.devices[i], PollFlags::IN));
        match poll(&mut ready, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }
}
