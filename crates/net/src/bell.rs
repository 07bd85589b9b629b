use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// Wakes a thread that sleeps in its sockets: one more descriptor there.
#[derive(Debug)]
pub(crate) struct Bell {
    near: UnixStream,
    far: UnixStream,
}

impl Bell {
    pub(crate) fn new() -> io::Result<Bell> {
        let (near, far) = UnixStream::pair()?;
        near.set_nonblocking(true)?;
        far.set_nonblocking(true)?;
        Ok(Bell { near, far })
    }

    /// Wakes the sleeper, now or when it next goes to sleep.
    pub(crate) fn ring(&self) {
        // A full pipe rings already.
        let _ = (&self.near).write(&[1]);
    }

    /// The sleeper is awake.
    pub(crate) fn silence(&self) {
        let mut rings = [0; 64];
        while (&self.far).read(&mut rings).is_ok_and(|n| n == rings.len()) {}
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.far.as_fd()
    }
}
