//! Measures how exact a path between real sockets is on this machine: `cargo run --release -p stayfast-path -- rtt=20ms`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

/// The machine does not allow it.
const NOT_ALLOWED: u8 = 3;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    use stayfast_path::Failure;

    let words: Vec<String> = std::env::args().skip(1).collect();
    match measure(&words.join(" ")) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            let not_allowed = matches!(error.downcast_ref(), Some(Failure::NotAllowed(_)));
            ExitCode::from(if not_allowed { NOT_ALLOWED } else { 2 })
        }
    }
}

/// One line of numbers with names.
#[cfg(target_os = "linux")]
fn measure(path: &str) -> Result<String, Box<dyn std::error::Error>> {
    const SIZE: usize = 1_200;
    const DURATION: std::time::Duration = std::time::Duration::from_secs(3);

    let spec = path.parse::<stayfast_sim::PathSpec>().map_err(|e| e.to_string())?;
    stayfast_path::isolate()?;
    let exactness = stayfast_path::probe::probe(&spec, SIZE, DURATION)?;
    let error = |permille| exactness.permille(permille).unwrap_or(i64::MAX) / 1_000;
    let late = |permille| exactness.traffic.lateness.permille(permille).as_micros();
    Ok(format!(
        "sent={} came={} error_p50_us={} error_p99_us={} late_p50_us={} late_p99_us={} late_p999_us={} first={}",
        exactness.sent,
        exactness.errors.len(),
        error(500),
        error(990),
        late(500),
        late(990),
        late(999),
        exactness.traffic.first,
    ))
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("error: network namespaces are Linux's");
    ExitCode::from(NOT_ALLOWED)
}
