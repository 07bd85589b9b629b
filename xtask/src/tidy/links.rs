//! Links between documents lead somewhere.

use std::path::Path;

use super::Finding;

/// Refuses relative links to files that `exists` does not know, given a path from the top folder.
pub fn check(path: &Path, text: &str, exists: impl Fn(&Path) -> bool) -> Vec<Finding> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for (_, rest) in line.match_indices("](").map(|(at, mark)| line.split_at(at + mark.len())) {
            let target = rest.split([')', '#']).next().unwrap_or_default();
            let elsewhere = target.is_empty() || target.contains(':');
            if !elsewhere && !exists(&folder.join(target)) {
                findings.push(Finding::new(path, index + 1, format!("links to {target}, which is not there")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_docs(text: &str) -> usize {
        let exists = |path: &Path| [Path::new("docs/wire.md"), Path::new("docs/../README.md")].contains(&path);
        check(Path::new("docs/link.md"), text, exists).len()
    }

    #[test]
    fn links_lead_somewhere() {
        assert_eq!(in_docs("see [a](wire.md), [b](wire.md#frames), [c](../README.md)"), 0);
        assert_eq!(in_docs("[a](#here) [b](https://example.org/x.md)"), 0);
    }

    #[test]
    fn dead_links_are_refused() {
        assert_eq!(in_docs("[a](wire.md) [b](frames.md)\n[c](README.md)"), 2);
    }
}
