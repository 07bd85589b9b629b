//! Key files and stores, opened with errors that help.

use crate::failure::{Failure, Outcome};
use stayfast::{Identity, Options, PublicKey};
use stayfast_store_sqlite::SqliteOutbox;
use std::fs;
use std::path::Path;

/// Makes a new identity and its key file. A file that is there is kept.
pub fn make_identity(path: &Path) -> Outcome<Identity> {
    if path.exists() {
        return Err(Failure::environment(format!(
            "{0} exists and is kept: `stayfast pubkey {0}` prints its public key; move it away to make a new one",
            path.display()
        )));
    }
    Identity::create(path).map_err(Failure::environment)
}

/// Reads the identity in a key file that `stayfast keygen` made.
pub fn identity(path: &Path) -> Outcome<Identity> {
    Identity::load(path).map_err(Failure::environment)
}

/// Reads a public key from the command line.
///
/// # Errors
/// What is wrong with it, for clap.
pub fn public_key(text: &str) -> Result<PublicKey, String> {
    text.parse().map_err(|e| format!("{e}"))
}

/// Opens an outbox that is there already, to look at it: nothing is changed.
pub fn outbox_to_read(path: &Path) -> Outcome<SqliteOutbox> {
    fs::metadata(path).map_err(|e| Failure::file(path, &e))?;
    SqliteOutbox::open_read_only(path).map_err(|e| Failure::store(path, &e))
}

/// Opens an outbox that is there already.
pub fn outbox(path: &Path) -> Outcome<SqliteOutbox> {
    // SQLite's own words for it ("unable to open database file") help nobody.
    fs::metadata(path).map_err(|e| Failure::file(path, &e))?;
    let options = Options { create: false, ..Options::default() };
    SqliteOutbox::open(path, &options).map_err(|e| Failure::store(path, &e))
}
