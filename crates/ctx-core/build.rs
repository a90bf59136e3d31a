//! Writes the vocabulary o200k as one file of 0.9 MB, in the order of the ranks: the 256 tokens of
//! one byte, then of each token the ranks of the two that it is made of, of 18 bits each.

#[cfg(feature = "o200k")]
fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let vocabulary = &bpe_openai::o200k_base().bpe;
    let tokens: Vec<_> =
        (0..vocabulary.num_tokens() as u32).map(|rank| vocabulary.token_bytes(rank)).collect();
    let ranks: std::collections::HashMap<_, _> = tokens.iter().copied().zip(0_u128..).collect();
    let (bytes, pairs) = tokens.split_at(256);
    let mut file = bytes.concat();
    assert_eq!(file.len(), 256, "the first tokens have one byte");
    assert!(tokens.len() <= 1 << 18 && pairs.len().is_multiple_of(2));
    let halves: Vec<u128> = pairs
        .iter()
        .map(|token| {
            assert!(token.len() < 256, "the length of a token is a byte");
            let of = |part| ranks.get(part).filter(|&&rank| rank < ranks[token]);
            (1..token.len())
                .find_map(|at| Some(of(&token[..at])? | of(&token[at..])? << 18))
                .expect("a token is made of two with lower ranks")
        })
        .collect();
    for two in halves.chunks_exact(2) {
        file.extend_from_slice(&(two[0] | two[1] << 36).to_le_bytes()[..9]);
    }
    let folder = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    std::fs::write(std::path::Path::new(&folder).join("o200k"), file)
}

#[cfg(not(feature = "o200k"))]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
