//! Ours and the kernel's TCP between real sockets, short: order, once-ness, and a coarse bound. Left out where network
//! namespaces are not allowed.
#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

use serde_json::Value;
use std::io::Write;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// One run at a time: what is measured is not the machine.
static ALONE: Mutex<()> = Mutex::new(());
/// Other work on the machine may spoil one.
const ATTEMPTS: usize = 3;

/// One run of 5 s, or some more where something happens under way, whose receiver has checked that each record is the one that is due; none if the machine does not allow it.
fn run(cell: &str, peer: &str) -> Option<Value> {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let plan = concat!(env!("CARGO_MANIFEST_DIR"), "/../plans/real.toml");
    let arguments = ["--real", "--short", "--json", "--jobs", "1", "--plan", plan, "--cell", cell, "--peer", peer];
    let output = Command::new(env!("CARGO_BIN_EXE_matrix")).args(arguments).output().expect("it was just built");
    let errors = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(3) {
        // Past the harness, which would swallow it.
        let why = errors.replace("error: ", "");
        let _ = writeln!(std::io::stderr(), "skipped, no real paths: {}", why.trim());
        return None;
    }
    assert!(output.status.success(), "{cell}, {peer}: {errors}");
    let outcomes: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    match outcomes.get(0) {
        Some(outcome) => Some(outcome.clone()),
        None => {
            let _ = writeln!(std::io::stderr(), "skipped, the machine has too much else to do: {}", errors.trim());
            None
        }
    }
}

/// A run with at least so many Mbit/s, and no more than so many thousandths sent again after the first two seconds; after
/// some attempts.
fn reaches(cell: &str, peer: &str, least: f64, resent: u64) {
    let mut seen = Vec::new();
    for _ in 0..ATTEMPTS {
        let Some(outcome) = run(cell, peer) else { return };
        let mbit = outcome["mbit"].as_f64().expect("a number");
        let later = outcome["resent_later_permille"].as_u64().expect("a number");
        if mbit >= least && later <= resent {
            return;
        }
        seen.push((mbit, later));
    }
    panic!("{cell}, {peer}: {least} Mbit/s and {resent} thousandths sent again are wanted, not {seen:?}");
}

/// What says that the emulator is right: the kernel's own TCP fills its path. 47.8 is what headers leave of 50.
#[test]
fn tcp_fills_the_path() {
    reaches("20 clean", "tcp", 47.0, 0);
}

/// Under jitter, several times what quinn gets with its defaults. Without loss, next to nothing goes twice.
#[test]
fn ours_is_in_order_once_and_not_slow() {
    for (cell, least, resent) in [("20 clean", 25.0, 10), ("20 jitter 3", 15.0, 10), ("20 loss 1 %", 2.0, 50)] {
        reaches(cell, "stayfast", least, resent);
    }
}

/// A black hole opens in mid-flow for packets of full size. The bound is twice what a quiet machine is held to.
#[test]
fn ours_comes_back_after_the_mtu_of_a_real_path_has_shrunk() {
    let mut seen = Vec::new();
    for _ in 0..ATTEMPTS {
        let Some(outcome) = run("20 mtu shrink", "stayfast") else { return };
        // A window of full packets vanishes; a path that stays drops a handful at its queue.
        assert!(outcome["dropped"].as_u64() > Some(30), "there is something to come back from: {outcome}");
        let back = outcome["back_ms"].as_u64();
        if back.is_some_and(|ms| ms <= 4_000) {
            return;
        }
        seen.push((back, outcome["mbit"].as_f64()));
    }
    panic!("it should be back within 4 s, but milliseconds and Mbit/s were {seen:?}");
}

/// Of 7 s it has the path alone for 4: 47 and then about half of it give some 36 Mbit/s, sharing all the time gives 24.
#[test]
fn who_comes_late_to_a_real_path_begins_at_its_time() {
    let mut seen = Vec::new();
    for _ in 0..ATTEMPTS {
        let Some(outcome) = run("20 tcp comes late", "tcp") else { return };
        let (mbit, share) = (outcome["mbit"].as_f64().expect("a number"), outcome["share"].as_f64().expect("a number"));
        if (30.0..45.0).contains(&mbit) && (0.2..0.9).contains(&share) {
            return;
        }
        seen.push((mbit, share));
    }
    panic!("30 to 45 Mbit/s and a share of 0.2 to 0.9 are wanted, not {seen:?}");
}

#[test]
fn the_program_says_what_is_wrong_with_its_plan() {
    let output = Command::new(env!("CARGO_BIN_EXE_matrix")).args(["--real", "--plan", "nowhere.toml"]).output();
    let output = output.expect("it was just built");
    assert!(matches!(output.status.code(), Some(2 | 3)), "{:?}", output.status);
    assert!(output.stderr.starts_with(b"error: "));
}
