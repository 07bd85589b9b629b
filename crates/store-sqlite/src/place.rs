use stayfast_store::StoreError;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf, absolute};

/// Where the files of an open store are, and which they were.
///
/// A file can be deleted, moved or replaced while it is open; commits then go on, into a file that no later process
/// will find.
#[derive(Debug)]
pub(crate) struct Place {
    files: Vec<(PathBuf, (u64, u64))>,
}

impl Place {
    /// Of a database at `path` and its log, after both were opened. A database without a file has no place.
    pub fn new(path: &Path) -> Place {
        // Not resolved: a link that shows elsewhere later is a replacement too.
        let path = absolute(path).unwrap_or_else(|_| path.to_path_buf());
        let files = [path.clone(), log(&path)];
        Place { files: files.into_iter().filter_map(|file| Some((file.clone(), identity(&file)?))).collect() }
    }

    /// Are they still there?
    pub fn check(&self) -> Result<(), StoreError> {
        for (file, before) in &self.files {
            let what = match identity(file) {
                Some(now) if now == *before => continue,
                Some(_) => "is another file now",
                None => "is gone",
            };
            return Err(StoreError::Replaced { what: format!("{} {what}", file.display()) });
        }
        Ok(())
    }
}

/// A database that nobody writes, as it was.
#[derive(Debug)]
pub(crate) struct Frozen {
    path: PathBuf,
    stamp: (u64, i64, i64),
}

impl Frozen {
    /// If nothing waits in a log or journal beside it, the file is all there is.
    pub fn new(path: &Path) -> Result<Frozen, StoreError> {
        let frozen = Frozen { path: path.to_path_buf(), stamp: stamp(path) };
        frozen.check()?;
        Ok(frozen)
    }

    /// Is it still so? What was read before is sound then.
    pub fn check(&self) -> Result<(), StoreError> {
        let waits = |path: PathBuf| fs::metadata(path).is_ok_and(|meta| meta.len() > 0);
        let journal = beside(&self.path, "-journal");
        match waits(log(&self.path)) || waits(journal) || stamp(&self.path) != self.stamp {
            true => Err(StoreError::Busy),
            false => Ok(()),
        }
    }
}

/// What changes when a file does.
fn stamp(path: &Path) -> (u64, i64, i64) {
    fs::metadata(path).map_or((0, 0, 0), |meta| (meta.len(), meta.mtime(), meta.mtime_nsec()))
}

/// The name that SQLite understands with options.
pub(crate) fn uri(path: &Path, options: &str) -> String {
    let path = absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let mut uri = "file://".to_string();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => uri.push(char::from(*byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    format!("{uri}?{options}")
}

/// The log of the database at `path`.
pub(crate) fn log(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(suffix);
    PathBuf::from(name)
}

fn identity(file: &Path) -> Option<(u64, u64)> {
    fs::metadata(file).ok().map(|meta| (meta.dev(), meta.ino()))
}
