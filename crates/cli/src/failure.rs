//! How a command ends without success.

use crate::output::Paint;
use stayfast_store::{AppendError, StoreError};
use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// What a command returns.
pub type Outcome<T = ()> = Result<T, Failure>;

/// Why a command did not do what it was asked, in one sentence that says what to do about it.
#[derive(Debug)]
pub enum Failure {
    /// The operation failed, or is not finished. Exit code 1.
    Failed(String),
    /// It cannot work as it was called, or something around it is in the way. Exit code 2.
    Environment(String),
    /// Nobody reads standard output any more: not worth a word. Exit code 0, as it is for `... | head`.
    Unread,
}

impl Failure {
    /// An operation that failed or is not finished.
    pub fn failed(what: impl fmt::Display) -> Failure {
        Failure::Failed(what.to_string())
    }

    /// Wrong usage, or an obstacle outside.
    pub fn environment(what: impl fmt::Display) -> Failure {
        Failure::Environment(what.to_string())
    }

    /// What a store at `path` said.
    pub fn store(path: &Path, error: &StoreError) -> Failure {
        let text = format!("{}: {error}", path.display());
        match error {
            StoreError::Schema { .. } | StoreError::Durability { .. } | StoreError::DiskFull | StoreError::Io(_) => {
                Failure::Environment(text)
            }
            _ => Failure::Failed(text),
        }
    }

    /// Why the store at `path` took no records.
    pub fn append(path: &Path, error: &AppendError) -> Failure {
        match error {
            AppendError::Store(error) => Failure::store(path, error),
            AppendError::StreamName { .. } | AppendError::StreamNul => Failure::environment(error),
            _ => Failure::Failed(format!("{}: {error}", path.display())),
        }
    }

    /// What the operating system said about the file at `path`.
    pub fn file(path: &Path, error: &io::Error) -> Failure {
        let what = match error.kind() {
            io::ErrorKind::NotFound => "there is no such file".to_string(),
            io::ErrorKind::PermissionDenied => "permission denied: run it as the owner, or change the mode".to_string(),
            _ => error.to_string(),
        };
        Failure::Environment(format!("{}: {what}", path.display()))
    }

    /// Says it and gives the exit code.
    pub fn report(&self) -> ExitCode {
        let (text, code) = match self {
            Failure::Failed(text) => (text, 1),
            Failure::Environment(text) => (text, 2),
            Failure::Unread => return ExitCode::SUCCESS,
        };
        // Nothing is left to be done if not even this can be said.
        drop(io::Write::write_fmt(&mut io::stderr(), format_args!("{} {text}\n", Paint::stderr().red("error:"))));
        ExitCode::from(code)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Failure::Failed(text) | Failure::Environment(text) => text,
            Failure::Unread => "nobody reads standard output",
        })
    }
}

/// Errors of standard output; files have [`Failure::file`].
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::Unread,
            _ => Failure::Environment(format!("standard output: {error}")),
        }
    }
}
