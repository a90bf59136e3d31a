//! What was said around it counts too.

use super::turns::Turns;

/// Adds to each score the share `share` of those of the turns before and after in its session. A
/// question and its answer share few words, and only one of them has those that one looks for. What
/// shares no word with the query itself becomes a match by that.
pub(crate) fn spread(scores: &[f32], turns: &Turns, share: f32) -> Vec<f32> {
    if share <= 0.0 || share.is_nan() {
        return scores.to_vec();
    }
    let of = |row: u32| scores.get(row as usize).copied().unwrap_or_default();
    let all = scores.iter().zip(turns.neighbours());
    all.map(|(score, (before, after))| score + share * (of(before) + of(after))).collect()
}

/// Adds to each match the share `share` of the best score in its session: a session that is about what
/// is looked for is about it in more than one turn.
pub(crate) fn share_best(scores: &mut [f32], turns: &Turns, share: f32) {
    if share <= 0.0 || share.is_nan() {
        return;
    }
    let mut best = vec![0f32; turns.session_count()];
    let sessions = turns.sessions();
    for (score, &session) in scores.iter().zip(sessions) {
        let best = &mut best[session as usize];
        *best = best.max(*score);
    }
    for (score, &session) in scores.iter_mut().zip(sessions) {
        if *score > 0.0 {
            *score += share * best[session as usize];
        }
    }
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
            turns.add(id, session, Timestamp(1));
        }
        turns
    }

    fn near(found: &[f32], expected: &[f32]) {
        let is_near = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-6;
        assert!(
            found.len() == expected.len() && found.iter().zip(expected).all(is_near),
            "{found:?}"
        );
    }

    #[test]
    fn a_turn_gives_to_the_ones_before_and_after_it() {
        let told = turns(&[("s", "a"), ("s", "b"), ("s", "c"), ("s", "d")]);
        near(&spread(&[0.0, 0.0, 1.0, 0.0], &told, 0.4), &[0.0, 0.4, 1.0, 0.4]);
        near(&spread(&[1.0, 0.0, 1.0, 0.0], &told, 0.25), &[1.0, 0.5, 1.0, 0.25]);
        near(&spread(&[0.0, 1.0], &told, 0.0), &[0.0, 1.0]);
    }

    #[test]
    fn sessions_that_alternate_in_the_archive_stay_apart() {
        let turns = turns(&[("s", "a"), ("t", "b"), ("s", "c"), ("t", "d")]);
        near(&spread(&[1.0, 0.0, 0.0, 0.0], &turns, 0.4), &[1.0, 0.0, 0.4, 0.0]);
    }

    #[test]
    fn the_best_of_a_session_lifts_its_other_matches_only() {
        let turns = turns(&[("s", "a"), ("s", "b"), ("s", "c"), ("t", "d")]);
        let mut scores = [2.0, 1.0, 0.0, 1.0];
        share_best(&mut scores, &turns, 0.5);
        near(&scores, &[3.0, 2.0, 0.0, 1.5]);
    }
}
