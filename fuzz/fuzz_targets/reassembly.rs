#![no_main]
libfuzzer_sys::fuzz_target!(|ops: stayfast_ranges::fuzzing::Ops<stayfast_ranges::fuzzing::reassembler::Op>| {
    stayfast_ranges::fuzzing::reassembler::check(&ops.0)
});
