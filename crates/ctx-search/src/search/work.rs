//! What differs in an archive of an agent's work, where most messages are calls and their results.

use super::speaker::Speakers;
use super::turns::Turns;
use crate::lexical::Scores;

/// The share of the score of the user's request that is added to each match among the messages
/// after it: what was read and run for a request is found by its words.
const REQUEST: f32 = 0.3;

/// The factor for the lower one of a call and its result: either leads to the other.
const PAIR: f32 = 0.7;

/// Adds a share of the score of the user's request to each match that is not by the user.
pub(super) fn share_request(bm25: &Scores, lexical: &mut Scores, turns: &Turns) {
    lexical.update(|row, score| {
        if *score > 0.0 {
            *score += REQUEST * turns.request_of(row).map_or(0.0, |request| bm25.get(request));
        }
    });
}

/// Lowers the score of a result or of the message before it, whichever has less. `rows` are sorted.
pub(super) fn part_pairs(rows: &[u32], scores: &mut [f32], turns: &Turns, speakers: &Speakers) {
    for at in 0..rows.len() {
        if !speakers.is_tool(rows[at]) {
            continue;
        }
        let before = turns.neighbours_of(rows[at])[0].and_then(|row| rows.binary_search(&row).ok());
        let Some(before) = before else { continue };
        let lower = if scores[before] < scores[at] { before } else { at };
        scores[lower] *= PAIR;
    }
}

#[cfg(test)]
mod tests {
    use ctx_core::{Role, Timestamp};

    use super::*;
    use crate::SegmentId;
    use crate::search::Speaker;

    #[test]
    fn matches_gain_from_their_request_and_one_of_a_call_and_its_result_loses() {
        let (mut turns, mut speakers) = (Turns::default(), Speakers::default());
        let roles = [Role::User, Role::Assistant, Role::ToolResult, Role::Assistant];
        for (n, role) in roles.iter().enumerate() {
            let id = SegmentId::of("s", role, &n.to_string());
            turns.add(id, "s", Timestamp(1), *role == Role::User);
            speakers.add(Speaker::new(role, None));
        }
        let (mut bm25, mut lexical) = (Scores::default(), Scores::default());
        bm25.reset(4);
        lexical.reset(4);
        for (row, score) in [(0, 2.0), (1, 1.0), (2, 3.0)] {
            bm25.set(row, score);
            lexical.set(row, score);
        }
        share_request(&bm25, &mut lexical, &turns);
        let mut scores: Vec<f32> = (0..4).map(|row| lexical.get(row)).collect();
        assert_eq!(scores, [2.0, 1.0 + REQUEST * 2.0, 3.0 + REQUEST * 2.0, 0.0]);
        part_pairs(&[0, 1, 2, 3], &mut scores, &turns, &speakers);
        assert_eq!(scores, [2.0, (1.0 + REQUEST * 2.0) * PAIR, 3.0 + REQUEST * 2.0, 0.0]);
    }
}
