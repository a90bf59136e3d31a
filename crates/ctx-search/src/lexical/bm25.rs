//! BM25 scoring.

use super::{Corpus, Postings, Scores};

/// BM25's constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bm25 {
    /// Term frequency saturation.
    pub k1: f32,
    /// Length normalisation: 0 to 1.
    pub b: f32,
}

/// A query term.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryTerm {
    /// The normalised term.
    pub text: String,
    /// Its weight; 1 for a word that occurs once.
    pub weight: f32,
}

/// Longer pieces count as this long; a piece has 150 to 250 words.
const LONGEST: usize = 511;

/// Adds the score of every segment to `scores`, which has an element for each. Segments that share
/// no word with the query stay unchanged. The statistics cover all sources together.
pub fn score(query: &[QueryTerm], sources: &[&dyn Postings], bm25: Bm25, scores: &mut [f32]) {
    let (mut pieces, mut found) = (Scores::default(), Scores::default());
    found.reset(scores.len());
    score_rows(query, sources, bm25, &mut pieces, &mut found);
    found.drain(|row, score| scores[row as usize] = score);
}

/// Like [`score`], for the segments that share a word with the query. `found` has an element for
/// each; `pieces` is a scratch buffer.
pub(crate) fn score_rows(
    query: &[QueryTerm],
    sources: &[&dyn Postings],
    bm25: Bm25,
    pieces: &mut Scores,
    found: &mut Scores,
) {
    let corpus = sources.iter().fold(Corpus::default(), |sum, source| sum.and(source.corpus()));
    if corpus.pieces == 0 {
        return;
    }
    let norms = norms(corpus, bm25);
    let weights: Vec<f32> = query
        .iter()
        .map(|term| {
            let found = sources.iter().map(|source| source.frequency(&term.text)).sum();
            term.weight * rarity(corpus.pieces, found) * (bm25.k1 + 1.0)
        })
        .collect();
    for source in sources {
        let owners = source.owners();
        pieces.reset(owners.len());
        for (term, weight) in query.iter().zip(&weights) {
            source.each_block(&term.text, &mut |block| {
                for posting in block {
                    let count = f32::from(posting.count);
                    let norm = norms[usize::from(posting.length).min(LONGEST)];
                    if let Some(sum) = pieces.entry(posting.piece) {
                        *sum += weight * count / (count + norm);
                    }
                }
            });
        }
        pieces.drain(|piece, score| {
            let best = owners.get(piece as usize).and_then(|owner| found.entry(*owner));
            if let Some(best) = best {
                *best = best.max(score);
            }
        });
    }
}

/// Returns the inverse document frequency of a term that `found` of `all` pieces hold: more than 0.
pub(crate) fn rarity(all: u64, found: u64) -> f32 {
    let (all, found) = (all as f64, found as f64);
    (1.0 + (all - found + 0.5).max(0.0) / (found + 0.5)).ln() as f32
}

/// Returns the length term of BM25's denominator, by the length of the piece.
fn norms(corpus: Corpus, bm25: Bm25) -> [f32; LONGEST + 1] {
    let average = (corpus.words as f64 / corpus.pieces as f64).max(1.0) as f32;
    std::array::from_fn(|length| bm25.k1 * (1.0 - bm25.b + bm25.b * length as f32 / average))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexical::Delta;

    const BM25: Bm25 = Bm25 { k1: 1.2, b: 0.75 };

    fn term(text: &str) -> QueryTerm {
        QueryTerm { text: text.to_owned(), weight: 1.0 }
    }

    fn delta(texts: &[(u32, &str)]) -> Delta {
        let mut delta = Delta::default();
        texts.iter().for_each(|(segment, text)| delta.add(*segment, "", text));
        delta
    }

    fn scores(query: &[QueryTerm], sources: &[&dyn Postings]) -> [f32; 3] {
        let mut scores = [0.0; 3];
        score(query, sources, BM25, &mut scores);
        scores
    }

    #[test]
    fn a_score_matches_the_formula() {
        let delta = delta(&[(0, "cat dog"), (1, "dog dog bird fish"), (2, "bird")]);
        let found = scores(&[term("dog")], &[&delta]);
        // Three pieces of 7 words, two with the term: idf = ln(1 + 1.5 / 2.5).
        let idf = 1.6f32.ln();
        let part = |count: f32, length: f32| {
            idf * 2.2 * count / (count + 1.2 * (0.25 + 0.75 * length / (7.0 / 3.0)))
        };
        assert!((found[0] - part(1.0, 2.0)).abs() < 1e-6, "{found:?}");
        assert!((found[1] - part(2.0, 4.0)).abs() < 1e-6, "{found:?}");
        assert_eq!(found[2], 0.0);
    }

    #[test]
    fn a_segment_has_the_same_score_in_any_index() {
        let texts = [(0, "cat dog"), (1, "dog dog bird fish"), (2, "bird")];
        let query = [term("dog"), term("bird")];
        let (one, rest) = texts.split_at(1);
        assert_eq!(scores(&query, &[&delta(one), &delta(rest)]), scores(&query, &[&delta(&texts)]));
    }

    #[test]
    fn a_long_segment_is_as_good_as_the_best_of_its_pieces() {
        let long = format!("{}\nneedle", "hay ".repeat(400));
        let delta = delta(&[(0, &long), (1, &"hay ".repeat(400)), (2, "needle hay")]);
        let found = scores(&[term("needl")], &[&delta]);
        assert!(found[0] > 0.0 && found[1] == 0.0 && found[2] > 0.0, "{found:?}");
    }

    #[test]
    fn empty_queries_and_empty_indexes_have_no_matches() {
        assert_eq!(scores(&[], &[&delta(&[(0, "cat")])]), [0.0; 3]);
        assert_eq!(scores(&[term("cat")], &[&Delta::default()]), [0.0; 3]);
        // An owner beyond the scores is skipped.
        assert_eq!(scores(&[term("cat")], &[&delta(&[(9, "cat")])]), [0.0; 3]);
    }
}
