#![no_main]
libfuzzer_sys::fuzz_target!(|ops: Vec<stayfast_congestion::fuzzing::Op>| stayfast_congestion::fuzzing::check(&ops));
