//! The command `stayfast`.
//!
//! One file a command in `command`, each with its arguments and a function `run`; what several of them need stands
//! beside. Results go to standard output, everything else to standard error.
#![forbid(unsafe_code)]

mod ages;
mod command;
mod demo;
mod exec;
mod failure;
mod files;
mod human;
mod input;
mod interrupt;
mod output;
mod progress;
mod proxy;
mod receiving;
mod resume;
mod sending;
mod sockets;
mod source;
mod text;
mod threads;
mod troubles;
mod uplink;

use clap::Parser;
use std::process::ExitCode;

/// Records that arrive: in order, exactly once, encrypted, over UDP, whatever is restarted in between.
#[derive(Debug, Parser)]
#[command(
    name = "stayfast",
    version,
    max_term_width = 100,
    arg_required_else_help = true,
    after_help = "\
Two machines, first contact:
  hub$  stayfast keygen hub.key                        # prints the public key of the hub
  edge$ stayfast keygen edge.key                       # prints the public key of the edge
  hub$  stayfast authorize EDGE-KEY --name edge --in 'logs'
  hub$  stayfast listen [::]:4711 --key hub.key --inbox hub.db --follow
  edge$ tail -F app.log | stayfast send hub:4711 --peer HUB-KEY --outbox edge.db --stream logs

STAYFAST_LOG=debug shows what happens inside; NO_COLOR=1 leaves colours out.

Exit codes: 0 done; 1 failed, or not finished; 2 wrong usage, or something around it is in the way"
)]
struct Arguments {
    #[command(subcommand)]
    command: command::Command,
}

fn main() -> ExitCode {
    trace();
    match Arguments::parse().command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// What the libraries have to tell goes to standard error if `STAYFAST_LOG` asks for it.
fn trace() {
    if let Ok(filter) = std::env::var("STAYFAST_LOG") {
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    }
}
