#![no_main]
libfuzzer_sys::fuzz_target!(|ops: Vec<stayfast_seal::fuzzing::Op>| stayfast_seal::fuzzing::check(&ops));
