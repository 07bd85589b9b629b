use std::fmt;
use std::io;

/// Why there is no path between real sockets.
#[derive(Debug)]
pub enum Failure {
    /// The machine does not allow it; says what to do.
    NotAllowed(String),
    /// Something that should have worked did not: what, and the system's word for it.
    System(&'static str, io::Error),
}

impl Failure {
    /// For `map_err`.
    pub(crate) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Failure {
        move |e| Failure::System(what, e.into())
    }

    /// For `map_err` of what a user namespace may be too little for.
    pub(crate) fn privilege<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> Failure {
        move |e| match e.into() {
            e if e.kind() == io::ErrorKind::PermissionDenied => {
                Failure::NotAllowed(format!("{what} ({e}): run it as root, or allow unprivileged user namespaces"))
            }
            e => Failure::System(what, e),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NotAllowed(why) => f.write_str(why),
            Failure::System(what, e) => write!(f, "{what}: {e}"),
        }
    }
}

impl std::error::Error for Failure {}
