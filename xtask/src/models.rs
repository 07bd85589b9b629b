//! Loom: every interleaving of the queue's threads, up to a bound.

use std::process::Command;

use crate::process::{Counts, Outcome, cargo, run_tests};

/// Runs the models, then those with planted mistakes, each of which must be found.
pub fn models() -> Outcome {
    models_counted(&mut Counts::default())
}

/// As [`models`], and adds up the tests.
pub fn models_counted(counts: &mut Counts) -> Outcome {
    run_tests(&mut loom(&[]), counts)?;
    let sound = counts.passed;
    // Here each test expects its model to fail, so a pass says that loom found the mistake.
    run_tests(&mut loom(&["--features", "broken"]), counts)?;
    if counts.passed == sound {
        return Err("no model has a planted mistake to find: nothing shows that the models see anything".into());
    }
    Ok(())
}

/// `cfg(loom)` changes every crate, hence the target folder of its own.
fn loom(arguments: &[&str]) -> Command {
    let mut command = cargo(["test", "--release", "--package", "models"]);
    command.args(arguments).env("RUSTFLAGS", "--cfg loom").env("CARGO_TARGET_DIR", "target/loom");
    if std::env::var_os("LOOM_MAX_PREEMPTIONS").is_none() {
        command.env("LOOM_MAX_PREEMPTIONS", "3");
    }
    command
}
