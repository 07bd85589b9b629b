//! What the path does to packets is what its words say, in real time. Left out where namespaces are not allowed.
#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::io::Write;
use std::process::Command;

/// Other work on the machine delays the ends and, where the emulator may not run first, the emulator.
const ATTEMPTS: usize = 5;

/// The figures of one measurement; none if the machine does not allow it.
fn measure(path: &str) -> Option<BTreeMap<String, i64>> {
    let output = Command::new(env!("CARGO_BIN_EXE_path")).arg(path).output().expect("it was just built");
    if output.status.code() == Some(3) {
        // Past the harness, which would swallow it.
        let why = String::from_utf8_lossy(&output.stderr).replace("error: ", "");
        let _ = writeln!(std::io::stderr(), "skipped, no path between real sockets: {}", why.trim());
        return None;
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let line = String::from_utf8(output.stdout).expect("it prints text");
    let field = |field: &str| field.split_once('=').and_then(|(name, n)| Some((name.to_owned(), n.parse().ok()?)));
    Some(line.split_whitespace().filter_map(field).collect())
}

#[test]
fn packets_take_as_long_as_asked_for() {
    let mut last = BTreeMap::new();
    for _ in 0..ATTEMPTS {
        let Some(figures) = measure("rtt=20ms") else { return };
        assert!(figures["error_p50_us"] >= 0, "earlier than allowed: {figures:?}");
        assert_eq!(figures["came"], figures["sent"], "nothing is lost on this path");
        if figures["error_p50_us"] < 300 {
            return;
        }
        last = figures;
    }
    panic!("half of the packets should be less than 0.3 ms late: {last:?}");
}

#[test]
fn loss_and_black_holes_are_as_asked_for() {
    let Some(figures) = measure("rtt=2ms loss=10%") else { return };
    let share = figures["came"] as f64 / figures["sent"] as f64;
    assert!((0.88..0.92).contains(&share), "five standard deviations of 6,000 are 0.02: {share}");
    // The probes are IP packets of 1,228 B.
    let Some(figures) = measure("rtt=2ms mtu=1227") else { return };
    assert_eq!(figures["came"], 0);
    let Some(figures) = measure("rtt=2ms mtu=1228") else { return };
    assert_eq!(figures["came"], figures["sent"]);
}

/// The path changes after 1.5 of the 3 seconds in which probes of 1,228 B are sent. What is sent later meets the new path;
/// what is sent a moment earlier may, too, if the emulator has not yet come to it.
#[test]
fn a_path_changes_when_it_should() {
    const CHANGE_US: i64 = 1_500_000;
    // The machine may have let nobody send for a while.
    const SLACK_US: i64 = 250_000;

    let Some(figures) = measure("rtt=2ms mtu=1228 then 1.5 rtt=2ms mtu=1227") else { return };
    assert!(figures["end_us"] <= CHANGE_US, "none gets through a black hole that is there: {figures:?}");
    assert!(figures["end_us"] > CHANGE_US - SLACK_US && figures["came"] > figures["sent"] / 3, "{figures:?}");

    let Some(figures) = measure("rtt=2ms mtu=1227 then 1.5 rtt=2ms mtu=1228") else { return };
    assert!((CHANGE_US - SLACK_US..CHANGE_US + SLACK_US).contains(&figures["begin_us"]), "{figures:?}");
    assert!(figures["came"] > figures["sent"] / 3, "{figures:?}");

    let Some(figures) = measure("rtt=2ms then 1.5 rtt=100ms") else { return };
    assert_eq!(figures["came"], figures["sent"], "nothing is lost on this path");
    assert!(figures["error_least_us"] >= 0, "one took less than the path it was sent on: {figures:?}");
    assert!(figures["error_p99_us"] < 40_000, "a tenth would take 49 ms longer had it come 0.3 s early: {figures:?}");
}
