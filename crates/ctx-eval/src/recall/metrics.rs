//! The metrics of a single ranking.

use super::report::CUTS;

/// The maximum rank that counts for the reciprocal rank.
pub(super) const DEEPEST: usize = 200;

/// The metrics of the ranking for one question.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct RankingScores {
    /// The share of the evidence among the first, by [`CUTS`].
    pub(super) recall: [f64; CUTS.len()],
    /// The reciprocal rank of the first turn that answers.
    pub(super) reciprocal: f64,
    pub(super) ndcg10: f64,
    /// The share of the evidence in the recall block.
    pub(super) coverage: f64,
    /// The recall of the rankings of tantivy and of SQLite's FTS5.
    pub(super) peers: [[f64; CUTS.len()]; 2],
    /// Of a repeated call: whether an earlier result is the same, and whether it is in the first 10.
    pub(super) repeated: Option<[f64; 2]>,
}

/// Judges `ranked` (indices of turns, best first) and `block` (the turns in the recall block).
/// `evidence` is sorted and not empty.
pub(super) fn judge(ranked: &[usize], block: &[usize], evidence: &[usize]) -> RankingScores {
    let answers = |place: &usize| evidence.binary_search(place).is_ok();
    let share = |places: &[usize]| {
        places.iter().filter(|place| answers(place)).count() as f64 / evidence.len() as f64
    };
    let first = |n: usize| &ranked[..n.min(ranked.len())];
    let gain = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
    let ideal: f64 = (0..evidence.len().min(10)).map(gain).sum();
    let ranks = first(10).iter().enumerate().filter(|(_, place)| answers(place));
    let gained: f64 = ranks.map(|(rank, _)| gain(rank)).sum();
    RankingScores {
        recall: CUTS.map(|cut| share(first(cut))),
        reciprocal: first(DEEPEST)
            .iter()
            .position(answers)
            .map_or(0.0, |rank| 1.0 / (rank as f64 + 1.0)),
        ndcg10: gained / ideal,
        coverage: share(block),
        ..RankingScores::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_hits_give_a_ranking_higher_scores() {
        let ranked: Vec<usize> = (0..60).collect();
        let worth = judge(&ranked, &[7, 1], &[1, 7, 30, 99]);
        assert_eq!(worth.recall, [0.0, 0.25, 0.5, 0.5, 0.75]);
        assert_eq!(worth.reciprocal, 0.5);
        assert_eq!(worth.coverage, 0.5);
        let ideal = 1.0 + 1.0 / 3f64.log2() + 0.5 + 1.0 / 5f64.log2();
        let gained = 1.0 / 3f64.log2() + 1.0 / 9f64.log2();
        assert!((worth.ndcg10 - gained / ideal).abs() < 1e-12);
    }

    #[test]
    fn a_perfect_ranking_scores_one_and_an_empty_one_zero() {
        let perfect = judge(&[3, 5], &[3, 5], &[3, 5]);
        assert_eq!(perfect.recall, [0.5, 1.0, 1.0, 1.0, 1.0]);
        assert_eq!((perfect.reciprocal, perfect.ndcg10, perfect.coverage), (1.0, 1.0, 1.0));
        assert_eq!(judge(&[], &[], &[3]), RankingScores::default());
    }
}
