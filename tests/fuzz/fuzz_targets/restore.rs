#![no_main]

#[path = "../../laws/engine/properties/mod.rs"]
mod properties;

libfuzzer_sys::fuzz_target!(|data: &[u8]| properties::restore(data));
