//! Writes the vocabulary o200k as one file of 1.6 MB, in the order of the ranks: of each token, its
//! length as a byte, then its bytes.

#[cfg(feature = "o200k")]
fn main() -> std::io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let vocabulary = &bpe_openai::o200k_base().bpe;
    let mut file = Vec::new();
    for rank in 0..vocabulary.num_tokens() as u32 {
        let token = vocabulary.token_bytes(rank);
        file.push(u8::try_from(token.len()).expect("a token has at most 255 bytes"));
        file.extend_from_slice(token);
    }
    let folder = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    std::fs::write(std::path::Path::new(&folder).join("o200k"), file)
}

#[cfg(not(feature = "o200k"))]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
