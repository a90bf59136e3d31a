//! Which sessions go.

use std::path::PathBuf;

use ctx_core::Timestamp;

use super::Why;
use crate::lifecycle::Maintenance;

/// What is known of one session.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) key: String,
    pub(super) session_id: String,
    /// When its entry was last written.
    pub(super) updated_at: Timestamp,
    /// When something last happened in it; `None` where nobody knows.
    pub(super) last: Option<Timestamp>,
    pub(super) is_subagent: bool,
    pub(super) transcript: Where,
}

/// Where a session's transcript is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Where {
    /// In the folder of sessions, for this session alone.
    Here(PathBuf),
    /// Somewhere else, or another session has it as well. It is not moved.
    Elsewhere,
    /// Nowhere.
    Gone,
}

/// Which sessions go, by their places in `known`, oldest first, and why.
pub(super) fn leaving(
    known: &[Known],
    limits: &Maintenance,
    subagents: Option<i64>,
    now: Timestamp,
) -> Vec<(usize, Why)> {
    let mut oldest: Vec<usize> = (0..known.len()).collect();
    // One of which nobody knows when it was used counts as used just now.
    oldest.sort_by_key(|at| (known[*at].last.unwrap_or(now), *at));
    let is_over = |at: &usize| {
        let age = now.0.saturating_sub(known[*at].last?.0);
        let done = subagents.filter(|_| known[*at].is_subagent);
        if age > limits.prune_after.millis() {
            Some(Why::Age)
        } else if done.is_some_and(|after| age > after) {
            Some(Why::Subagent)
        } else {
            None
        }
    };
    let over = oldest.iter().filter(|at| is_over(at).is_some()).count();
    let mut too_many = (known.len() - over).saturating_sub(limits.max_entries);
    let mut leaving = Vec::new();
    for at in oldest {
        match is_over(&at) {
            Some(why) => leaving.push((at, why)),
            None if too_many > 0 => {
                too_many -= 1;
                leaving.push((at, Why::Count));
            }
            None => {}
        }
    }
    leaving
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000;

    fn known(key: &str, days_ago: Option<i64>) -> Known {
        Known {
            key: key.into(),
            session_id: key.into(),
            updated_at: Timestamp(0),
            last: days_ago.map(|days| Timestamp(100 * DAY - days * DAY)),
            is_subagent: key.starts_with("sub"),
            transcript: Where::Gone,
        }
    }

    fn plan(known: &[Known], most: usize) -> Vec<(&str, Why)> {
        let limits = Maintenance { max_entries: most, ..Maintenance::default() };
        let leaving = leaving(known, &limits, Some(3_600_000), Timestamp(100 * DAY));
        leaving.into_iter().map(|(at, why)| (&*known[at].key, why)).collect()
    }

    #[test]
    fn what_is_older_than_the_limit_goes_and_then_the_oldest_of_too_many() {
        let all = [
            known("a", Some(2)),
            known("b", Some(31)),
            known("c", Some(30)),
            known("d", Some(1)),
            known("e", Some(90)),
        ];
        assert_eq!(plan(&all, 500), [("e", Why::Age), ("b", Why::Age)]);
        assert_eq!(plan(&all, 2), [("e", Why::Age), ("b", Why::Age), ("c", Why::Count)]);
        let all_but_the_newest =
            [("e", Why::Age), ("b", Why::Age), ("c", Why::Count), ("a", Why::Count)];
        assert_eq!(plan(&all, 1), all_but_the_newest);
    }

    #[test]
    fn a_subagent_that_is_done_goes_after_an_hour() {
        let all = [known("sub 1", Some(1)), known("sub 2", Some(0)), known("sub 3", Some(40))];
        assert_eq!(plan(&all, 500), [("sub 3", Why::Age), ("sub 1", Why::Subagent)]);
    }

    #[test]
    fn what_has_no_time_or_one_in_the_future_is_young() {
        let all = [known("a", None), known("b", Some(-400)), known("c", Some(1))];
        assert_eq!(plan(&all, 500), []);
        assert_eq!(plan(&all, 2), [("c", Why::Count)]);
    }
}
