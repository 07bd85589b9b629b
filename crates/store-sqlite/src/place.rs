use stayfast_store::StoreError;
use std::fs;
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

/// The log of the database at `path`.
pub(crate) fn log(path: &Path) -> PathBuf {
    let mut log = path.as_os_str().to_os_string();
    log.push("-wal");
    PathBuf::from(log)
}

fn identity(file: &Path) -> Option<(u64, u64)> {
    fs::metadata(file).ok().map(|meta| (meta.dev(), meta.ino()))
}
