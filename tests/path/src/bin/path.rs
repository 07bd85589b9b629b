//! Measures how exact a path between real sockets is on this machine: `cargo run --release -p stayfast-path -- rtt=20ms`,
//! or one that changes after 1.5 of the 3 seconds: `-- rtt=20ms then 1.5 rtt=60ms`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

/// The machine does not allow it.
const NOT_ALLOWED: u8 = 3;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    use stayfast_path::Failure;

    let words: Vec<String> = std::env::args().skip(1).collect();
    match schedule(&words.join(" ")).and_then(|schedule| measure(&schedule)) {
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

/// A path, then seconds and the path that it becomes, as often as one likes.
#[cfg(target_os = "linux")]
fn schedule(words: &str) -> Result<stayfast_path::Schedule, Box<dyn std::error::Error>> {
    let mut parts = words.split(" then ");
    let mut schedule = stayfast_path::Schedule::new(parts.next().unwrap_or_default().parse()?);
    for part in parts {
        let (seconds, path) = part.split_once(' ').ok_or(format!("`then {part}`: expected seconds and a path"))?;
        let after = std::time::Duration::try_from_secs_f64(seconds.parse()?)?;
        let fixed = |word| format!("`{word}` stays as it is for a whole run");
        schedule = schedule.then(after, path.parse()?).map_err(fixed)?;
    }
    Ok(schedule)
}

/// One line of numbers with names.
#[cfg(target_os = "linux")]
fn measure(schedule: &stayfast_path::Schedule) -> Result<String, Box<dyn std::error::Error>> {
    const SIZE: usize = 1_200;
    const DURATION: std::time::Duration = std::time::Duration::from_secs(3);

    stayfast_path::isolate()?;
    let exactness = stayfast_path::probe::probe(schedule, SIZE, DURATION)?;
    let error = |permille| exactness.permille(permille).unwrap_or(i64::MAX) / 1_000;
    let late = |permille| exactness.traffic.lateness.permille(permille).as_micros();
    let span = exactness.span.map_or((0, 0), |(first, last)| (first.as_micros(), last.as_micros()));
    Ok(format!(
        "sent={} came={} begin_us={} end_us={} error_least_us={} error_p50_us={} error_p99_us={} late_p50_us={} \
         late_p99_us={} late_p999_us={} first={}",
        exactness.sent,
        exactness.errors.len(),
        span.0,
        span.1,
        error(0),
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
