//! What a pull request runs.
//!
//! Steps go from cheap to dear. Clippy, rustdoc and the tests share one target folder, one profile and one set of
//! features, so that each dependency is built once for checking and once for running; only loom and libFuzzer,
//! whose flags reach every crate, build apart.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::metadata::crates;
use crate::process::{Counts, Outcome, cargo, root, run, run_tests};
use crate::{fuzz, models, tidy};

/// Features that plant bugs: a test of the crate turns each on to show that its oracle notices.
const PLANTED: [&str; 2] = ["mutants", "broken"];

const FUZZ_SECONDS: u64 = 20;

/// Runs all steps up to the first that fails; the last line counts the tests.
pub fn ci() -> Outcome {
    let mut ci = Ci { counts: Counts::default(), times: Vec::new() };
    let outcome = ci.steps();
    println!();
    for (name, time) in &ci.times {
        println!("{:>7.1} s  {name}", time.as_secs_f64());
    }
    println!("{:>7.1} s  in all", ci.times.iter().map(|(_, time)| time.as_secs_f64()).sum::<f64>());
    if let Err(message) = &outcome {
        println!("stopped: {message}");
        // A step that broke before any test could fail must not read as a success.
        ci.counts.failed = ci.counts.failed.max(1);
    }
    println!("\n{} passed, {} failed", ci.counts.passed, ci.counts.failed);
    outcome
}

struct Ci {
    counts: Counts,
    times: Vec<(&'static str, Duration)>,
}

impl Ci {
    fn steps(&mut self) -> Outcome {
        let features = features()?;
        let workspace = |command: &str| {
            let mut command = cargo([command, "--workspace", "--features", &features]);
            command.env("CI", "true").env("INSTA_UPDATE", "no");
            command
        };
        self.step("format", |_| run(&mut cargo(["fmt", "--all", "--check"])))?;
        self.step("tidy", |_| tidy::tidy())?;
        self.step("spelling", |_| spelling())?;
        self.step("vectors", |_| vectors())?;
        self.step("clippy", |_| run(workspace("clippy").args(["--all-targets", "--", "-D", "warnings"])))?;
        self.step("doc", |_| run(workspace("doc").arg("--no-deps").env("RUSTDOCFLAGS", "-Dwarnings")))?;
        // Without a choice of targets cargo runs the doc tests too.
        self.step("test", |counts| run_tests(workspace("test").arg("--no-fail-fast"), counts))?;
        self.step("models", models::models_counted)?;
        self.step("fuzz", |_| fuzz::fuzz(None, FUZZ_SECONDS))
    }

    fn step(&mut self, name: &'static str, work: impl FnOnce(&mut Counts) -> Outcome) -> Outcome {
        println!("\n== {name}");
        let start = Instant::now();
        let outcome = work(&mut self.counts);
        let time = start.elapsed();
        println!("-- {name}: {:.1} s", time.as_secs_f64());
        self.times.push((name, time));
        outcome.map_err(|message| format!("{name}: {message}"))
    }
}

/// All features of all crates but those that plant bugs, as cargo wants them.
fn features() -> Outcome<String> {
    let mut features = Vec::new();
    for package in crates("Cargo.toml")? {
        let sound = package.features.iter().filter(|f| !PLANTED.contains(&f.as_str()));
        features.extend(sound.map(|feature| format!("{}/{feature}", package.name)));
    }
    Ok(features.join(","))
}

fn spelling() -> Outcome {
    if installed(Command::new("typos").arg("--version"), "typos") {
        run(Command::new("typos").current_dir(root()))?;
    }
    Ok(())
}

/// The test vectors of the documents, checked by programs that share no code with ours.
fn vectors() -> Outcome {
    run(Command::new("python3").arg("docs/check_vectors.py").current_dir(root()))?;
    if installed(Command::new("python3").args(["-c", "import cryptography"]), "cryptography") {
        run(Command::new("python3").arg("docs/check_sessions.py").current_dir(root()))?;
    }
    Ok(())
}

/// Whether a Python package is there, by a command that needs it. On a person's machine it may be missing; where
/// `CI` is set it must not, so the step runs and fails.
fn installed(probe: &mut Command, package: &str) -> bool {
    let works = probe.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if !works && std::env::var_os("CI").is_none() {
        println!("left out: needs `pip install {package}`");
        return false;
    }
    true
}
