#![no_main]
libfuzzer_sys::fuzz_target!(|ops: Vec<stayfast_pacer::fuzzing::Op>| stayfast_pacer::fuzzing::check(&ops));
