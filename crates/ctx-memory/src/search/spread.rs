//! What was said just before and just after counts too.

use super::turns::Turns;

/// Adds to each score the share `spread` of those of the turns before and after in its session. A
/// question and its answer share few words, and only one of them has those that are asked for.
pub(crate) fn spread(scores: &[f32], turns: &Turns, share: f32) -> Vec<f32> {
    if share <= 0.0 {
        return scores.to_vec();
    }
    let of = |row: u32| scores.get(row as usize).copied().unwrap_or_default();
    let all = scores.iter().zip(turns.neighbours());
    all.map(|(score, (before, after))| score + share * (of(before) + of(after))).collect()
}
