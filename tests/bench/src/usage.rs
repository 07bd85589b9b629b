//! Processor time of this process.

use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// A reading of the clocks: of the wall, and of the time that all threads of this process spent on a processor, in
/// the program and in the kernel on its behalf.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    at: Instant,
    cpu: Duration,
    /// Clock ticks of 10 ms, in the program and in the kernel; only good for a share.
    ticks: (u64, u64),
}

/// What lies between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// By the wall.
    pub wall: Duration,
    /// On processors, user and system, to the nanosecond.
    pub cpu: Duration,
    /// How much of that was the kernel's, 0 to 1: sampled in steps of 10 ms.
    pub kernel: f64,
}

impl Usage {
    /// Reads the clocks.
    pub fn now() -> Usage {
        let cpu = clock_gettime(ClockId::ProcessCPUTime);
        let cpu = Duration::new(cpu.tv_sec.unsigned_abs(), cpu.tv_nsec as u32);
        Usage { at: Instant::now(), cpu, ticks: ticks().unwrap_or_default() }
    }

    /// What was spent since.
    ///
    /// ```
    /// use std::time::Duration;
    /// let start = stayfast_bench::usage::Usage::now();
    /// while start.spent().cpu < Duration::from_millis(2) {}
    /// let (sooner, later) = (start.spent(), start.spent());
    /// assert!(sooner.cpu <= later.cpu && sooner.wall <= later.wall);
    /// ```
    pub fn spent(&self) -> Spent {
        let now = Usage::now();
        let (user, kernel) = (now.ticks.0 - self.ticks.0, now.ticks.1 - self.ticks.1);
        Spent {
            wall: now.at - self.at,
            cpu: now.cpu.saturating_sub(self.cpu),
            kernel: kernel as f64 / (user + kernel).max(1) as f64,
        }
    }
}

/// Fields 14 and 15 of /proc/self/stat; `None` where there is no such file.
fn ticks() -> Option<(u64, u64)> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the program's name in parentheses, with whatever in it.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}
