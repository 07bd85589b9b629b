#![no_main]
libfuzzer_sys::fuzz_target!(|ops: Vec<stayfast_recovery::fuzzing::Op>| stayfast_recovery::fuzzing::check(&ops));
