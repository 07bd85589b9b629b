use stayfast_net::{StartError, Trouble};
use stayfast_seal::KeyError;
use stayfast_store::AppendError;
use stayfast_store_sqlite::LinkLockError;
use std::path::PathBuf;

/// Why an identity could not be read or made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// There is no such file.
    #[error("there is no key file {}: make one with `stayfast keygen {}`", .0.display(), .0.display())]
    NotFound(PathBuf),
    /// Others than the owner may read the secret.
    #[error("others may read the secret key in {} (mode {mode:04o}): make it yours alone with `chmod 600 {}`", path.display(), path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file holds something else.
    #[error("{}: {error}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with its contents.
        error: KeyError,
    },
    /// The operating system refused.
    #[error("the key file {} cannot be used: {what}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        what: String,
    },
    /// No random bytes.
    #[error("the operating system gives no random bytes, and without them there is no key")]
    Entropy,
}

/// Why a link could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// Not told where to.
    #[error("the link has no peer: say `.to(host, key)` before `.spawn()`")]
    NoPeer,
    /// The peer's public key is none.
    #[error("the peer's public key: {0}")]
    Key(#[from] KeyError),
    /// Another process runs the link of this outbox.
    #[error(transparent)]
    Lock(#[from] LinkLockError),
    /// The sockets, threads or the outbox.
    #[error(transparent)]
    Start(#[from] StartError),
}

/// Why records were not put.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PutError {
    /// The outbox did not take them. Of all reasons, `Full` passes: wait until the receiver has stored some.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// The link was stopped before it was known whether they were written.
    #[error("the link was stopped: open the outbox again to see whether the record is there")]
    Stopped,
    /// This process is a fork of the one that started the link: it shares its keys, and must not use them.
    #[error("the link was started before this process was forked off: start a link after the fork")]
    Forked,
}

/// Why a receipt did not come. The record stays in the outbox, and goes on trying.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReceiptError {
    /// The time is over. The record may be stored any time, or is already.
    #[error("not known to be stored yet: the record stays in the outbox and is sent until it is")]
    TimedOut,
    /// The stream stands still.
    #[error("the stream stands still: {0}")]
    Trouble(Trouble),
    /// The link was stopped.
    #[error("the link was stopped: the record stays in the outbox for the next one")]
    Stopped,
}

/// Why an inbox could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Not an address.
    #[error("{0:?} is not an address with a port, such as [::]:4711 or 192.0.2.1:4711")]
    Address(String),
    /// The sockets, threads or the cursors.
    #[error(transparent)]
    Start(#[from] StartError),
}

/// Why a list of authorized keys was not taken, or not all of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthorizedError {
    /// The file cannot be read.
    #[error("the list of authorized keys {} cannot be read ({what}): add the first one with `stayfast authorize`", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        what: String,
    },
    /// A line is not understood.
    #[error("{}, line {line}: {what}; a line is KEY[,KEY] NAME [in=PATTERN[,PATTERN]]", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// The peers could not be added.
    #[error(transparent)]
    Start(#[from] StartError),
}

/// The inbox was stopped: nothing more will come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the inbox was stopped")]
pub struct Stopped;
