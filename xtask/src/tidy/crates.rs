//! What every crate must have: lints, `forbid(unsafe_code)`, `no_std` where nothing impure belongs, a place on the map.

use std::path::Path;

use super::Finding;
use crate::metadata::Crate;

/// Crates that must build without std: they can name no clock, socket, file or thread at all.
const PURE: [&str; 11] =
    ["units", "frame", "ranges", "recovery", "congestion", "pacer", "pmtud", "link", "seal", "store", "sim"];

/// The manifest takes its lints from the workspace (and with them `missing_docs`).
pub fn check_manifest(package: &Crate, manifest: &str) -> Option<Finding> {
    let inherits = section(manifest, "[lints]").any(|line| line == "workspace = true");
    let path = package.dir.join("Cargo.toml");
    (!inherits).then(|| Finding::new(path, 0, "needs [lints] with workspace = true"))
}

/// The workspace asks for docs on every public item.
pub fn check_lints(manifest: &str) -> Option<Finding> {
    let asks = section(manifest, "[workspace.lints.rust]").any(|line| line.starts_with("missing_docs = "));
    (!asks).then(|| Finding::new("Cargo.toml", 0, "[workspace.lints.rust] must set missing_docs"))
}

fn section<'a>(manifest: &'a str, header: &'a str) -> impl Iterator<Item = &'a str> {
    let lines = manifest.lines().map(str::trim).skip_while(move |line| *line != header);
    lines.skip(1).take_while(|line| !line.starts_with('['))
}

/// The map of the building names the crate's folder.
pub fn check_map(package: &Crate, map: &str) -> Option<Finding> {
    let entry = format!("`{}`", package.dir.display());
    (!map.contains(&entry)).then(|| Finding::new("docs/architecture.md", 0, format!("needs an entry for {entry}")))
}

/// The attributes at the head of a library or program; `code` is blanked.
pub fn check_root(package: &Crate, path: &Path, code: &str) -> Vec<Finding> {
    let code: String = code.split_whitespace().collect();
    let mut findings = Vec::new();
    if !code.contains("#![forbid(unsafe_code)]") {
        findings.push(Finding::new(path, 0, "needs #![forbid(unsafe_code)]"));
    }
    let no_std = code.contains("#![no_std]") || code.contains("#![cfg_attr(not(test),no_std)]");
    if PURE.contains(&package.short()) && !no_std {
        findings.push(Finding::new(path, 0, "holds protocol, so it needs #![no_std]"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::{example, source};
    use super::*;

    const ROOT: &str = "#![no_std]\n#![forbid(unsafe_code)]\nextern crate alloc;\n";

    fn root(name: &str, text: &str) -> Vec<Finding> {
        check_root(&example(name, Some(1), &[]), Path::new("lib.rs"), &source::blank(text))
    }

    #[test]
    fn lints_come_from_the_workspace() {
        let package = example("frame", Some(1), &[]);
        assert_eq!(check_manifest(&package, "[package]\nname = \"x\"\n\n[lints]\nworkspace = true\n"), None);
        assert!(check_manifest(&package, "[package]\nname = \"x\"\n").is_some());
        assert!(check_manifest(&package, "[lints]\n\n[dependencies]\nworkspace = true\n").is_some());
    }

    #[test]
    fn workspace_asks_for_docs() {
        assert_eq!(check_lints("[workspace.lints.rust]\nmissing_docs = \"warn\"\n"), None);
        assert!(check_lints("[workspace.lints.clippy]\nmissing_docs = \"warn\"\n").is_some());
    }

    #[test]
    fn every_crate_is_on_the_map() {
        let package = example("frame", Some(1), &[]);
        assert_eq!(check_map(&package, "| `crates/frame` | packets |"), None);
        assert!(check_map(&package, "| `crates/frames` | packets |").is_some());
    }

    #[test]
    fn unsafe_code_is_forbidden_everywhere() {
        assert_eq!(root("net", "#![forbid(unsafe_code)]"), []);
        assert_eq!(root("net", "// #![forbid(unsafe_code)]").len(), 1);
    }

    #[test]
    fn protocol_crates_have_no_std() {
        assert_eq!(root("frame", ROOT), []);
        assert_eq!(root("frame", &ROOT.replace("#![no_std]", "#![cfg_attr(not(test), no_std)]")), []);
        assert_eq!(root("frame", "#![forbid(unsafe_code)]").len(), 1);
        assert_eq!(root("frame", &ROOT.replace("#![no_std]", "#![cfg_attr(not(feature = \"std\"), no_std)]")).len(), 1);
    }
}
