//! The commands, one file each.

mod authorize;
mod badnet;
mod completions;
mod demo;
mod keygen;
mod listen;
mod man;
mod outbox;
mod pubkey;
mod put;
mod send;
mod status;

use crate::failure::Outcome;
use clap::Subcommand;

/// What can be asked for.
#[derive(Debug, Subcommand)]
pub enum Command {
    Keygen(keygen::Arguments),
    Pubkey(pubkey::Arguments),
    Authorize(authorize::Arguments),
    Listen(listen::Arguments),
    Send(send::Arguments),
    Put(put::Arguments),
    Status(status::Arguments),
    Outbox(outbox::Arguments),
    Badnet(badnet::Arguments),
    Demo(demo::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

impl Command {
    /// Does it.
    pub fn run(self) -> Outcome {
        match self {
            Command::Keygen(arguments) => arguments.run(),
            Command::Pubkey(arguments) => arguments.run(),
            Command::Authorize(arguments) => arguments.run(),
            Command::Listen(arguments) => arguments.run(),
            Command::Send(arguments) => arguments.run(),
            Command::Put(arguments) => arguments.run(),
            Command::Status(arguments) => arguments.run(),
            Command::Outbox(arguments) => arguments.run(),
            Command::Badnet(arguments) => arguments.run(),
            Command::Demo(arguments) => arguments.run(),
            Command::Completions(arguments) => arguments.run(),
            Command::Man(arguments) => arguments.run(),
        }
    }
}
