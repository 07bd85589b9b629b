#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stayfast_sim::fuzzing::tcp::check(&stayfast_sim::fuzzing::tcp::ops(bytes)));
