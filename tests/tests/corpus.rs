//! Replays `fuzz/corpus`: what a fuzzer once found worth keeping runs in every `cargo test`, decoded and checked as the
//! fuzz target of the same name would.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use arbitrary::{Arbitrary, Unstructured};
use stayfast_congestion::fuzzing as congestion;
use stayfast_frame::fuzzing as frame;
use stayfast_pacer::fuzzing as pacer;
use stayfast_pmtud::fuzzing as pmtud;
use stayfast_ranges::fuzzing as ranges;
use stayfast_recovery::fuzzing as recovery;
use stayfast_seal::fuzzing as seal;
use stayfast_sim::fuzzing as sim;
use stayfast_store::fuzzing as store;

/// One test for each fuzz target, of its name.
macro_rules! targets {
    ($($name:ident: $check:expr;)*) => {
        const TARGETS: &[&str] = &[$(stringify!($name)),*];
        $(#[test] fn $name() { replay(stringify!($name), $check); })*
    };
}

targets! {
    congestion: |bytes| congestion::check(&decode::<congestion::Ops>(bytes).0);
    frames: frame::check_bytes;
    link: stayfast_tests::schedule::check_bytes;
    pacer: |bytes| pacer::check(&decode::<pacer::Ops>(bytes).0);
    packets: |bytes| seal::check(&decode::<Vec<seal::Op>>(bytes));
    path: |bytes| sim::check(&sim::ops(bytes));
    pmtud: |bytes| pmtud::check(&decode::<pmtud::Ops>(bytes).0);
    ranges: |bytes| ranges::range_set::check(&decode::<ranges::Ops<ranges::range_set::Op>>(bytes).0);
    reassembly: |bytes| ranges::reassembler::check(&decode::<ranges::Ops<ranges::reassembler::Op>>(bytes).0);
    recovery: |bytes| recovery::check(&decode::<Vec<recovery::Op>>(bytes));
    store: |bytes| store::check(&store::ops(bytes));
    tcp: |bytes| sim::tcp::check(&sim::tcp::ops(bytes));
    writer: |bytes| frame::check(&frame::ops(bytes));
}

/// Makes an input from bytes as `fuzz_target!` does.
fn decode<T: for<'a> Arbitrary<'a>>(bytes: &[u8]) -> T {
    T::arbitrary_take_rest(Unstructured::new(bytes)).expect("a seed decodes")
}

fn replay(target: &str, check: fn(&[u8])) {
    let mut count = 0;
    for entry in std::fs::read_dir(fuzz().join("corpus").join(target)).expect("the target has seeds") {
        let path = entry.unwrap().path();
        // If the check panics, this names the input.
        println!("{}", path.display());
        check(&std::fs::read(&path).unwrap());
        count += 1;
    }
    assert!(count > 0, "the target has seeds");
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
