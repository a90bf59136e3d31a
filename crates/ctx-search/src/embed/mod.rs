//! Text embeddings: the text that is embedded, and the local embedders.

mod hash;
mod model;
mod text;
#[cfg(feature = "transformer")]
mod transformer;

pub use hash::HashEmbedder;
pub use model::{VectorModel, vectors_of};
pub use text::{LONGEST, embedded_text};
#[cfg(feature = "transformer")]
pub use transformer::TransformerEmbedder;

/// Returns the cosine similarity of two vectors, -1 to 1. NaN if the lengths differ, a vector is
/// zero, or it contains a NaN or infinity.
#[must_use]
pub fn cosine(one: &[f32], two: &[f32]) -> f32 {
    if one.len() != two.len() {
        return f32::NAN;
    }
    let sum = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let length = (sum(one, one) * sum(two, two)).sqrt();
    if length > 0.0 && length.is_finite() { sum(one, two) / length } else { f32::NAN }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cosine_matches_the_angle_or_is_nan() {
        assert_eq!(cosine(&[3.0, 0.0], &[2.0, 0.0]), 1.0);
        assert_eq!(cosine(&[1.0, 0.0], &[0.0, 5.0]), 0.0);
        for (one, two) in
            [(&[0.0, 0.0][..], &[1.0, 0.0][..]), (&[f32::NAN], &[1.0]), (&[1.0], &[1.0, 2.0])]
        {
            assert!(cosine(one, two).is_nan());
        }
    }
}
