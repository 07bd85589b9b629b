//! libFuzzer with the stable compiler.
//!
//! `cargo fuzz` needs a nightly compiler for the sanitizers. The coverage instrumentation alone is an LLVM pass
//! that stable can be told to run, which is enough for a guided search in every pull request.

use std::path::PathBuf;
use std::process::Command;

use crate::metadata::crates;
use crate::process::{Outcome, cargo, output, root, run};

const MANIFEST: &str = "fuzz/Cargo.toml";

const RUSTFLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 -Cdebug-assertions";

/// Builds and runs one target, or all of them one after the other.
pub fn fuzz(only: Option<&str>, seconds: u64) -> Outcome {
    let mut targets = targets()?;
    if let Some(only) = only {
        if !targets.iter().any(|t| t == only) {
            return Err(format!("no fuzz target {only}: {MANIFEST} has {}", targets.join(", ")));
        }
        targets.retain(|t| t == only);
    }
    let programs = build(&targets)?;
    for target in &targets {
        search(target, programs.join(target), seconds)?;
    }
    Ok(())
}

fn targets() -> Outcome<Vec<String>> {
    let mut targets: Vec<_> = crates(MANIFEST)?.into_iter().flat_map(|c| c.programs).collect();
    targets.sort();
    Ok(targets)
}

/// Returns the folder with the programs.
fn build(targets: &[String]) -> Outcome<PathBuf> {
    let host = host()?;
    // Naming the target keeps the flags away from build scripts and procedural macros.
    let mut command = cargo(["build", "--release", "--manifest-path", MANIFEST, "--target", &host]);
    for target in targets {
        command.args(["--bin", target]);
    }
    run(command.env("RUSTFLAGS", RUSTFLAGS).env("CARGO_TARGET_DIR", "target/fuzz"))?;
    Ok(root().join("target/fuzz").join(host).join("release"))
}

fn host() -> Outcome<String> {
    let version = output(Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc -vV names no host".into())
}

fn search(target: &str, program: PathBuf, seconds: u64) -> Outcome {
    let seeds = root().join("fuzz/corpus").join(target);
    let found = root().join("target/fuzz/corpus").join(target);
    let failures = root().join("fuzz/artifacts").join(target);
    for folder in [&found, &failures] {
        std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    let mut command = Command::new(&program);
    // libFuzzer adds to the first folder and only reads the others.
    command.arg(&found).arg(&seeds).current_dir(root()).arg(format!("-max_total_time={seconds}")).args([
        "-timeout=10",
        "-rss_limit_mb=1024",
        "-verbosity=0",
        "-print_final_stats=1",
    ]);
    command.arg(format!("-artifact_prefix={}/", failures.display()));
    run(&mut command).map_err(|e| {
        format!(
            "{e}\nThe input lies in {}; run it again with: {} FILE\nThen keep it as a named test.",
            failures.display(),
            program.display()
        )
    })
}
