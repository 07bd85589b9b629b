use crate::failure::Outcome;
use clap::CommandFactory;
use clap_complete::Shell;
use std::io::Write;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  stayfast completions bash > ~/.local/share/bash-completion/completions/stayfast
  stayfast completions zsh > ~/.zfunc/_stayfast
  stayfast completions fish > ~/.config/fish/completions/stayfast.fish")]
pub struct Arguments {
    /// The shell
    shell: Shell,
}

impl Arguments {
    pub fn run(self) -> Outcome {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut crate::Arguments::command(), "stayfast", &mut script);
        Ok(std::io::stdout().write_all(&script)?)
    }
}
