//! Loom: every interleaving of the queue's threads, up to a bound.

use std::process::{Command, Stdio};

use crate::process::{Counts, Outcome, cargo, run_tests};

/// Runs the models, then the variant with a planted bug, which must fail.
pub fn models() -> Outcome {
    models_counted(&mut Counts::default())
}

/// As [`models`], and adds up the tests of the sound variant.
pub fn models_counted(counts: &mut Counts) -> Outcome {
    run_tests(&mut loom(&[]), counts)?;
    // The build must succeed: a variant that does not compile would pass for one that loom caught.
    let build = loom(&["--features", "broken", "--no-run"]).status().map_err(|e| e.to_string())?;
    if !build.success() {
        return Err("the broken variant of the models does not build".into());
    }
    let broken = loom(&["--features", "broken"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if broken.map_err(|e| e.to_string())?.success() {
        return Err("loom passed the variant with a planted bug: the models see nothing".into());
    }
    println!("loom caught the planted bug, as it must");
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
