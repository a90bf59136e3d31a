//! What differs in an archive of an agent's work, where most messages are calls and their results.

use super::speaker::Speakers;
use super::turns::Turns;
use crate::lexical::Scores;

/// The share of the score of the user's request that is added to each match among the messages
/// after it: what was read and run for a request is found by its words.
const REQUEST: f32 = 0.3;

/// The factor for a message of the user, as answers are in calls, results and replies, and for each
/// better match with the same subject, which leads to the others.
const LOWER: f32 = 0.7;

/// The most better matches that count.
const MOST: usize = 8;

/// Adds a share of the score of the user's request to each match that is not by the user.
pub(super) fn share_request(bm25: &Scores, lexical: &mut Scores, turns: &Turns) {
    lexical.update(|row, score| {
        if *score > 0.0 {
            *score += REQUEST * turns.request_of(row).map_or(0.0, |request| bm25.get(request));
        }
    });
}

/// Lowers messages of the user, and calls and results by the number of better ones with the same
/// subject.
pub(super) fn vary(rows: &[u32], scores: &mut [f32], turns: &Turns, speakers: &Speakers) {
    let mut found = Vec::new();
    for (at, &row) in rows.iter().enumerate() {
        if speakers.is_user(row) {
            scores[at] *= LOWER;
            continue;
        }
        let result = turns.neighbours_of(row)[1];
        let subject = speakers.subject(row).or_else(|| speakers.subject(result?));
        found.extend(subject.map(|subject| (subject, at)));
    }
    found.sort_by(|(one, a), (two, b)| one.cmp(two).then(scores[*b].total_cmp(&scores[*a])));
    for same in found.chunk_by(|(one, _), (two, _)| one == two) {
        for (better, (_, at)) in same.iter().enumerate() {
            scores[*at] *= LOWER.powi(better.min(MOST) as i32);
        }
    }
}

#[cfg(test)]
mod tests {
    use ctx_core::{Role, Timestamp};

    use super::*;
    use crate::SegmentId;
    use crate::search::{Speaker, subject_of};

    #[test]
    fn matches_gain_from_their_request_and_repetitions_lose() {
        let (mut turns, mut speakers) = (Turns::default(), Speakers::default());
        let (said, ran) = (Role::Assistant, Role::ToolResult);
        let rows = [(&Role::User, None), (&said, None), (&ran, Some("a/b.rs")), (&said, None)];
        let rows = rows.into_iter().chain([(&ran, Some("a/b.rs old new")), (&said, None)]);
        for (n, (role, call)) in rows.enumerate() {
            let id = SegmentId::of("s", role, &n.to_string());
            turns.add(id, "s", Timestamp(1), *role == Role::User);
            speakers.add(Speaker::new(role, None, call.map(subject_of)));
        }
        let (mut bm25, mut lexical) = (Scores::default(), Scores::default());
        bm25.reset(6);
        lexical.reset(6);
        for (row, score) in [(0, 2.0), (1, 1.0), (2, 3.0), (4, 4.0), (5, 1.0)] {
            bm25.set(row, score);
            lexical.set(row, score);
        }
        share_request(&bm25, &mut lexical, &turns);
        let mut scores: Vec<f32> = (0..6).map(|row| lexical.get(row)).collect();
        let share = REQUEST * 2.0;
        assert_eq!(scores, [2.0, 1.0 + share, 3.0 + share, 0.0, 4.0 + share, 1.0 + share]);
        vary(&[0, 1, 2, 3, 4, 5], &mut scores, &turns, &speakers);
        let third = (1.0 + share) * LOWER.powi(2);
        let expected = [2.0 * LOWER, third, (3.0 + share) * LOWER, 0.0, 4.0 + share];
        assert_eq!(scores[..5], expected);
        assert_eq!(scores[5], 1.0 + share, "no call");
    }
}
