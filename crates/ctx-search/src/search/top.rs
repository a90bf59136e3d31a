//! Selects the highest scores.

/// Returns the indices of the highest scores that are above 0 and not below `least`, best first; of
/// equal scores, the lower index first. At most `limit`.
pub fn top(scores: &[f32], limit: usize, least: f32) -> Vec<u32> {
    top_rows((0..).zip(scores.iter().copied()), limit, least)
}

/// Returns the rows with the highest scores, as [`top`] does.
pub fn top_rows(scores: impl Iterator<Item = (u32, f32)>, limit: usize, least: f32) -> Vec<u32> {
    if limit == 0 {
        return Vec::new();
    }
    let better = |a: &(f32, u32), b: &(f32, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
    // Most scores are below the current threshold and cost one comparison.
    let room = limit.saturating_mul(2).max(64);
    let mut found: Vec<(f32, u32)> = Vec::new();
    let mut beats = 0f32;
    for (row, score) in scores {
        if !(score > beats && score >= least) {
            continue;
        }
        found.push((score, row));
        if found.len() >= room {
            found.select_nth_unstable_by(limit - 1, better);
            found.truncate(limit);
            // Later equal scores rank after it.
            beats = found[limit - 1].0;
        }
    }
    found.sort_unstable_by(better);
    found.truncate(limit);
    found.into_iter().map(|(_, row)| row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_come_first_and_equal_scores_by_index() {
        let scores = [0.5, 0.0, 0.9, f32::NAN, 0.5, -1.0, 0.9];
        assert_eq!(top(&scores, 10, 0.0), [2, 6, 0, 4]);
        assert_eq!(top(&scores, 3, 0.0), [2, 6, 0]);
        assert_eq!(top(&scores, 10, 0.6), [2, 6]);
        assert!(top(&scores, 0, 0.0).is_empty() && top(&[], 5, 0.0).is_empty());
        assert_eq!(top(&scores, usize::MAX, 0.0).len(), 4);
    }

    #[test]
    fn many_scores_are_ranked_as_by_a_full_sort() {
        let mut seed = 9u64;
        let scores: Vec<f32> = (0..5_000)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                ((seed >> 33) % 300) as f32
            })
            .collect();
        let mut all: Vec<u32> = (0..5_000).filter(|at| scores[*at as usize] > 0.0).collect();
        all.sort_by(|a, b| scores[*b as usize].total_cmp(&scores[*a as usize]).then(a.cmp(b)));
        for limit in [1, 20, 300, 4_000] {
            assert_eq!(top(&scores, limit, 0.0), all[..limit.min(all.len())], "{limit}");
        }
    }
}
