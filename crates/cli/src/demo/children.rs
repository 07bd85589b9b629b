//! The two processes of the demo: this program itself, started again.

use super::kills::Side;
use crate::failure::{Failure, Outcome};
use crate::threads;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;

/// How one side is started, and the process if it runs.
pub struct Process {
    side: Side,
    arguments: Vec<String>,
    log: PathBuf,
    child: Option<Child>,
}

impl Process {
    /// A process to be started with these arguments; what it has to say goes to `log`.
    pub fn new(side: Side, arguments: Vec<String>, log: &Path) -> Process {
        Process { side, arguments, log: log.to_path_buf(), child: None }
    }

    /// Starts it, and says when.
    pub fn start(&mut self) -> Outcome<Instant> {
        let io = |e: io::Error| Failure::environment(format!("the {} cannot be started: {e}", self.side));
        let program = std::env::current_exe().map_err(io)?;
        let log =
            OpenOptions::new().append(true).create(true).open(&self.log).map_err(|e| Failure::file(&self.log, &e))?;
        let mut command = Command::new(program);
        command.args(&self.arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
        let start = Instant::now();
        self.child = Some(command.spawn().map_err(io)?);
        Ok(start)
    }

    /// SIGKILL. When this returns, the process is gone.
    pub fn kill(&mut self) -> Outcome {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        let io = |e: io::Error| Failure::environment(format!("the {} cannot be killed: {e}", self.side));
        child.kill().map_err(io)?;
        child.wait().map_err(io).map(drop)
    }

    /// How it ended, if it has ended by itself.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.as_mut()?.try_wait().ok().flatten()
    }

    /// The last words of its log.
    pub fn last_words(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").to_string()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself.
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// In a child: ends this process when the demo is gone, however that ended, for then standard input is closed.
pub fn leash() -> Outcome {
    threads::start(|| {
        let mut byte = [0];
        while io::stdin().read(&mut byte).is_ok_and(|n| n > 0) {}
        std::process::exit(1);
    })
    .map(drop)
}
