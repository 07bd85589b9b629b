#![no_main]
libfuzzer_sys::fuzz_target!(|ops: stayfast_congestion::fuzzing::Ops| stayfast_congestion::fuzzing::check(&ops.0));
