#![no_main]
libfuzzer_sys::fuzz_target!(|ops: Vec<stayfast_ranges::fuzzing::reassembler::Op>| {
    stayfast_ranges::fuzzing::reassembler::check(&ops)
});
