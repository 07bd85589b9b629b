//! The command behind `cargo xtask trace`.
#![forbid(unsafe_code)]

use clap::Parser;
use stayfast_matrix::peers::Kind;
use stayfast_matrix::plan::{ALL, Plan};
use stayfast_matrix::report::{self, Ran};
use stayfast_matrix::run::run_in_full;
use stayfast_matrix::{print, trace};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// One run of the matrix over time: window, in flight, round trip, queue, losses, episodes.
///
/// Examples:
///   cargo xtask trace 20/0/3
///   cargo xtask trace "mtu shrink" --peer quinn --seed 7 --every 50
///   cargo xtask trace "20 joins tcp" --report target/trace.html
///   cargo xtask trace 20/1/3 --json | jq .window
#[derive(Parser)]
#[command(name = "cargo xtask trace", verbatim_doc_comment)]
struct Arguments {
    /// A cell of a plan
    cell: String,
    /// The transport
    #[arg(long, default_value_t = Kind::Stayfast)]
    peer: Kind,
    /// The seed [default: the plan's first]
    #[arg(long)]
    seed: Option<u64>,
    /// Plans to look in [default: all]
    #[arg(long, value_name = "FILE", hide_default_value = true, default_values = ALL)]
    plan: Vec<PathBuf>,
    /// Milliseconds of a row
    #[arg(long, default_value_t = 100)]
    every: u64,
    /// Rows as lines of JSON
    #[arg(long)]
    json: bool,
    /// Also write a page with plots
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

fn main() -> ExitCode {
    match show(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn show(arguments: &Arguments) -> Result<(), String> {
    let mut known = Vec::new();
    for path in &arguments.plan {
        let mut plan = Plan::read(path).map_err(|e| e.to_string())?;
        known.extend(plan.cells.iter().map(|cell| cell.name.clone()));
        plan.cells.retain(|cell| cell.name == arguments.cell);
        if !plan.cells.is_empty() {
            return show_cell(arguments, &plan);
        }
    }
    Err(format!("no cell {}; there are {}", arguments.cell, known.join(", ")))
}

/// The only cell of a plan.
fn show_cell(arguments: &Arguments, plan: &Plan) -> Result<(), String> {
    let cell = &plan.cells[0];
    cell.check_simulated().map_err(|e| e.to_string())?;
    if !plan.suits(cell, arguments.peer) {
        return Err(format!("the simulator's {} has no part in this cell: see docs/matrix.md", arguments.peer));
    }
    let seed = arguments.seed.unwrap_or(plan.seeds(cell)[0]);
    let outcome = run_in_full(cell, plan.seconds(cell), arguments.peer, seed).map_err(|e| e.to_string())?;
    let rows = trace::rows(&outcome, Duration::from_millis(arguments.every.max(1)), cell.size);
    let text = if arguments.json {
        let lines: Result<Vec<_>, _> = rows.iter().map(serde_json::to_string).collect();
        lines.map_err(|e| e.to_string())?.join("\n") + "\n"
    } else {
        format!("{}, {}, seed {seed}: {}\n\n{}", cell.name, arguments.peer, cell.path, trace::text(&rows))
    };
    print(&text)?;
    if let Some(path) = &arguments.report {
        let ran = Ran { name: "trace".into(), plan: plan.clone(), outcomes: vec![outcome] };
        let page = report::html(&[ran])?;
        std::fs::write(path, page).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        eprintln!("wrote {}", path.display());
    }
    Ok(())
}
