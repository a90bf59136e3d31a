//! Plans which messages a trim drops.

use std::collections::HashMap;

use ctx_core::Tokens;

/// The input of a trim for one message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TrimRow {
    /// Its tokens.
    pub(crate) tokens: Tokens,
    /// Messages of one group, a tool call and its results, are trimmed together.
    pub(crate) group: u32,
    /// Whether it must not be trimmed.
    pub(crate) protected: bool,
    /// Its relevance to the query; 0 if it does not match.
    pub(crate) score: f32,
}

/// Returns the positions of the messages to trim so that `over` tokens are freed. `None` is a
/// message that was already dropped.
///
/// The order is the same as in OpenClaw's memory extension. Protected messages stay, with their
/// group. Then the least relevant groups are trimmed, the oldest of equals first. A group is as
/// relevant as its best message.
pub(crate) fn plan_trim(rows: &[Option<TrimRow>], over: Tokens) -> Vec<usize> {
    let mut groups: HashMap<u32, TrimGroup> = HashMap::new();
    for (at, row) in rows.iter().enumerate().filter_map(|(at, row)| Some((at, row.as_ref()?))) {
        let group = groups.entry(row.group).or_default();
        group.members.push(at);
        group.tokens += row.tokens;
        group.protected |= row.protected;
        group.score = group.score.max(row.score);
    }
    let may_go = |group: &TrimGroup| !group.protected && group.tokens > Tokens::ZERO;
    let mut groups: Vec<TrimGroup> = groups.into_values().filter(may_go).collect();
    groups.sort_by(|a, b| a.score.total_cmp(&b.score).then(a.members.cmp(&b.members)));
    let mut freed = Tokens::ZERO;
    let mut plan = Vec::new();
    for group in groups {
        if freed >= over {
            break;
        }
        freed += group.tokens;
        plan.extend(group.members);
    }
    plan.sort_unstable();
    plan
}

/// A tool call and its results, or a single message.
#[derive(Debug, Default)]
struct TrimGroup {
    members: Vec<usize>,
    tokens: Tokens,
    protected: bool,
    score: f32,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn row(group: u32, tokens: u32, score: f32) -> Option<TrimRow> {
        Some(TrimRow { tokens: Tokens(tokens), group, protected: false, score })
    }

    fn kept(score: f32) -> Option<TrimRow> {
        Some(TrimRow { protected: true, ..row(900, 10, score).unwrap() })
    }

    fn positions(rows: &[Option<TrimRow>], over: u32) -> Vec<usize> {
        plan_trim(rows, Tokens(over))
    }

    #[test]
    fn the_least_relevant_are_trimmed_first_and_the_oldest_of_equals() {
        let rows = [row(0, 10, 0.4), row(1, 10, 0.0), row(2, 10, 9.0), row(3, 10, 0.0)];
        assert_eq!(positions(&rows, 1), [1]);
        assert_eq!(positions(&rows, 11), [1, 3]);
        assert_eq!(positions(&rows, 21), [0, 1, 3]);
    }

    #[test]
    fn a_call_and_its_results_are_trimmed_together_by_their_best_score() {
        let rows = [row(0, 10, 0.0), row(1, 10, 0.1), row(0, 50, 0.2), row(2, 5, 9.0)];
        assert_eq!(positions(&rows, 5), [1]);
        assert_eq!(positions(&rows, 11), [0, 1, 2]);
    }

    #[test]
    fn protected_messages_stay_even_if_nothing_else_is_left() {
        assert_eq!(positions(&[kept(0.0), row(1, 10, 3.0), kept(0.0), None], 1_000), [1]);
    }

    proptest! {
        #[test]
        fn whole_groups_are_trimmed_until_enough_and_never_protected_ones(
            rows in proptest::collection::vec(
                proptest::option::of((0u32..12, 0u32..500, any::<bool>(), 0.0f32..10.0)), 0..60),
            over in 0u32..5_000,
        ) {
            let rows: Vec<Option<TrimRow>> = rows.into_iter().map(|row| {
                row.map(|(group, tokens, protected, score)| TrimRow {
                    tokens: Tokens(tokens), group, protected: protected && group % 3 == 0, score,
                })
            }).collect();
            let gone = plan_trim(&rows, Tokens(over));
            let protected = |group| rows.iter().flatten().any(|r| r.group == group && r.protected);
            for (at, row) in rows.iter().enumerate() {
                let Some(row) = row else { continue };
                if gone.contains(&at) {
                    prop_assert!(!protected(row.group));
                    for (other, same) in rows.iter().enumerate() {
                        if same.is_some_and(|same| same.group == row.group) {
                            prop_assert!(gone.contains(&other));
                        }
                    }
                }
            }
            let size = |at: &usize| rows[*at].map_or(0, |row| row.tokens.0);
            let freed: u32 = gone.iter().map(size).sum();
            let free: u32 = rows.iter().flatten().filter(|r| !protected(r.group))
                .map(|r| r.tokens.0).sum();
            prop_assert!(freed >= over.min(free));
        }
    }
}
