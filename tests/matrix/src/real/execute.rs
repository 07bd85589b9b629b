//! A run, in the process that is there for it alone.

use super::board::{Board, Sampler, Trouble};
use super::{Ran, Task, ours, quic, tcp};
use crate::peers::Kind;
use crate::run::PACED_AFTER;
use rustix::process::setpriority_process;
use stayfast_path::{Emulator, Namespace, SyncDevice, isolate};
use stayfast_sim::PathSpec;
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

pub(super) fn execute(task: &Task) -> Result<Ran, Trouble> {
    let mut spec: PathSpec = task.path.parse().map_err(|e: stayfast_sim::PathError| e.to_string())?;
    spec.seed = task.seed;
    let _ = setpriority_process(None, NICE);
    let ((left, left_device), (right, right_device)) = sides()?;
    let folder =
        tempfile::Builder::new().prefix("stayfast-").tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
    let emulator = Emulator::start(&spec, left_device, right_device)?;
    let start = Instant::now();
    let mut flows = Vec::new();
    for (kind, port) in task.flows.iter().zip(PORT..) {
        let ends = Ends { left: &left, right: &right, port, folder: folder.path().to_path_buf() };
        let board = Board::new(start);
        let sampler = match kind {
            Kind::Stayfast => ours::start(&ends, task, &board)?,
            Kind::Quinn | Kind::QuinnWide | Kind::QuinnBbr => quic::start(&ends, *kind, task, &board)?,
            Kind::Tcp | Kind::TcpBbr => tcp::start(&ends, *kind, task, &board)?,
        };
        flows.push(Flow { board, sampler });
    }
    let before = (waited(), Instant::now());
    let mut ran = watch(task, &spec, &emulator, &flows)?;
    let waited = waited().saturating_sub(before.0).as_nanos() / before.1.elapsed().as_millis().max(1);
    ran.waited_permille = (waited / 1_000) as u64;
    let traffic = emulator.stop()?;
    ran.dropped = traffic.stats[0].dropped();
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

/// Looks at the flows until the run is over.
fn watch(task: &Task, spec: &PathSpec, emulator: &Emulator, flows: &[Flow]) -> Result<Ran, Trouble> {
    let (mut ran, board) = (Ran::default(), &flows[0].board);
    let nanos = |duration: Duration| duration.as_nanos() as u64;
    let paced_until = PACED_AFTER.as_nanos() as u64 + nanos(Duration::from_secs(task.seconds));
    loop {
        thread::sleep(STEP);
        for flow in flows {
            flow.board.trouble()?;
        }
        let now = board.now();
        let queue_us = spec.rate.map_or(0, |rate| rate.time_for(emulator.queued()).as_micros() as u64);
        let beside = flows[1..].iter().map(|flow| flow.board.taken()).sum();
        ran.points.push((now, board.taken(), beside, queue_us, (flows[0].sampler)()));
        let over = match (task.rate, board.first()) {
            (Some(_), _) => board.taken() >= task.count().into() || now > paced_until + nanos(PATIENCE),
            (None, Some(first)) => now >= first + nanos(Duration::from_secs(task.seconds)),
            (None, None) if now > nanos(PATIENCE) => return Err("nothing arrived".into()),
            (None, None) => false,
        };
        if over {
            break;
        }
    }
    let log = board.log();
    (ran.from, ran.until) = match (task.rate, board.first()) {
        (None, Some(first)) => (first, first + nanos(Duration::from_secs(task.seconds))),
        _ => (PACED_AFTER.as_nanos() as u64, paced_until),
    };
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
