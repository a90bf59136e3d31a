//! Spreads scores to neighbouring turns and within sessions.

use super::turns::Turns;
use crate::lexical::Scores;

/// Sets in `to` each score plus `share` times the scores of the previous and next turn in its
/// session. A question and its answer share few words, and only one of them may match the query. A
/// turn that shares no word with the query can become a match this way.
pub(super) fn spread(scores: &Scores, turns: &Turns, share: f32, to: &mut Scores) {
    if share <= 0.0 || share.is_nan() {
        scores.iter().for_each(|(row, score)| to.set(row, score));
        return;
    }
    for (row, _) in scores.iter() {
        let near = turns.neighbours_of(row).into_iter().flatten();
        near.chain([row]).for_each(|row| to.set(row, 0.0));
    }
    let of = |row: Option<u32>| row.map_or(0.0, |row| scores.get(row));
    to.update(|row, score| {
        let [before, after] = turns.neighbours_of(row);
        *score = scores.get(row) + share * (of(before) + of(after));
    });
}

/// Adds `share` times the best score in its session to each match: a session about the query's
/// topic has more than one relevant turn.
pub(super) fn share_best(scores: &mut Scores, turns: &Turns, share: f32) {
    if share <= 0.0 || share.is_nan() {
        return;
    }
    let mut best = vec![0f32; turns.last_of.len()];
    let sessions = &turns.sessions;
    for (row, score) in scores.iter() {
        let best = &mut best[sessions[row as usize] as usize];
        *best = best.max(score);
    }
    scores.update(|row, score| {
        if *score > 0.0 {
            *score += share * best[sessions[row as usize] as usize];
        }
    });
}

#[cfg(test)]
mod tests {
    use ctx_core::{Role, Timestamp};

    use super::*;
    use crate::SegmentId;

    fn turns(said: &[(&str, &str)]) -> Turns {
        let mut turns = Turns::default();
        for (session, content) in said {
            let id = SegmentId::of(session, &Role::User, content);
            turns.add(id, session, Timestamp(1), true);
        }
        turns
    }

    fn of(values: &[f32]) -> Scores {
        let mut scores = Scores::default();
        scores.reset(values.len());
        let some = (0..).zip(values).filter(|(_, value)| **value > 0.0);
        some.for_each(|(row, value)| scores.set(row, *value));
        scores
    }

    fn spread_of(values: &[f32], turns: &Turns, share: f32) -> Vec<f32> {
        let mut to = of(&vec![0.0; values.len()]);
        spread(&of(values), turns, share, &mut to);
        (0..values.len() as u32).map(|row| to.get(row)).collect()
    }

    fn near(found: &[f32], expected: &[f32]) {
        let is_near = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-6;
        assert!(
            found.len() == expected.len() && found.iter().zip(expected).all(is_near),
            "{found:?}"
        );
    }

    #[test]
    fn a_turn_passes_score_to_its_neighbours() {
        let told = turns(&[("s", "a"), ("s", "b"), ("s", "c"), ("s", "d")]);
        near(&spread_of(&[0.0, 0.0, 1.0, 0.0], &told, 0.4), &[0.0, 0.4, 1.0, 0.4]);
        near(&spread_of(&[1.0, 0.0, 1.0, 0.0], &told, 0.25), &[1.0, 0.5, 1.0, 0.25]);
        near(&spread_of(&[0.0, 1.0], &told, 0.0), &[0.0, 1.0]);
    }

    #[test]
    fn sessions_that_alternate_in_the_archive_stay_separate() {
        let turns = turns(&[("s", "a"), ("t", "b"), ("s", "c"), ("t", "d")]);
        near(&spread_of(&[1.0, 0.0, 0.0, 0.0], &turns, 0.4), &[1.0, 0.0, 0.4, 0.0]);
    }

    #[test]
    fn the_best_score_of_a_session_raises_only_its_other_matches() {
        let turns = turns(&[("s", "a"), ("s", "b"), ("s", "c"), ("t", "d")]);
        let mut scores = of(&[2.0, 1.0, 0.0, 1.0]);
        share_best(&mut scores, &turns, 0.5);
        let scores: Vec<f32> = (0..4).map(|row| scores.get(row)).collect();
        near(&scores, &[3.0, 2.0, 0.0, 1.5]);
    }
}
