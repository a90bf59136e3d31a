//! Vectors without a model: words counted in buckets.

use async_trait::async_trait;
use ctx_core::{Embedder, Result};

use ctx_text::{TermKind, each_term};

/// The length of the vectors. all-MiniLM-L6-v2 has the same length, so a store can change between
/// the two.
const DIMENSIONS: usize = 384;

/// Hashes each word of a text into one of 384 buckets, with a sign, and normalises the vector.
/// Texts that share words are near each other. Alone it finds less than BM25 on labelled
/// conversations. With a weight of 0.3 it adds 4 points where messages are long, because it sees
/// them whole and BM25 sees one piece at a time. It changes nothing where they are short
/// (docs/memory.md).
#[derive(Clone, Copy, Debug, Default)]
pub struct HashEmbedder;

impl HashEmbedder {
    /// Returns the vector of a text; all zeros if it has no words.
    #[must_use]
    pub fn vector(self, text: &str) -> Vec<f32> {
        let mut vector = vec![0f32; DIMENSIONS];
        each_term(text, |term| {
            if term.kind == TermKind::Word {
                let hash = fnv1a(term.text);
                let sign = if hash >> 63 == 0 { 1.0 } else { -1.0 };
                vector[(hash % DIMENSIONS as u64) as usize] += sign;
            }
        });
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        if length > 0.0 {
            vector.iter_mut().for_each(|x| *x /= length);
        }
        vector
    }
}

#[async_trait]
impl Embedder for HashEmbedder {
    fn name(&self) -> &str {
        "hash"
    }

    fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        Ok(texts.iter().map(|text| self.vector(text)).collect())
    }
}

/// 64-bit FNV-1a: the same on every machine and in every version.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_share_words_are_near_each_other() {
        let vector = |text| HashEmbedder.vector(text);
        // The vectors have the length 1.
        let cosine = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let dog = vector("We adopted a dog");
        assert!(cosine(&dog, &vector("the dog that we were adopting")) > 0.9);
        assert!(cosine(&dog, &vector("The garden needs rain")) < 0.5);
        assert_eq!(dog.len(), DIMENSIONS);
        assert!(vector("?!").iter().all(|x| *x == 0.0));
    }

    #[test]
    fn vectors_are_the_same_on_every_machine() {
        assert_eq!(fnv1a("a"), 0xaf63_dc4c_8601_ec8c);
    }
}
