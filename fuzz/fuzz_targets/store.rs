#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stayfast_store::fuzzing::check(&stayfast_store::fuzzing::ops(bytes)));
