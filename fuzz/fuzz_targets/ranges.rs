#![no_main]
libfuzzer_sys::fuzz_target!(|ops: stayfast_ranges::fuzzing::Ops<stayfast_ranges::fuzzing::range_set::Op>| {
    stayfast_ranges::fuzzing::range_set::check(&ops.0)
});
