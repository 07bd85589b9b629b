use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

/// Why this process may not run the link of a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkLockError {
    /// Another process (or another part of this one) runs it.
    #[error("another process runs the link of this store ({}): stop it, or only append here", path.display())]
    Held {
        /// The lock file.
        path: PathBuf,
    },
    /// The lock file cannot be made or locked.
    #[error("the lock file {} cannot be used: {what}", path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What the operating system said.
        what: String,
    },
}

/// The right to run the link of a store, until it is dropped. Any number of processes append; one runs the link.
///
/// It is a lock of the operating system on a file `<store>-link` beside the store, which goes away with the process,
/// however that ends. The file itself stays, and means nothing.
#[derive(Debug)]
#[must_use]
pub struct LinkLock {
    /// Closing it releases the lock.
    _file: File,
}

impl LinkLock {
    /// Takes the lock of the store at `path`, or says who has it.
    ///
    /// ```
    /// use stayfast_store_sqlite::{LinkLock, LinkLockError};
    ///
    /// # let dir = tempfile::tempdir()?;
    /// let store = dir.path().join("edge.db");
    /// let held = LinkLock::take(&store)?;
    /// assert!(matches!(LinkLock::take(&store), Err(LinkLockError::Held { .. })));
    /// drop(held);
    /// assert!(LinkLock::take(&store).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn take(store: &Path) -> Result<LinkLock, LinkLockError> {
        // One store, one lock, by whatever name it is reached. The database file itself cannot carry the lock: closing
        // a second handle on it would release SQLite's own locks.
        let store = store.canonicalize().unwrap_or_else(|_| store.to_path_buf());
        let mut path = store.into_os_string();
        path.push("-link");
        let path = PathBuf::from(path);
        let io = |e: std::io::Error| LinkLockError::Io { path: path.clone(), what: e.to_string() };
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(io)?;
        match file.try_lock() {
            Ok(()) => Ok(LinkLock { _file: file }),
            Err(TryLockError::WouldBlock) => Err(LinkLockError::Held { path }),
            Err(TryLockError::Error(e)) => Err(io(e)),
        }
    }
}
