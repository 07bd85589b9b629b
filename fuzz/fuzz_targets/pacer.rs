#![no_main]
libfuzzer_sys::fuzz_target!(|ops: stayfast_pacer::fuzzing::Ops| stayfast_pacer::fuzzing::check(&ops.0));
