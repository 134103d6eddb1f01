#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tarsier_fuzz::run("far_sides", data));
