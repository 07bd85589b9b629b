//! Replays `fuzz/corpus`: what a fuzzer once found worth keeping runs in every `cargo test`, decoded and checked as the
//! fuzz target of the same name would.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use arbitrary::{Arbitrary, Unstructured};

/// One test for each fuzz target: its name, the type of its input, and the check it calls.
macro_rules! targets {
    ($($name:ident: $check:expr;)*) => {
        const TARGETS: &[&str] = &[$(stringify!($name)),*];
        $(#[test] fn $name() { replay(stringify!($name), $check); })*
    };
}

targets! {
    congestion: operations(stayfast_congestion::fuzzing::check);
    frames: bytes(stayfast_frame::fuzzing::check_bytes);
    pacer: operations(stayfast_pacer::fuzzing::check);
    packets: operations(stayfast_seal::fuzzing::check);
    path: operations(stayfast_sim::fuzzing::check);
    ranges: operations(stayfast_ranges::fuzzing::range_set::check);
    reassembly: operations(stayfast_ranges::fuzzing::reassembler::check);
    recovery: operations(stayfast_recovery::fuzzing::check);
    writer: operations(stayfast_frame::fuzzing::check);
}

/// Decodes operations from bytes as `fuzz_target!` does, and says how many there were.
fn operations<Op: for<'a> Arbitrary<'a>>(check: fn(&[Op])) -> impl Fn(&[u8]) -> usize {
    move |bytes| {
        let ops = Vec::<Op>::arbitrary_take_rest(Unstructured::new(bytes)).expect("a seed decodes");
        check(&ops);
        ops.len()
    }
}

fn bytes(check: fn(&[u8])) -> impl Fn(&[u8]) -> usize {
    move |bytes| {
        check(bytes);
        bytes.len()
    }
}

fn replay(target: &str, check: impl Fn(&[u8]) -> usize) {
    let mut done = 0;
    for entry in std::fs::read_dir(fuzz().join("corpus").join(target)).expect("the target has seeds") {
        let path = entry.unwrap().path();
        // If the check panics, this names the input.
        println!("{}", path.display());
        done += check(&std::fs::read(&path).unwrap());
    }
    assert!(done > 0, "the seeds do nothing");
}

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz")
}

#[test]
fn every_fuzz_target_is_replayed() {
    let manifest = std::fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    let programs = manifest.split("[[bin]]").skip(1);
    let names: Vec<_> = programs.map(|bin| bin.split('"').nth(1).expect("a program has a name")).collect();
    assert_eq!(names, TARGETS);
}
