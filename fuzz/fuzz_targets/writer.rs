#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stayfast_frame::fuzzing::check(&stayfast_frame::fuzzing::ops(bytes)));
