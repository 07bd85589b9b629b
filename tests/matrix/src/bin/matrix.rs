//! The command behind `cargo xtask matrix`.
#![forbid(unsafe_code)]

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use stayfast_matrix::peers::Kind;
use stayfast_matrix::plan::{Cell, Plan};
use stayfast_matrix::run::{Outcome, run};
use stayfast_matrix::{report, table};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Every cell of a plan with every transport, in simulated time.
///
/// Examples:
///   cargo xtask matrix
///   cargo xtask matrix --cell 20/0/3 --peer stayfast --seed 7
///   cargo xtask matrix --plan tests/plans/jitter.toml --report target/matrix.html
#[derive(Parser)]
#[command(name = "cargo xtask matrix", verbatim_doc_comment)]
struct Arguments {
    /// Plans to run
    #[arg(long, default_values = ["tests/plans/origin.toml"])]
    plan: Vec<PathBuf>,
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
    #[arg(long)]
    jobs: Option<usize>,
    /// A third of the time and one seed
    #[arg(long)]
    short: bool,
    /// Every run as JSON instead of the table
    #[arg(long)]
    json: bool,
    /// Also write a page with plots
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

fn main() -> ExitCode {
    match matrix(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn matrix(arguments: &Arguments) -> Result<(), String> {
    let mut pages = String::new();
    for path in &arguments.plan {
        let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        let plan = Plan::parse(&text).map_err(|e| format!("{}: {e}", path.display()))?;
        let outcomes = run_all(arguments, &plan)?;
        if arguments.json {
            let json = serde_json::to_string_pretty(&outcomes).map_err(|e| e.to_string())?;
            println!("{json}");
        } else {
            println!("{}", table::table(&plan, &outcomes));
        }
        if arguments.report.is_some() {
            pages += &report::html(&plan, &outcomes)?;
        }
    }
    if let Some(path) = &arguments.report {
        std::fs::write(path, pages).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        eprintln!("wrote {}", path.display());
    }
    Ok(())
}

/// One run.
struct Job<'a> {
    cell: &'a Cell,
    seconds: u64,
    peer: Kind,
    seed: u64,
}

fn jobs<'a>(arguments: &Arguments, plan: &'a Plan) -> Result<Vec<Job<'a>>, String> {
    let mut jobs = Vec::new();
    for cell in plan.cells.iter().filter(|cell| arguments.cell.is_empty() || arguments.cell.contains(&cell.name)) {
        let seconds = if arguments.short { plan.short_seconds(cell) } else { plan.seconds(cell) };
        let seeds = if arguments.seed.is_empty() { plan.seeds(cell) } else { &arguments.seed };
        let seeds = if arguments.short { &seeds[..1] } else { seeds };
        for peer in
            plan.peers(cell).into_iter().filter(|peer| arguments.peer.is_empty() || arguments.peer.contains(peer))
        {
            jobs.extend(seeds.iter().map(|&seed| Job { cell, seconds, peer, seed }));
        }
    }
    if jobs.is_empty() {
        let names: Vec<_> = plan.cells.iter().map(|cell| cell.name.as_str()).collect();
        return Err(format!("nothing to run; the cells are {}", names.join(", ")));
    }
    Ok(jobs)
}

fn run_all(arguments: &Arguments, plan: &Plan) -> Result<Vec<Outcome>, String> {
    let jobs = jobs(arguments, plan)?;
    let workers = arguments.jobs.or_else(|| std::thread::available_parallelism().ok().map(usize::from)).unwrap_or(1);
    let bar = ProgressBar::new(jobs.len() as u64)
        .with_style(ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} {eta}").map_err(|e| e.to_string())?);
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..workers.clamp(1, jobs.len()) {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    bar.set_message(format!("{} {}", job.cell.name, job.peer));
                    let outcome = run(job.cell, job.seconds, job.peer, job.seed);
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
    let mut outcomes = outcomes.into_iter().collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
    outcomes.sort_by(|a, b| (&a.cell, a.peer, a.seed).cmp(&(&b.cell, b.peer, b.seed)));
    Ok(outcomes)
}
