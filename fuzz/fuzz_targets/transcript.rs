//! Any bytes are either read as a transcript or refused, and every returned item can be used.
//!
//! `cargo +nightly fuzz run transcript`; sessions make a good corpus.
#![no_main]

use ctx_session::{Format, Transcript};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(transcript) = Transcript::from_bytes(data.to_vec()) else { return };
    for entry in transcript.context(None).expect("a sound tree").entries {
        entry.message().expect("bytes in memory do not change");
    }
    transcript.main_line().expect("a sound tree");
    transcript.stats().expect("bytes in memory do not change");
    transcript.inspect().expect("bytes in memory do not change");
    let mut copy = Vec::new();
    transcript.repaired_copy(&mut copy).expect("memory can be written");
    for format in [Format::PI, Format::OPENAI_CHAT, Format::ANTHROPIC, Format::PONYBUNNY] {
        transcript.convert(format, &mut copy).expect("memory can be written");
    }
});
