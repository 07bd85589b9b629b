//! A run, in the process that is there for it alone.

use super::board::{Board, Sampler, Trouble};
use super::{Ran, Task, ours, quic, tcp};
use crate::peers::Kind;
use crate::run::PACED_AFTER;
use rustix::process::setpriority_process;
use stayfast_path::{Emulator, Namespace, Schedule, SyncDevice, isolate};
use stayfast_sim::{PathError, PathSpec};
use std::cmp::Reverse;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// How often the state is looked at.
const STEP: Duration = Duration::from_millis(20);
/// How long the first record may take, and the last ones of a paced load.
const PATIENCE: Duration = Duration::from_secs(20);
/// So that builds and browsers beside the run do not delay the ends; only root may ask for it.
const NICE: i32 = -15;
/// Flows have one port each from here on.
const PORT: u16 = 4_711;

/// Where a flow begins and ends.
pub(super) struct Ends<'a> {
    pub(super) left: &'a Namespace,
    pub(super) right: &'a Namespace,
    pub(super) port: u16,
    /// For stores: in memory, where the machine has a folder there.
    pub(super) folder: PathBuf,
}

struct Flow {
    board: Arc<Board>,
    sampler: Sampler,
}

type Side = (Namespace, SyncDevice);

fn sides() -> Result<(Side, Side), Trouble> {
    isolate()?;
    let side = |end| Namespace::new(Ipv4Addr::new(10, 0, 0, end));
    Ok((side(1)?, side(2)?))
}

/// The transports of this machine.
pub(super) fn present() -> Result<Vec<Kind>, Trouble> {
    let ((left, _), _) = sides()?;
    Ok(left.within(|| Kind::ALL.into_iter().filter(|kind| tcp::is_present(*kind)).collect())?)
}

impl Task {
    fn schedule(&self) -> Result<Schedule, Trouble> {
        let spec = |text: &str| -> Result<PathSpec, Trouble> {
            let spec: PathSpec = text.parse().map_err(|e: PathError| e.to_string())?;
            Ok(PathSpec { seed: self.seed, ..spec })
        };
        let mut schedule = Schedule::new(spec(&self.path)?);
        for (after, path) in &self.changes {
            let fixed = |word| format!("`{word}` stays as it is for a whole run");
            schedule = schedule.then(*after, spec(path)?).map_err(fixed)?;
        }
        Ok(schedule)
    }
}

/// What flows are put on.
struct Road<'a> {
    task: &'a Task,
    left: Namespace,
    right: Namespace,
    folder: PathBuf,
    start: Instant,
}

impl Road<'_> {
    /// The first flow is the one that is measured; the others always have more to send.
    fn begin(&self, nth: usize) -> Result<Flow, Trouble> {
        let kind = self.task.flows[nth].0;
        let rate = self.task.rate.filter(|_| nth == 0);
        let task = &Task { rate, ..self.task.clone() };
        let port = PORT + nth as u16;
        let ends = Ends { left: &self.left, right: &self.right, port, folder: self.folder.clone() };
        let board = Board::new(self.start);
        let sampler = match kind {
            Kind::Stayfast => ours::start(&ends, task, &board)?,
            Kind::Quinn | Kind::QuinnWide | Kind::QuinnBbr => quic::start(&ends, kind, task, &board)?,
            Kind::Tcp | Kind::TcpBbr => tcp::start(&ends, kind, task, &board)?,
        };
        Ok(Flow { board, sampler })
    }
}

pub(super) fn execute(task: &Task) -> Result<Ran, Trouble> {
    let schedule = task.schedule()?;
    let _ = setpriority_process(None, NICE);
    let ((left, left_device), (right, right_device)) = sides()?;
    let folder =
        tempfile::Builder::new().prefix("stayfast-").tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
    let emulator = Emulator::start(&schedule, left_device, right_device)?;
    let road = Road { task, left, right, folder: folder.path().to_path_buf(), start: Instant::now() };
    let before = (waited(), Instant::now());
    let mut ran = watch(&road, &emulator)?;
    let waited = waited().saturating_sub(before.0).as_nanos() / before.1.elapsed().as_millis().max(1);
    ran.waited_permille = (waited / 1_000) as u64;
    let traffic = emulator.stop()?;
    (ran.dropped, ran.marked) = (traffic.stats[0].dropped(), traffic.stats[0].marked);
    ran.late_us = [500, 990, 999].map(|permille| traffic.lateness.permille(permille).as_micros() as u64);
    Ok(ran)
}

/// How long the threads of this process have waited for a processor so far, all together; nothing where the kernel does
/// not count it. The kernel's own TCP lives in the emulator's thread for the most part, which waits for nobody: a machine
/// with too much to do would slow down everyone but TCP.
fn waited() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let waited = threads.filter_map(|thread| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()
    });
    Duration::from_nanos(waited.sum())
}

/// Puts flows on the road, each at its time, and looks at them until the run is over.
fn watch(road: &Road<'_>, emulator: &Emulator) -> Result<Ran, Trouble> {
    let nanos = |duration: Duration| duration.as_nanos() as u64;
    let task = road.task;
    let (mut late, early): (Vec<_>, Vec<_>) = (0..task.flows.len()).partition(|nth| !task.flows[*nth].1.is_zero());
    late.sort_by_key(|nth| Reverse(task.flows[*nth].1));
    let mut flows: Vec<Flow> = early.into_iter().map(|nth| road.begin(nth)).collect::<Result<_, _>>()?;
    let (mut ran, board) = (Ran::default(), flows[0].board.clone());
    let length = nanos(Duration::from_secs(task.seconds));
    loop {
        thread::sleep(STEP);
        for flow in &flows {
            flow.board.trouble()?;
        }
        let now = board.now();
        let beside = flows[1..].iter().map(|flow| flow.board.taken()).sum();
        ran.points.push((now, board.taken(), beside, emulator.queued(), (flows[0].sampler)()));
        // A drain counts from its first record on.
        let Some(from) = task.rate.map_or(board.first(), |_| Some(nanos(PACED_AFTER))) else {
            match now > nanos(PATIENCE) {
                true => return Err("nothing arrived".into()),
                false => continue,
            }
        };
        (ran.from, ran.until) = (from, from + length);
        emulator.begin(road.start + Duration::from_nanos(from));
        while let Some(nth) = late.pop_if(|nth| from + nanos(task.flows[*nth].1) <= now) {
            flows.push(road.begin(nth)?);
        }
        let all = task.rate.is_some() && board.taken() >= task.count().into();
        let patience = task.rate.map_or(Duration::ZERO, |_| PATIENCE);
        if all || now >= ran.until + nanos(patience) {
            break;
        }
    }
    let log = board.log();
    ran.taken = log.iter().rfind(|(at, _)| *at <= ran.until).map_or(0, |(_, taken)| *taken);
    if task.rate.is_some() {
        let waits = waits(&board.offered(), &log);
        ran.missing = u64::from(task.count()) - waits.len() as u64;
        ran.waits = Some(waits);
    }
    Ok(ran)
}

/// From append to hand-over, in microseconds, of the records that arrived.
fn waits(offered: &[u64], log: &[(u64, u64)]) -> Vec<u64> {
    let mut waits = Vec::with_capacity(offered.len());
    for &(at, taken) in log {
        for append in &offered[waits.len().min(offered.len())..(taken as usize).min(offered.len())] {
            waits.push((at - append) / 1_000);
        }
    }
    waits
}
