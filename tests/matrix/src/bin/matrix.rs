//! The command behind `cargo xtask matrix`.
#![forbid(unsafe_code)]

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use stayfast_matrix::peers::Kind;
use stayfast_matrix::plan::{ALL, Cell, Plan};
#[cfg(target_os = "linux")]
use stayfast_matrix::real;
use stayfast_matrix::report::{self, Ran};
use stayfast_matrix::run::{Outcome, run};
use stayfast_matrix::{print, table};
use std::fs::File;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Every cell of a plan with every transport, in simulated time or between real sockets.
///
/// Examples:
///   cargo xtask matrix --short
///   cargo xtask matrix --plan tests/plans/origin.toml --cell 20/0/3 --peer stayfast --seed 7
///   cargo xtask matrix --plan tests/plans/cells.toml --report target/cells.html
///   cargo xtask matrix --real --cell "20 clean" --peer stayfast --peer tcp
#[derive(Parser)]
#[command(name = "cargo xtask matrix", verbatim_doc_comment)]
struct Arguments {
    /// Plans to run [default: all but real.toml, or that with --real]
    #[arg(long)]
    plan: Vec<PathBuf>,
    /// Real sockets, the kernel's TCP, and an emulator of the path; needs root or a user namespace
    #[arg(long)]
    real: bool,
    /// Only this cell; may be given again
    #[arg(long)]
    cell: Vec<String>,
    /// Only this transport; may be given again
    #[arg(long)]
    peer: Vec<Kind>,
    /// Only this seed, instead of those of the plan
    #[arg(long)]
    seed: Vec<u64>,
    /// Runs at the same time [default: one for each processor]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// A third of the time, and one seed unless --seed names some
    #[arg(long)]
    short: bool,
    /// Every run as JSON, in one array, instead of the tables
    #[arg(long)]
    json: bool,
    /// Also write a page with plots
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// What `--real` runs.
const REAL: &str = "tests/plans/real.toml";

/// Why there is no table.
enum Stop {
    /// Real paths are not allowed here.
    NotAllowed(String),
    Failed(String),
}

impl From<String> for Stop {
    fn from(why: String) -> Stop {
        Stop::Failed(why)
    }
}

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    if std::env::args().nth(1).is_some_and(|first| first == real::CHILD) {
        return real::child();
    }
    let (why, code) = match matrix(&Arguments::parse()) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Stop::Failed(why)) => (why, 2),
        Err(Stop::NotAllowed(why)) => (why, 3),
    };
    eprintln!("error: {why}");
    ExitCode::from(code)
}

fn matrix(arguments: &Arguments) -> Result<(), Stop> {
    let default = if arguments.real { &[REAL][..] } else { &ALL };
    let default: Vec<_> = default.iter().map(PathBuf::from).collect();
    let paths = if arguments.plan.is_empty() { &default } else { &arguments.plan };
    // What can be known to go wrong goes wrong before the first run.
    let plans: Result<Vec<_>, _> = paths.iter().map(|path| Plan::read(path)).collect();
    let plans = plans.map_err(|e| e.to_string())?;
    if let Some(path) = &arguments.report {
        let opened = File::options().append(true).create(true).open(path);
        opened.map_err(|e| format!("cannot write {}: {e}", path.display()))?;
    }
    let present = present(arguments)?;
    check(arguments, &plans, &present)?;
    let (mut all, mut failed) = (Vec::new(), Vec::new());
    for (path, plan) in paths.iter().zip(plans) {
        let jobs = jobs(arguments, &plan, &present);
        if jobs.is_empty() {
            continue;
        }
        let (outcomes, troubles) = run_all(arguments, &jobs)?;
        if !arguments.json {
            print(&format!("{}:\n{}\n", path.display(), table::table(&plan, &outcomes)))?;
        }
        #[cfg(target_os = "linux")]
        if arguments.real {
            eprintln!("{}", real::exactness(&outcomes));
        }
        failed.extend(troubles);
        all.push(Ran { name: path.display().to_string(), plan, outcomes });
    }
    if arguments.json {
        let lines = all.iter().flat_map(|ran| ran.outcomes.iter().map(|outcome| Line { plan: &ran.name, outcome }));
        let json = serde_json::to_string_pretty(&lines.collect::<Vec<_>>()).map_err(|e| e.to_string())?;
        print(&(json + "\n"))?;
    }
    if let Some(path) = &arguments.report {
        std::fs::write(path, report::html(&all)?).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        eprintln!("wrote {}", path.display());
    }
    if failed.is_empty() { Ok(()) } else { Err(Stop::Failed(failed.join("\n"))) }
}

/// A run as `--json` tells it.
#[derive(Serialize)]
struct Line<'a> {
    plan: &'a str,
    #[serde(flatten)]
    outcome: &'a Outcome,
}

/// Whether everything that is asked for is there and can be run.
fn check(arguments: &Arguments, plans: &[Plan], present: &[Kind]) -> Result<(), String> {
    let names: Vec<&str> = plans.iter().flat_map(|plan| &plan.cells).map(|cell| cell.name.as_str()).collect();
    if let Some(unknown) = arguments.cell.iter().find(|cell| !names.contains(&cell.as_str())) {
        return Err(format!("no cell {unknown}; the cells are {}", names.join(", ")));
    }
    let jobs: Vec<_> = plans.iter().flat_map(|plan| jobs(arguments, plan, present)).collect();
    if jobs.is_empty() {
        return Err("nothing to run: no transport that is asked for has a part in these cells".into());
    }
    jobs.iter().try_for_each(|job| job.check(arguments.real))
}

/// The transports that there are; those of the simulator always.
#[cfg(target_os = "linux")]
fn present(arguments: &Arguments) -> Result<Vec<Kind>, Stop> {
    if !arguments.real {
        return Ok(Kind::ALL.to_vec());
    }
    let present = real::present().map_err(|failure| match failure {
        real::Failure::NotAllowed(why) => Stop::NotAllowed(why),
        other => Stop::Failed(other.to_string()),
    })?;
    for kind in Kind::ALL.into_iter().filter(|kind| !present.contains(kind)) {
        eprintln!("{kind} is left out: this kernel does not have its congestion control (`modprobe tcp_bbr`?)");
    }
    Ok(present)
}

#[cfg(not(target_os = "linux"))]
fn present(arguments: &Arguments) -> Result<Vec<Kind>, Stop> {
    match arguments.real {
        true => Err(Stop::NotAllowed("real paths need the network namespaces of Linux".into())),
        false => Ok(Kind::ALL.to_vec()),
    }
}

/// One run.
struct Job<'a> {
    cell: &'a Cell,
    seconds: u64,
    peer: Kind,
    seed: u64,
}

impl Job<'_> {
    fn check(&self, real: bool) -> Result<(), String> {
        #[cfg(target_os = "linux")]
        if real {
            return real::check(self.cell).map_err(|e| e.to_string());
        }
        debug_assert!(!real);
        self.cell.check_simulated().map_err(|e| e.to_string())
    }

    /// No outcome, if packets left too late every time.
    fn run(&self, real: bool) -> Result<Option<Outcome>, String> {
        #[cfg(target_os = "linux")]
        if real {
            return match real::run(self.cell, self.seconds, self.peer, self.seed) {
                Err(busy @ real::Failure::TooBusy(_)) => {
                    eprintln!("{busy}");
                    Ok(None)
                }
                outcome => outcome.map(Some).map_err(|e| e.to_string()),
            };
        }
        debug_assert!(!real);
        run(self.cell, self.seconds, self.peer, self.seed).map(Some).map_err(|e| e.to_string())
    }
}

fn jobs<'a>(arguments: &'a Arguments, plan: &'a Plan, present: &[Kind]) -> Vec<Job<'a>> {
    let mut jobs = Vec::new();
    for cell in plan.cells.iter().filter(|cell| arguments.cell.is_empty() || arguments.cell.contains(&cell.name)) {
        let seconds = if arguments.short { plan.short_seconds(cell) } else { plan.seconds(cell) };
        let seeds = if arguments.seed.is_empty() { plan.seeds(cell) } else { &arguments.seed };
        let seeds = if arguments.short && arguments.seed.is_empty() { &seeds[..1] } else { seeds };
        let peers = if arguments.real { plan.named(cell).to_vec() } else { plan.peers(cell) };
        let wanted = |peer: &Kind| arguments.peer.is_empty() || arguments.peer.contains(peer);
        for peer in peers.into_iter().filter(|peer| wanted(peer) && present.contains(peer)) {
            jobs.extend(seeds.iter().map(|&seed| Job { cell, seconds, peer, seed }));
        }
    }
    jobs
}

/// The outcomes, and what is to be said of runs that have none.
fn run_all(arguments: &Arguments, jobs: &[Job<'_>]) -> Result<(Vec<Outcome>, Vec<String>), String> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = arguments.jobs.map_or(processors, usize::from);
    let bar = ProgressBar::new(jobs.len() as u64)
        .with_style(ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} {eta}").map_err(|e| e.to_string())?);
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..workers.clamp(1, jobs.len()) {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    bar.set_message(format!("{} {}", job.cell.name, job.peer));
                    let outcome = job.run(arguments.real);
                    bar.inc(1);
                    if let Ok(mut outcomes) = outcomes.lock() {
                        outcomes.push(outcome);
                    }
                }
            });
        }
    });
    bar.finish_and_clear();
    let outcomes = outcomes.into_inner().map_err(|_| "a run panicked")?;
    let (mut done, mut failed) = (Vec::new(), Vec::new());
    for outcome in outcomes {
        match outcome {
            Ok(outcome) => done.extend(outcome),
            Err(why) => failed.push(why),
        }
    }
    done.sort_by(|a, b| (&a.cell, a.peer, a.seed).cmp(&(&b.cell, b.peer, b.seed)));
    Ok((done, failed))
}
