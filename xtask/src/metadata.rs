//! The part of `cargo metadata` that the tasks look at.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::process::{Outcome, cargo, output, root};

/// A crate of the workspace.
#[derive(Debug)]
pub struct Crate {
    /// Package name.
    pub name: String,
    /// Its folder, from the top folder: `crates/units`.
    pub dir: PathBuf,
    /// The floor it says it stands on; none for what stands beside the building (tests, models, xtask).
    pub floor: Option<u64>,
    /// Dependencies on other crates of the workspace.
    pub uses: Vec<Use>,
    /// Names of its features but `default`.
    pub features: Vec<String>,
    /// Root files of its library and its programs, from the top folder.
    pub roots: Vec<PathBuf>,
    /// Names of its programs.
    pub programs: Vec<String>,
}

/// A dependency of one crate of the workspace on another.
#[derive(Debug)]
pub struct Use {
    /// Package name.
    pub name: String,
    /// Needed only by tests, examples and benches.
    pub dev: bool,
}

impl Crate {
    /// The name of its folder: `units` for `crates/units`.
    pub fn short(&self) -> &str {
        self.dir.file_name().and_then(|n| n.to_str()).unwrap_or_default()
    }
}

/// The crates of the workspace that this manifest belongs to.
pub fn crates(manifest: &str) -> Outcome<Vec<Crate>> {
    let text = output(&mut cargo(["metadata", "--format-version", "1", "--no-deps", "--manifest-path", manifest]))?;
    parse(&text, root())
}

fn parse(text: &str, root: &Path) -> Outcome<Vec<Crate>> {
    let value: Value = serde_json::from_str(text).map_err(|e| format!("cargo metadata: {e}"))?;
    Ok(list(&value["packages"]).map(|package| parse_crate(package, root)).collect())
}

fn parse_crate(package: &Value, root: &Path) -> Crate {
    let relative = |path: &Value| {
        let path = Path::new(path.as_str().unwrap_or_default());
        path.strip_prefix(root).unwrap_or(path).to_path_buf()
    };
    let is = |target: &Value, kind: &str| list(&target["kind"]).any(|k| k == kind);
    let targets = || list(&package["targets"]).filter(|t| is(t, "lib") || is(t, "bin"));
    let manifest = relative(&package["manifest_path"]);
    Crate {
        name: string(&package["name"]),
        dir: manifest.parent().unwrap_or(Path::new("")).to_path_buf(),
        floor: package["metadata"]["stayfast"]["floor"].as_u64(),
        uses: list(&package["dependencies"])
            .filter(|d| d["path"].is_string())
            .map(|d| Use { name: string(&d["name"]), dev: d["kind"] == "dev" })
            .collect(),
        features: package["features"]
            .as_object()
            .map(|f| f.keys().filter(|name| *name != "default").cloned().collect())
            .unwrap_or_default(),
        roots: targets().map(|t| relative(&t["src_path"])).collect(),
        programs: targets().filter(|t| is(t, "bin")).map(|t| string(&t["name"])).collect(),
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_cargo_writes() {
        let text = r#"{"packages": [{
            "name": "stayfast-link", "manifest_path": "/top/crates/link/Cargo.toml",
            "metadata": {"stayfast": {"floor": 2}},
            "dependencies": [
                {"name": "stayfast-units", "path": "/top/crates/units", "kind": null},
                {"name": "stayfast-sim", "path": "/top/crates/sim", "kind": "dev"},
                {"name": "libm", "kind": null}],
            "features": {"default": [], "fuzzing": []},
            "targets": [
                {"kind": ["lib"], "name": "stayfast_link", "src_path": "/top/crates/link/src/lib.rs"},
                {"kind": ["test"], "name": "world", "src_path": "/top/crates/link/tests/world.rs"}]}]}"#;
        let crates = parse(text, Path::new("/top")).unwrap();
        let link = &crates[0];
        assert_eq!((link.short(), link.floor), ("link", Some(2)));
        let uses: Vec<_> = link.uses.iter().map(|u| (u.name.as_str(), u.dev)).collect();
        assert_eq!(uses, [("stayfast-units", false), ("stayfast-sim", true)]);
        assert_eq!(link.features, ["fuzzing"]);
        assert_eq!(link.roots, [Path::new("crates/link/src/lib.rs")]);
        assert!(link.programs.is_empty());
    }

    #[test]
    fn refuses_what_is_not_json() {
        assert!(parse("error: no Cargo.toml", Path::new("/top")).is_err());
    }
}
