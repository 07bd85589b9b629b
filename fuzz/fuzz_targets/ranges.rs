#![no_main]
libfuzzer_sys::fuzz_target!(|ops: Vec<stayfast_ranges::fuzzing::range_set::Op>| {
    stayfast_ranges::fuzzing::range_set::check(&ops)
});
