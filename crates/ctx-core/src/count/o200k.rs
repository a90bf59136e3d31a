//! OpenAI's o200k vocabulary, from a crate that embeds it and counts in linear time.

pub(super) fn tokens(text: &str) -> u64 {
    bpe_openai::o200k_base().count(text) as u64
}
