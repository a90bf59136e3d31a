//! Combines two rankings.

use super::Fusion;
/// The constant of reciprocal rank fusion, as published.
const RRF_K: f32 = 60.0;

/// Scales the scores to 0 to 1: the worst becomes 0, the best 1. If all are equal, all become 0.
/// NaN counts as the worst.
pub fn min_max(scores: &mut [f32]) {
    let (mut least, mut most) = (f32::INFINITY, f32::NEG_INFINITY);
    for score in scores.iter().filter(|score| score.is_finite()) {
        least = least.min(*score);
        most = most.max(*score);
    }
    let span = most - least;
    for score in scores {
        let counts = span > 0.0 && score.is_finite();
        *score = if counts { (*score - least) / span } else { 0.0 };
    }
}

/// Scales a score so that the best, `most`, becomes 1. For scores where 0 means no match: only that
/// stays 0.
pub(super) fn of_most(score: f32, most: f32) -> f32 {
    if most > 0.0 && score.is_finite() { score / most } else { 0.0 }
}

/// Combines lexical and vector scores of 0 to 1. `weight` is the weight of the vectors.
pub fn fuse(fusion: Fusion, lexical: &[f32], vector: &[f32], weight: f32) -> Vec<f32> {
    let weight = if weight.is_finite() { weight.clamp(0.0, 1.0) } else { 0.0 };
    match fusion {
        Fusion::Weighted => {
            let pairs = lexical.iter().zip(vector);
            pairs.map(|(lexical, vector)| (1.0 - weight) * lexical + weight * vector).collect()
        }
        Fusion::Rrf => {
            let mut fused = vec![0.0; lexical.len()];
            for (scores, weight) in [(lexical, 1.0 - weight), (vector, weight)] {
                if weight > 0.0 {
                    add_ranks(scores, weight, &mut fused);
                }
            }
            // Scales the best possible score, first in both rankings, to 1.
            fused.iter_mut().for_each(|score| *score *= RRF_K + 1.0);
            fused
        }
    }
}

fn add_ranks(scores: &[f32], weight: f32, fused: &mut [f32]) {
    let mut order: Vec<u32> = (0..scores.len() as u32).collect();
    order.retain(|&row| scores[row as usize] > 0.0);
    order.sort_by(|&a, &b| scores[b as usize].total_cmp(&scores[a as usize]));
    for (rank, &row) in order.iter().enumerate() {
        fused[row as usize] += weight / (RRF_K + 1.0 + rank as f32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_scaled_from_0_to_1() {
        let mut scores = [2.0, 4.0, 3.0, f32::NAN];
        min_max(&mut scores);
        assert_eq!(scores, [0.0, 1.0, 0.5, 0.0]);
        let mut alike = [3.0, 3.0];
        min_max(&mut alike);
        assert_eq!(alike, [0.0, 0.0]);
        min_max(&mut []);
    }

    #[test]
    fn every_match_stays_above_every_non_match() {
        assert_eq!(
            [0.0, 2.0, 4.0, f32::NAN].map(|score| of_most(score, 4.0)),
            [0.0, 0.5, 1.0, 0.0]
        );
        assert_eq!(of_most(0.0, 0.0), 0.0);
    }

    #[test]
    fn the_weight_is_the_share_of_the_vectors() {
        let fused = |weight| fuse(Fusion::Weighted, &[1.0, 0.0], &[0.0, 1.0], weight);
        assert_eq!(fused(0.0), [1.0, 0.0]);
        assert_eq!(fused(0.25), [0.75, 0.25]);
        assert_eq!(fused(f32::NAN), [1.0, 0.0]);
        assert_eq!(fused(7.0), [0.0, 1.0]);
    }

    #[test]
    fn only_ranks_count_and_not_distances() {
        let fused = fuse(Fusion::Rrf, &[1.0, 0.99, 0.0], &[0.1, 0.9, 0.0], 0.5);
        assert!((fused[0] - fused[1]).abs() < 1e-6, "first and second on either side: {fused:?}");
        assert_eq!(fused[2], 0.0, "no match on either side");
        let first = fuse(Fusion::Rrf, &[1.0], &[1.0], 0.5);
        assert!((first[0] - 1.0).abs() < 1e-6, "{first:?}");
    }
}
