//! Loom models of `stayfast-handoff`: every interleaving of two or three threads, up to a bound of
//! preemptions, must keep what the queue and the watch promise.
//!
//! ```console
//! $ RUSTFLAGS='--cfg loom' CARGO_TARGET_DIR=target/loom cargo test --release -p models
//! $ RUSTFLAGS='--cfg loom' CARGO_TARGET_DIR=target/loom cargo test --release -p models --features broken
//! ```
//!
//! The second command plants mistakes and expects each model to see its own. Without `--cfg loom` there
//! is nothing here.
#![forbid(unsafe_code)]
#![cfg(all(loom, test))]

mod bell;
#[cfg(feature = "broken")]
mod broken;
#[cfg(not(feature = "broken"))]
mod queue;
#[cfg(not(feature = "broken"))]
mod watch;

/// Runs a model with at most three preemptions, or as many as `LOOM_MAX_PREEMPTIONS` says.
fn explore(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(3);
    builder.check(model);
}
