//! Diversifies hits by maximal marginal relevance.

use foldhash::{HashSet, HashSetExt};

use super::Hit;
use crate::SegmentId;
use ctx_text::{TermKind, each_term};

/// Selects `limit` of `hits` by maximal marginal relevance: each next hit maximises `lambda` times
/// its score minus `1 - lambda` times its similarity to the hits selected before. Similarity is the
/// share of words that two segments have in common (Jaccard); `text` returns a segment's text. Pass
/// several times `limit` hits, best first, to have a choice. A `lambda` of 1 selects the best hits.
pub fn diversify(
    mut hits: Vec<Hit>,
    lambda: f32,
    limit: usize,
    mut text: impl FnMut(SegmentId) -> String,
) -> Vec<Hit> {
    if lambda >= 1.0 || lambda.is_nan() {
        hits.truncate(limit);
        return hits;
    }
    let mut rest: Vec<ScoredHit> = hits
        .into_iter()
        .map(|hit| ScoredHit { words: words(&text(hit.id)), hit, likeness: 0.0 })
        .collect();
    let mut taken = Vec::new();
    while taken.len() < limit {
        let worth = |c: &ScoredHit| lambda * c.hit.score - (1.0 - lambda) * c.likeness;
        // If several are equal, takes the first.
        let best = (0..rest.len())
            .reduce(|best, at| if worth(&rest[at]) > worth(&rest[best]) { at } else { best });
        let Some(best) = best else { break };
        let next = rest.remove(best);
        for other in &mut rest {
            other.likeness = other.likeness.max(jaccard(&next.words, &other.words));
        }
        taken.push(next.hit);
    }
    taken
}

struct ScoredHit {
    hit: Hit,
    words: HashSet<String>,
    /// The highest similarity to a selected hit.
    likeness: f32,
}

fn words(text: &str) -> HashSet<String> {
    let mut words = HashSet::new();
    each_term(text, |term| {
        if term.kind == TermKind::Word && !words.contains(term.text) {
            words.insert(term.text.to_owned());
        }
    });
    words
}

fn jaccard(one: &HashSet<String>, two: &HashSet<String>) -> f32 {
    let shared = one.intersection(two).count();
    let all = one.len() + two.len() - shared;
    if all == 0 { 0.0 } else { shared as f32 / all as f32 }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::ScoreParts;

    /// Segments 0 and 1 say the same; 2 says something else and has a lower score.
    const TEXTS: [&str; 3] = ["we adopted a dog", "a dog was adopted", "the cat sleeps"];

    fn order(lambda: f32, limit: usize) -> Vec<u128> {
        let hit = |n: u128| Hit {
            id: SegmentId(Uuid::from_u128(n)),
            score: 1.0 - n as f32 / 10.0,
            parts: ScoreParts::default(),
        };
        let hits = diversify((0..3).map(hit).collect(), lambda, limit, |id| {
            TEXTS[id.0.as_u128() as usize].to_owned()
        });
        hits.into_iter().map(|hit| hit.id.0.as_u128()).collect()
    }

    #[test]
    fn similar_hits_are_ranked_later() {
        assert_eq!(order(0.5, 3), [0, 2, 1]);
        assert_eq!(order(0.5, 2), [0, 2]);
    }

    #[test]
    fn without_diversity_the_best_hits_are_selected() {
        assert_eq!(order(1.0, 2), [0, 1]);
        assert_eq!(order(f32::NAN, 9), [0, 1, 2]);
    }
}
