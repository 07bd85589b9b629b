use crate::error::IdentityError;
use stayfast_seal::PublicKey;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Who a node is: a secret key in a file of its own, with mode 0600. A *move* to another machine takes the file along;
/// a *backup* must not hold it.
///
/// ```
/// use stayfast::Identity;
///
/// # let dir = tempfile::tempdir()?;
/// let path = dir.path().join("edge.key");
/// let made = Identity::load_or_create(&path)?;
/// assert_eq!(Identity::load_or_create(&path)?.public(), made.public());
/// println!("authorize this key at the receiver: {}", made.public());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Identity(pub(crate) stayfast_seal::Identity);

/// A key file is one line; whatever is longer is none.
const LONGEST: u64 = 4096;

impl Identity {
    /// Reads the key in `path`, or makes one there if there is no such file.
    ///
    /// # Errors
    /// The file is readable for others, holds no key, or cannot be read or made.
    pub fn load_or_create(path: impl AsRef<Path>) -> Result<Identity, IdentityError> {
        let path = path.as_ref();
        match Identity::load(path) {
            Err(IdentityError::NotFound(_)) => match Identity::create(path) {
                // Another process was faster.
                Err(IdentityError::Io { .. }) if path.exists() => Identity::load(path),
                made => made,
            },
            loaded => loaded,
        }
    }

    /// Reads the key in `path`.
    ///
    /// # Errors
    /// There is no such file, it is readable for others, holds no key, or cannot be read.
    pub fn load(path: impl AsRef<Path>) -> Result<Identity, IdentityError> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|e| match e.kind() {
            ErrorKind::NotFound => IdentityError::NotFound(path.to_path_buf()),
            _ => failed(path, &e),
        })?;
        let mode = file.metadata().map_err(|e| failed(path, &e))?.permissions().mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(IdentityError::Exposed { path: path.to_path_buf(), mode });
        }
        let mut text = String::new();
        file.take(LONGEST).read_to_string(&mut text).map_err(|e| failed(path, &e))?;
        let identity = stayfast_seal::Identity::from_text(&text);
        identity.map(Identity).map_err(|error| IdentityError::Malformed { path: path.to_path_buf(), error })
    }

    /// Makes a new key in `path`, which must not exist. It is on the disk when this returns.
    ///
    /// # Errors
    /// The file exists or cannot be made.
    pub fn create(path: impl AsRef<Path>) -> Result<Identity, IdentityError> {
        let path = path.as_ref();
        let identity = Identity::generate()?;
        // Whole or not at all: a process that dies half way must not leave half a key.
        let part = path.with_extension(format!("new-{}", std::process::id()));
        let text = identity.0.to_text();
        let written = write_secret(&part, text.as_bytes()).and_then(|()| fs::hard_link(&part, path));
        let removed = fs::remove_file(&part);
        written.and(removed).and_then(|()| sync_folder(path)).map_err(|e| failed(path, &e))?;
        Ok(identity)
    }

    /// A key that is kept nowhere, for tests and for keys that live elsewhere.
    ///
    /// # Errors
    /// No random bytes.
    pub fn generate() -> Result<Identity, IdentityError> {
        stayfast_net::generate().map(Identity).map_err(|_| IdentityError::Entropy)
    }

    /// The key that others know this node by.
    pub fn public(&self) -> PublicKey {
        self.0.public()
    }
}

impl From<stayfast_seal::Identity> for Identity {
    fn from(identity: stayfast_seal::Identity) -> Identity {
        Identity(identity)
    }
}

fn failed(path: &Path, error: &io::Error) -> IdentityError {
    IdentityError::Io { path: path.to_path_buf(), what: error.to_string() }
}

/// Nobody else can read the file at any moment.
fn write_secret(path: &Path, line: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(line)?;
    file.write_all(b"\n")?;
    file.sync_all()
}

fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}
