//! The matrix: every cell of a plan, run with every transport, on the same simulated path with the same seed.
//!
//! A [plan](plan::Plan) is a TOML file with cells: a path, a load, what runs beside. [`run::run`] puts one transport on
//! one cell; [`table::table`] makes a text of the outcomes that a pull request can show, [`report::html`] a page with
//! plots, [`trace`] one run over time. `cargo xtask matrix --help` and `cargo xtask trace --help` are the commands.
#![forbid(unsafe_code)]

mod measure;
pub mod peers;
pub mod plan;
#[cfg(target_os = "linux")]
pub mod real;
pub mod report;
pub mod run;
pub mod table;
pub mod trace;

/// Writes to standard output. A reader that has gone, as `head` does, is no error.
///
/// # Errors
/// It cannot be written.
pub fn print(text: &str) -> Result<(), String> {
    match std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(format!("cannot write the results: {e}")),
        _ => Ok(()),
    }
}
