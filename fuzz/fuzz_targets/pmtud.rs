#![no_main]
libfuzzer_sys::fuzz_target!(|ops: stayfast_pmtud::fuzzing::Ops| stayfast_pmtud::fuzzing::check(&ops.0));
