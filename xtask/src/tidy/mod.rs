//! Rules that neither the compiler nor clippy knows.
//!
//! Each rule is a function from texts to findings, so that its tests need no files; this module reads the files.

mod crates;
mod files;
mod floors;
mod functions;
mod impure;
mod links;
mod source;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::metadata;
use crate::process::{Outcome, root};

/// A broken rule.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    /// From the top folder.
    path: PathBuf,
    /// Counted from 1; 0 for a whole file.
    line: usize,
    /// What is wrong and what to do.
    message: String,
}

impl Finding {
    fn new(path: impl Into<PathBuf>, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: path.into(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path.display(), self.message),
            line => write!(f, "{}:{line}: {}", self.path.display(), self.message),
        }
    }
}

/// Checks everything git tracks or would track.
pub fn tidy() -> Outcome {
    let crates = metadata::crates("Cargo.toml")?;
    let mut findings = floors::check(&crates);
    let map = read("docs/architecture.md")?;
    for package in &crates {
        findings.extend(crates::check_manifest(package, &read(package.dir.join("Cargo.toml"))?));
        findings.extend(crates::check_map(package, &map));
        for path in &package.roots {
            findings.extend(crates::check_root(package, path, &source::blank(&read(path)?)));
        }
    }
    findings.extend(crates::check_lints(&read("Cargo.toml")?));
    let paths = tracked()?;
    let mut sources = Vec::new();
    for path in &paths {
        let full = root().join(path);
        // A tracked file may be deleted but not yet committed.
        let Ok(bytes) = std::fs::read(&full) else { continue };
        findings.extend(files::check_name(path));
        findings.extend(files::check_size(path, bytes.len()));
        let Ok(text) = String::from_utf8(bytes) else { continue };
        findings.extend(check_text(path, &text));
        if path.extension().is_some_and(|e| e == "rs") {
            sources.push((path, source::blank(&text)));
        }
    }
    let tests: Vec<_> = sources.iter().flat_map(|(path, code)| source::test_modules(path, code)).collect();
    for (path, code) in &sources {
        findings.extend(functions::check(path, code));
        let owner = crates.iter().find(|c| path.starts_with(c.dir.join("src")));
        if let Some(owner) = owner.filter(|_| !source::is_test_file(path, &tests)) {
            findings.extend(impure::check(owner, path, &source::without_tests(code)));
        }
    }
    for finding in &findings {
        eprintln!("{finding}");
    }
    match findings.len() {
        0 => println!("{} files, {} crates: nothing to tidy", paths.len(), crates.len()),
        count => return Err(format!("{count} rules broken")),
    }
    Ok(())
}

fn check_text(path: &Path, text: &str) -> Vec<Finding> {
    let mut findings = files::check_whitespace(path, text);
    match path.extension().and_then(|e| e.to_str()) {
        Some("rs") => findings.extend(files::check_length(path, text)),
        Some("md") => findings.extend(links::check(path, text, |target| root().join(target).exists())),
        _ => {}
    }
    findings
}

fn read(path: impl AsRef<Path>) -> Outcome<String> {
    let path = path.as_ref();
    std::fs::read_to_string(root().join(path)).map_err(|e| format!("{}: {e}", path.display()))
}

fn tracked() -> Outcome<Vec<PathBuf>> {
    // A checkout may belong to another user than the one who tests it, as in containers; listing it is harmless.
    let mut git = Command::new("git");
    git.args(["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let list = crate::process::output(git.current_dir(root()))?;
    Ok(list.split('\0').filter(|path| !path.is_empty()).map(PathBuf::from).collect())
}

/// A crate as `cargo metadata` would describe it, for the tests of the rules.
#[cfg(test)]
fn example(name: &str, floor: Option<u64>, uses: &[(&str, bool)]) -> metadata::Crate {
    metadata::Crate {
        name: name.into(),
        dir: Path::new("crates").join(name.trim_start_matches("stayfast-")),
        floor,
        uses: uses.iter().map(|(name, dev)| metadata::Use { name: (*name).into(), dev: *dev }).collect(),
        features: Vec::new(),
        roots: Vec::new(),
        programs: Vec::new(),
    }
}
