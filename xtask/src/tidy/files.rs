//! Names, sizes and whitespace of files.

use std::path::Path;

use super::Finding;

const LONGEST_RUST: usize = 600;
const LARGEST: usize = 512 * 1024;

/// Snapshots that nobody has accepted yet do not belong into the repository.
pub fn check_name(path: &Path) -> Option<Finding> {
    let name = path.file_name()?.to_str()?;
    let pending = name.ends_with(".snap.new") || name.ends_with(".pending-snap");
    pending.then(|| Finding::new(path, 0, "is a snapshot that waits for a review: accept or remove it"))
}

/// Large files make every clone slow for ever.
pub fn check_size(path: &Path, bytes: usize) -> Option<Finding> {
    (bytes > LARGEST).then(|| Finding::new(path, 0, format!("has {bytes} B, over {LARGEST}")))
}

/// A file has one subject.
pub fn check_length(path: &Path, text: &str) -> Option<Finding> {
    let lines = text.lines().count();
    (lines > LONGEST_RUST).then(|| Finding::new(path, 0, format!("has {lines} lines, over {LONGEST_RUST}: split it")))
}

/// Trailing whitespace, in the kinds of files that people write.
pub fn check_whitespace(path: &Path, text: &str) -> Vec<Finding> {
    let written = ["rs", "toml", "md", "sh", "py", "json", "sql"];
    if !path.extension().and_then(|e| e.to_str()).is_some_and(|e| written.contains(&e)) {
        return Vec::new();
    }
    let lines = text.split('\n').enumerate().filter(|(_, line)| line.trim_end().len() != line.len());
    lines.map(|(index, _)| Finding::new(path, index + 1, "whitespace at the end of the line")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pending_snapshots() {
        assert_eq!(check_name(Path::new("tests/snapshots/matrix.snap")), None);
        assert!(check_name(Path::new("tests/snapshots/matrix.snap.new")).is_some());
        assert!(check_name(Path::new("tests/.matrix.rs.pending-snap")).is_some());
    }

    #[test]
    fn large_files() {
        assert_eq!(check_size(Path::new("a.bin"), LARGEST), None);
        assert!(check_size(Path::new("a.bin"), LARGEST + 1).is_some());
    }

    #[test]
    fn long_files() {
        assert_eq!(check_length(Path::new("a.rs"), &"\n".repeat(LONGEST_RUST)), None);
        assert!(check_length(Path::new("a.rs"), &"\n".repeat(LONGEST_RUST + 1)).is_some());
    }

    #[test]
    fn trailing_whitespace() {
        assert_eq!(check_whitespace(Path::new("a.rs"), "fn a() {}\n\n"), []);
        assert_eq!(check_whitespace(Path::new("a.snap"), "column \n"), []);
        let findings = check_whitespace(Path::new("a.rs"), "fn a() {}\nfn b() {} \n\t\n");
        assert_eq!(findings.iter().map(|f| f.line).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(check_whitespace(Path::new("a.rs"), "fn a() {}\r\n").len(), 1);
    }
}
