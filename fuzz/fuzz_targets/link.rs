#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stayfast_tests::schedule::check_bytes(bytes));
