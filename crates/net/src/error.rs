use stayfast_store::{AppendError, StoreError};
use std::io;
use std::net::SocketAddr;

/// Why a driver could not be started. Each text says what a person can do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// Another program has the port.
    #[error("port {} of {} is in use: stop the program that has it, or choose another port", .0.port(), .0.ip())]
    PortInUse(SocketAddr),
    /// This user may not have the port.
    #[error("port {} of {} needs privileges: choose a port above 1023, or grant the program CAP_NET_BIND_SERVICE", .0.port(), .0.ip())]
    NotPermitted(SocketAddr),
    /// This machine does not have the address.
    #[error("this machine has no address {}: bind to one of its own, or to [::] for all", .0.ip())]
    NoSuchAddress(SocketAddr),
    /// The socket could not be made for another reason.
    #[error("the socket for {address} cannot be used: {what}")]
    Socket {
        /// Where it was to be bound.
        address: SocketAddr,
        /// What the operating system said.
        what: String,
    },
    /// No address to bind to was given.
    #[error("no address to bind to: give at least one, such as [::]:0")]
    NoAddress,
    /// No random bytes.
    #[error("the operating system gives no random bytes, and without them nothing can be encrypted: {0}")]
    Entropy(String),
    /// A thread could not be started.
    #[error(
        "no thread can be started ({0}): raise the limit of processes (`ulimit -u`) or of memory (`ulimit -v`), or stop something else"
    )]
    Thread(String),
    /// A store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The driver has been stopped.
    #[error("the driver has been stopped")]
    Stopped,
}

impl StartError {
    pub(crate) fn bind(address: SocketAddr, error: &io::Error) -> StartError {
        match error.kind() {
            io::ErrorKind::AddrInUse => StartError::PortInUse(address),
            io::ErrorKind::PermissionDenied => StartError::NotPermitted(address),
            io::ErrorKind::AddrNotAvailable => StartError::NoSuchAddress(address),
            _ => StartError::Socket { address, what: error.to_string() },
        }
    }
}

/// Why records were not appended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PutError {
    /// The outbox did not take them.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// No such peer, or it has no outbox.
    #[error("nothing is sent to this peer: give it an outbox")]
    NoOutbox,
    /// The driver was stopped before it was known whether they were written.
    #[error("the link was stopped: open the outbox again to see whether the record is there")]
    Stopped,
}
