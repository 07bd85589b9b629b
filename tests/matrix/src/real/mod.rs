//! The same cells between real sockets: ours, quinn, the kernel's TCP, on a path in real time ([`stayfast_path`]).
//!
//! Each run is a child process, the same program again ([`child`]): it has network namespaces of its own, so that runs
//! side by side share nothing but the processors.

mod board;
mod execute;
mod ours;
mod quic;
mod tcp;

use crate::measure;
use crate::peers::{Kind, Sample};
use crate::plan::{Cell, Load};
use crate::run::{Outcome, Point, Real, thinned};
use serde::{Deserialize, Serialize};
use stayfast_units::Time;
use std::fmt;
use std::io::Write;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

/// The first argument that makes the program a child.
pub const CHILD: &str = "real-run";
/// A run is thrown away if one packet in a thousand left later than this.
const LATEST_US: u64 = 10_000;
/// And made again so often in all.
const TRIES: u32 = 4;

/// Why a run has no outcome.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Failure {
    /// The machine does not allow it; says what to do.
    NotAllowed(String),
    /// The machine has so much else to do that packets left too late, every time.
    TooBusy(String),
    /// Anything else, such as a record out of order.
    Failed(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Failure::NotAllowed(why) | Failure::TooBusy(why) | Failure::Failed(why)) = self;
        f.write_str(why)
    }
}

impl std::error::Error for Failure {}

#[derive(Debug, Deserialize, Serialize)]
enum Request {
    Present,
    Run(Task),
}

#[derive(Debug, Deserialize, Serialize)]
enum Reply {
    Present(Vec<Kind>),
    Ran(Ran),
    Failed(Failure),
}

/// A run, as the child is told of it.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Task {
    path: String,
    seed: u64,
    /// Records a second; none for a drain.
    rate: Option<u32>,
    size: usize,
    seconds: u64,
    /// The one that is measured, then those beside, and how long after the first record each begins.
    flows: Vec<(Kind, Duration)>,
    /// What the path becomes, and how long after the first record.
    changes: Vec<(Duration, String)>,
}

/// A run, as the child tells of it. Times are nanoseconds of its own clock.
#[derive(Debug, Default, Deserialize, Serialize)]
struct Ran {
    from: u64,
    until: u64,
    taken: u64,
    /// From append to the receiving application, in microseconds; of a paced load.
    waits: Option<Vec<u64>>,
    missing: u64,
    dropped: u64,
    marked: u64,
    /// When, records taken, those of the others, bytes in the queue, the sender.
    points: Vec<(u64, u64, u64, u64, Sample)>,
    /// How late packets left: p50, p99, p99.9.
    late_us: [u64; 3],
    waited_permille: u64,
}

/// Which transports there are on this machine.
///
/// # Errors
/// The machine does not allow real paths.
pub fn present() -> Result<Vec<Kind>, Failure> {
    match ask(&Request::Present)? {
        Reply::Present(kinds) => Ok(kinds),
        Reply::Failed(failure) => Err(failure),
        Reply::Ran(_) => Err(Failure::Failed("a run answered with another".into())),
    }
}

/// Whether a cell can be run between real sockets.
///
/// # Errors
/// The word that is for simulated paths only.
pub fn check(cell: &Cell) -> Result<(), Failure> {
    task(cell, 1, Kind::Stayfast, 1).map(drop)
}

/// Runs a cell. A run in which packets left too late is made again.
///
/// # Errors
/// No outcome: why.
pub fn run(cell: &Cell, seconds: u64, peer: Kind, seed: u64) -> Result<Outcome, Failure> {
    let task = task(cell, seconds, peer, seed)?;
    let (ran, tries) = insist(|| ask(&Request::Run(task.clone()))).map_err(|failure| match failure {
        Failure::NotAllowed(_) => failure,
        Failure::TooBusy(why) => Failure::TooBusy(format!("{}, {peer}, seed {seed}: {why}", cell.name)),
        Failure::Failed(why) => Failure::Failed(format!("{}, {peer}, seed {seed}: {why}", cell.name)),
    })?;
    Ok(outcome(cell, peer, seed, tries, ran))
}

/// A run in which packets left in time, and how many it took.
fn insist(mut ask: impl FnMut() -> Result<Reply, Failure>) -> Result<(Ran, u32), Failure> {
    let mut latest = Duration::ZERO;
    for tries in 1..=TRIES {
        match ask()? {
            Reply::Ran(ran) if ran.late_us[2] <= LATEST_US => return Ok((ran, tries)),
            Reply::Ran(ran) => latest = Duration::from_micros(ran.late_us[2]),
            Reply::Failed(failure) => return Err(failure),
            Reply::Present(_) => return Err(Failure::Failed("a run answered with another".into())),
        }
    }
    let ms = latest.as_millis();
    Err(Failure::TooBusy(format!("packets left {ms} ms late, {TRIES} times; try --jobs 1")))
}

/// What the child is told of a cell.
fn task(cell: &Cell, seconds: u64, peer: Kind, seed: u64) -> Result<Task, Failure> {
    let rate = match cell.load {
        Load::Drain => None,
        Load::Rate(rate) => Some(rate),
    };
    let refused = [
        (!cell.line.is_empty() || cell.beside.iter().any(|beside| !beside.line.is_empty()), "`line`"),
        (!cell.after.is_zero(), "`after`"),
        (cell.changes.iter().any(|change| change.rebind), "`rebind`"),
    ];
    if let Some((_, word)) = refused.into_iter().find(|(is_there, _)| *is_there) {
        let why = format!("{}: {word} is for simulated paths only; leave --real out, or this cell", cell.name);
        return Err(Failure::Failed(why));
    }
    let beside = cell.beside.iter().map(|beside| (beside.peer, beside.from));
    let flows = [(peer, Duration::ZERO)].into_iter().chain(beside).collect();
    let changes = cell.changes.iter().filter_map(|change| Some((change.at, change.path.clone()?))).collect();
    Ok(Task { path: cell.path.clone(), seed, rate, size: cell.size, seconds, flows, changes })
}

fn ask(request: &Request) -> Result<Reply, Failure> {
    let failed = |what: &str, e: &dyn fmt::Display| Failure::Failed(format!("{what}: {e}"));
    let program = std::env::current_exe().map_err(|e| failed("the program does not find itself", &e))?;
    let mut child = Command::new(program)
        .arg(CHILD)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| failed("no process for a run", &e))?;
    if let Some(mut stdin) = child.stdin.take() {
        let request = serde_json::to_vec(request).map_err(|e| failed("a run cannot be written", &e))?;
        stdin.write_all(&request).map_err(|e| failed("a run cannot be started", &e))?;
    }
    let output = child.wait_with_output().map_err(|e| failed("a run was lost", &e))?;
    serde_json::from_slice(&output.stdout).map_err(|e| failed(&format!("a run ended ({})", output.status), &e))
}

/// What the program does as a child: one request from standard input, one reply on standard output. Nothing may have
/// been started before.
pub fn child() -> ExitCode {
    let request = serde_json::from_reader(std::io::stdin().lock());
    let reply = match request {
        Ok(Request::Present) => execute::present().map(Reply::Present),
        Ok(Request::Run(task)) => execute::execute(&task).map(Reply::Ran),
        Err(e) => Err(e.into()),
    };
    let reply = reply.unwrap_or_else(|error| {
        Reply::Failed(match error.downcast_ref() {
            Some(stayfast_path::Failure::NotAllowed(why)) => Failure::NotAllowed(why.clone()),
            _ => Failure::Failed(error.to_string()),
        })
    });
    match serde_json::to_writer(std::io::stdout().lock(), &reply) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn outcome(cell: &Cell, peer: Kind, seed: u64, tries: u32, ran: Ran) -> Outcome {
    let from = Time::from_nanos(ran.from);
    let point = |&(at, taken, beside, queued, sample): &(u64, u64, u64, u64, Sample)| {
        let at = Time::from_nanos(at);
        let spec = cell.path_at(at - from);
        let queue_us = spec.and_then(|spec| spec.rate).map_or(0, |rate| rate.time_for(queued).as_micros() as u64);
        Point { at, taken, beside, queue_us, ceiling: spec.as_ref().and_then(measure::ceiling), sample }
    };
    let span = (from, Time::from_nanos(ran.until));
    let latency = ran.waits.map(|waits| measure::summary(waits, ran.missing));
    let mut outcome = Outcome::of(cell, (peer, seed), span, ran.points.iter().map(point).collect(), latency);
    outcome.points = thinned(outcome.points);
    let real = Real { late_us: ran.late_us, waited_permille: ran.waited_permille, tries };
    Outcome { dropped: ran.dropped, marked: ran.marked, real: Some(real), ..outcome }
}

/// A sentence on how exact the runs were.
pub fn exactness(outcomes: &[Outcome]) -> String {
    let reals: Vec<&Real> = outcomes.iter().filter_map(|outcome| outcome.real.as_ref()).collect();
    let worst = |of: fn(&Real) -> u64| reals.iter().map(|real| of(real)).max().unwrap_or(0) as f64 / 1e3;
    format!(
        "{} runs, {} made again; in the worst of them packets left late by p50 {:.2} ms, p99 {:.2} ms, p99.9 {:.2} ms, \
         and the ends' threads waited {:.1} s of a second for a processor",
        reals.len(),
        reals.iter().map(|real| real.tries - 1).sum::<u32>(),
        worst(|real| real.late_us[0]),
        worst(|real| real.late_us[1]),
        worst(|real| real.late_us[2]),
        worst(|real| real.waited_permille),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    /// What comes of children whose packets left so late (p99.9, microseconds), and how many were asked.
    fn insist_on(late_us: &[u64]) -> (Result<u32, Failure>, usize) {
        let mut replies = late_us.iter().map(|late| Reply::Ran(Ran { late_us: [0, 0, *late], ..Ran::default() }));
        let outcome = insist(|| replies.next().ok_or_else(|| Failure::Failed("asked too often".into())));
        (outcome.map(|(_, tries)| tries), late_us.len() - replies.len())
    }

    #[test]
    fn a_run_is_made_again_until_packets_left_in_time() {
        assert_eq!(insist_on(&[0, 0]), (Ok(1), 1));
        assert_eq!(insist_on(&[10_000, 0]), (Ok(1), 1), "exactly at the limit is in time");
        assert_eq!(insist_on(&[10_001, 10_001, 9_999, 0]), (Ok(3), 3));
        assert_eq!(insist_on(&[90_000, 90_000, 90_000, 10_000]), (Ok(4), 4));
    }

    #[test]
    fn a_machine_that_is_too_busy_is_given_up_after_four_runs() {
        let why = String::from("packets left 40 ms late, 4 times; try --jobs 1");
        assert_eq!(insist_on(&[10_001, 20_000, 30_000, 40_000, 0]), (Err(Failure::TooBusy(why)), 4));
    }

    #[test]
    fn a_run_that_failed_is_not_made_again() {
        let mut asked = 0;
        let outcome = insist(|| {
            asked += 1;
            Ok(Reply::Failed(Failure::Failed("sender: no".into())))
        });
        assert_eq!((outcome.err(), asked), (Some(Failure::Failed("sender: no".into())), 1));
    }

    #[test]
    fn what_real_paths_cannot_do_is_named() {
        let task = |words: &str| {
            let text = format!("seconds = 15\n[[cell]]\nname = 'x'\npath = 'rtt=20ms'\n{words}");
            task(&Plan::parse(&text).expect("a valid plan").cells[0], 15, Kind::Stayfast, 7)
        };
        let words = "beside = [{ peer = 'tcp', from = 2 }]\nchange = [{ at = 5, path = 'rtt=20ms mtu=1280' }]";
        let told = task(words).expect("real paths can do this");
        assert_eq!(told.flows, [(Kind::Stayfast, Duration::ZERO), (Kind::Tcp, Duration::from_secs(2))]);
        assert_eq!(told.changes, [(Duration::from_secs(5), String::from("rtt=20ms mtu=1280"))]);
        for (words, word) in [
            ("line = 'rtt=60ms'", "line"),
            ("beside = [{ peer = 'tcp', line = 'rtt=60ms' }]", "line"),
            ("beside = ['tcp']\nafter = 4", "after"),
            ("change = [{ at = 5, rebind = true }]", "rebind"),
        ] {
            let why = format!("x: `{word}` is for simulated paths only; leave --real out, or this cell");
            assert_eq!(task(words).err(), Some(Failure::Failed(why)), "{words}");
        }
        let real = concat!(env!("CARGO_MANIFEST_DIR"), "/../plans/real.toml");
        let plan = Plan::read(real.as_ref()).expect("it is valid");
        assert!(plan.cells.iter().all(|cell| super::task(cell, 15, Kind::Tcp, 1).is_ok()));
    }
}
