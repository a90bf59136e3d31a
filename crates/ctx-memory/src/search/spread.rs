//! What was said around it counts too.

use super::turns::Turns;

/// A turn that asks something gives this many times its share to the turn after it. A question and
/// its answer share few words, and most often it is the question that has those one looks for.
const ASKED: f32 = 1.5;

/// Any other turn gives this part of the share to the turn after it.
const TOLD: f32 = 0.5;

/// Turns two away get this part.
const FAR: f32 = 0.25;

/// Adds to each score what the turns around it in its session give: the share `share` and the parts of
/// it above. What shares no word with the query itself becomes a match by that.
pub(crate) fn spread(scores: &[f32], turns: &Turns, share: f32) -> Vec<f32> {
    if share <= 0.0 || share.is_nan() {
        return scores.to_vec();
    }
    let of = |row: u32| scores.get(row as usize).copied().unwrap_or_default();
    let (asked, told, far) = (share * ASKED, share * TOLD, share * FAR);
    let around = |row: u32| {
        let (before, after) = (turns.before(row), turns.after(row));
        let forth = if turns.asks(before) { asked } else { told };
        let far_ones = of(turns.before(before)) + of(turns.after(after));
        forth * of(before) + share * of(after) + far * far_ones
    };
    (0u32..).zip(scores).map(|(row, score)| score + around(row)).collect()
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
    use crate::search::speaker::asks;

    fn turns(said: &[(&str, &str)]) -> Turns {
        let mut turns = Turns::default();
        for (session, content) in said {
            let id = SegmentId::of(session, &Role::User, content);
            turns.add(id, session, Timestamp(1), asks(content));
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
    fn a_turn_gives_to_those_around_it_and_most_to_what_answers_it() {
        let told = turns(&[("s", "a"), ("s", "b"), ("s", "c"), ("s", "d"), ("s", "e"), ("s", "f")]);
        near(&spread(&[0.0, 0.0, 1.0, 0.0, 0.0, 0.0], &told, 0.4), &[0.1, 0.4, 1.0, 0.2, 0.1, 0.0]);
        let asked = turns(&[("s", "a"), ("s", "b"), ("s", "c？"), ("s", "d"), ("s", "e")]);
        near(&spread(&[0.0, 0.0, 1.0, 0.0, 0.0], &asked, 0.4), &[0.1, 0.4, 1.0, 0.6, 0.1]);
        near(&spread(&[0.0, 1.0], &told, 0.0), &[0.0, 1.0]);
    }

    #[test]
    fn sessions_that_alternate_in_the_archive_stay_apart() {
        let turns = turns(&[("s", "a?"), ("t", "b"), ("s", "c"), ("t", "d")]);
        near(&spread(&[1.0, 0.0, 0.0, 0.0], &turns, 0.4), &[1.0, 0.0, 0.6, 0.0]);
    }

    #[test]
    fn the_best_of_a_session_lifts_its_other_matches_only() {
        let turns = turns(&[("s", "a"), ("s", "b"), ("s", "c"), ("t", "d")]);
        let mut scores = [2.0, 1.0, 0.0, 1.0];
        share_best(&mut scores, &turns, 0.5);
        near(&scores, &[3.0, 2.0, 0.0, 1.5]);
    }
}
