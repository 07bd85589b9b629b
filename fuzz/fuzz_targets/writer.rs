#![no_main]
libfuzzer_sys::fuzz_target!(|ops: Vec<stayfast_frame::fuzzing::Op>| stayfast_frame::fuzzing::check(&ops));
