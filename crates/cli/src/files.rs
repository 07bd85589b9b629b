//! Key files and stores, opened with errors that help.

use crate::failure::{Failure, Outcome};
use stayfast_frame::Entropy;
use stayfast_seal::{Identity, PublicKey};
use stayfast_store_sqlite::{Options, SqliteOutbox};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Makes a new identity and its key file. A file that is there is kept.
pub fn make_identity(path: &Path) -> Outcome<Identity> {
    let mut entropy = System(None);
    let identity = Identity::generate(&mut entropy);
    if let Some(error) = entropy.0 {
        return Err(Failure::environment(format!("the system gives no randomness: {error}")));
    }
    let mut line = identity.to_text();
    line.push('\n');
    match write_secret(path, line.as_bytes()) {
        Ok(()) => Ok(identity),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Err(Failure::environment(format!(
            "{0} exists and is kept: `stayfast pubkey {0}` prints its public key; move it away to make a new one",
            path.display()
        ))),
        Err(e) => Err(Failure::file(path, &e)),
    }
}

/// Randomness of the operating system, and the error if there was one.
struct System(Option<getrandom::Error>);

impl Entropy for System {
    fn fill(&mut self, bytes: &mut [u8]) {
        self.0 = getrandom::fill(bytes).err().or(self.0);
    }
}

/// Makes a file that nobody else can read at any moment, and returns when it is on the disk.
fn write_secret(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    if let Some(folder) = path.parent() {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Reads the identity in a key file that `stayfast keygen` made.
pub fn identity(path: &Path) -> Outcome<Identity> {
    let file = File::open(path).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => Failure::environment(format!(
            "{0}: there is no such key; make one with `stayfast keygen {0}`",
            path.display()
        )),
        _ => Failure::file(path, &e),
    })?;
    private(path, &file)?;
    let text = io::read_to_string(file).map_err(|e| Failure::file(path, &e))?;
    Identity::from_text(&text).map_err(|e| Failure::environment(format!("{}: {e}", path.display())))
}

/// Refuses a secret that others can read.
#[cfg(unix)]
fn private(path: &Path, file: &File) -> Outcome {
    use std::os::unix::fs::PermissionsExt;
    let mode = file.metadata().map_err(|e| Failure::file(path, &e))?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(Failure::environment(format!(
            "{0}: others may read this secret (mode {1:04o}); make it yours alone with `chmod 600 {0}`",
            path.display(),
            mode & 0o7777
        )));
    }
    Ok(())
}

#[cfg(not(unix))]
fn private(_: &Path, _: &File) -> Outcome {
    Ok(())
}

/// Reads a public key from the command line.
///
/// # Errors
/// What is wrong with it, for clap.
pub fn public_key(text: &str) -> Result<PublicKey, String> {
    text.parse().map_err(|e| format!("{e}"))
}

/// Opens an outbox that is there already.
pub fn outbox(path: &Path) -> Outcome<SqliteOutbox> {
    // SQLite's own words for it ("unable to open database file") help nobody.
    fs::metadata(path).map_err(|e| Failure::file(path, &e))?;
    let options = Options { create: false, ..Options::default() };
    SqliteOutbox::open(path, &options).map_err(|e| Failure::store(path, &e))
}
