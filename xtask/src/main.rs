//! Development tasks: `cargo xtask help`.
//!
//! `cargo xtask ci` is what a pull request runs, step for step; the other commands are its parts, so that a
//! failing step can be run again on its own.
#![forbid(unsafe_code)]

mod ci;
mod fuzz;
mod metadata;
mod models;
mod process;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use process::{Outcome, cargo, run, run_as};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Development tasks of stayfast")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Everything a pull request must pass; stops at the first failing step
    Ci,
    /// Rules that neither the compiler nor clippy knows: floors, pure crates, sizes
    Tidy,
    /// Builds the fuzz targets with the stable compiler and runs them
    ///
    /// New inputs go to target/fuzz/corpus; the tracked seeds in fuzz/corpus are only read. For a session with
    /// address sanitizer: `cargo install --locked cargo-fuzz`, then
    /// `cargo +nightly fuzz run frames -- -max_total_time=600`.
    Fuzz {
        /// One target of fuzz/Cargo.toml; all of them if left out
        target: Option<String>,
        /// How long each target runs
        #[arg(long, default_value_t = 60)]
        seconds: u64,
    },
    /// Checks the queue under every interleaving that loom tries, and that it finds planted mistakes
    Models,
    /// Every path of a plan with every transport, in simulated time or real: `cargo xtask matrix --help`
    #[command(disable_help_flag = true)]
    Matrix {
        /// Passed on to the program
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// One run of the matrix over time: `cargo xtask trace --help`
    #[command(disable_help_flag = true)]
    Trace {
        /// Passed on to the program
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Measures
    Bench {
        #[command(subcommand)]
        kind: Bench,
    },
    /// Builds the release command line and runs its demo
    Demo {
        /// Passed on to `stayfast demo`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

#[derive(Subcommand)]
enum Bench {
    /// CPU time a record costs, over whole transfers
    Cpu {
        /// Passed on to the program
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// The criterion benches
    Criterion {
        /// Passed on to criterion
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().task {
        Task::Ci => ci::ci(),
        Task::Tidy => tidy::tidy(),
        Task::Fuzz { target, seconds } => fuzz::fuzz(target.as_deref(), seconds),
        Task::Models => models::models(),
        Task::Matrix { arguments } => return matrix("matrix", &arguments),
        Task::Trace { arguments } => return matrix("trace", &arguments),
        Task::Bench { kind } => bench(kind),
        Task::Demo { arguments } => {
            run(cargo(["run", "--release", "-p", "stayfast-cli", "--", "demo"]).args(arguments))
        }
    };
    ended(outcome.map(|()| ExitCode::SUCCESS))
}

fn ended(outcome: Outcome<ExitCode>) -> ExitCode {
    outcome.unwrap_or_else(|message| {
        eprintln!("error: {message}");
        ExitCode::FAILURE
    })
}

/// One of the programs of the matrix, in the folder where it was asked for. Its exit code is ours.
fn matrix(program: &str, arguments: &[String]) -> ExitCode {
    let mut command = cargo(["run", "--release", "-p", "stayfast-matrix", "--bin", program, "--"]);
    if let Ok(folder) = std::env::current_dir() {
        command.current_dir(folder);
    }
    ended(run_as(command.args(arguments)))
}

fn bench(kind: Bench) -> Outcome {
    match kind {
        Bench::Cpu { arguments } => {
            run(cargo(["run", "--release", "-p", "stayfast-bench", "--bin", "cpu", "--"]).args(arguments))
        }
        Bench::Criterion { arguments } => {
            run(cargo(["bench", "-p", "stayfast-bench", "--benches", "--"]).args(arguments))
        }
    }
}
