use crate::failure::{Failure, Outcome};
use clap::CommandFactory;
use clap_mangen::Man;
use std::io::Write;
use std::path::PathBuf;

/// Print the manual page, or write one for each command
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  stayfast man | man -l -
  stayfast man --dir ~/.local/share/man/man1 && man stayfast-send")]
pub struct Arguments {
    /// Write stayfast.1, stayfast-send.1 and so on into this folder
    #[arg(long)]
    dir: Option<PathBuf>,
}

impl Arguments {
    pub fn run(self) -> Outcome {
        let command = crate::Arguments::command();
        match self.dir {
            Some(dir) => {
                std::fs::create_dir_all(&dir).map_err(|e| Failure::file(&dir, &e))?;
                clap_mangen::generate_to(command, &dir).map_err(|e| Failure::file(&dir, &e))
            }
            None => {
                let mut page = Vec::new();
                Man::new(command).render(&mut page)?;
                Ok(std::io::stdout().write_all(&page)?)
            }
        }
    }
}
