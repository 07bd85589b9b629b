#![no_main]
libfuzzer_sys::fuzz_target!(|ops: Vec<stayfast_sim::fuzzing::Op>| stayfast_sim::fuzzing::check(&ops));
