//! Selects the sessions to remove.

use std::path::PathBuf;

use ctx_core::Timestamp;

use super::Reason;
use crate::lifecycle::Maintenance;

/// What is known of one session.
#[derive(Clone, Debug)]
pub(super) struct KnownSession {
    pub(super) key: String,
    pub(super) session_id: String,
    /// When its entry was last written.
    pub(super) updated_at: Timestamp,
    /// Time of the last activity; `None` if unknown.
    pub(super) last: Option<Timestamp>,
    pub(super) is_subagent: bool,
    pub(super) transcript: TranscriptLocation,
}

/// Where a session's transcript is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TranscriptLocation {
    /// In the folder of sessions, used by this session only.
    Here(PathBuf),
    /// In another folder, or shared with another session. It is not moved.
    Elsewhere,
    /// The file does not exist.
    Gone,
}

/// Returns the sessions to remove as indexes into `known`, oldest first, and why.
pub(super) fn leaving(
    known: &[KnownSession],
    limits: &Maintenance,
    subagents: Option<i64>,
    now: Timestamp,
) -> Vec<(usize, Reason)> {
    let mut oldest: Vec<usize> = (0..known.len()).collect();
    // A session without a known time counts as used just now.
    oldest.sort_by_key(|at| (known[*at].last.unwrap_or(now), *at));
    let is_over = |at: &usize| {
        let age = now.0.saturating_sub(known[*at].last?.0);
        let done = subagents.filter(|_| known[*at].is_subagent);
        if age > limits.prune_after.millis() {
            Some(Reason::Age)
        } else if done.is_some_and(|after| age > after) {
            Some(Reason::Subagent)
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
                leaving.push((at, Reason::Count));
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

    fn known(key: &str, days_ago: Option<i64>) -> KnownSession {
        KnownSession {
            key: key.into(),
            session_id: key.into(),
            updated_at: Timestamp(0),
            last: days_ago.map(|days| Timestamp(100 * DAY - days * DAY)),
            is_subagent: key.starts_with("sub"),
            transcript: TranscriptLocation::Gone,
        }
    }

    fn plan(known: &[KnownSession], most: usize) -> Vec<(&str, Reason)> {
        let limits = Maintenance { max_entries: most, ..Maintenance::default() };
        let leaving = leaving(known, &limits, Some(3_600_000), Timestamp(100 * DAY));
        leaving.into_iter().map(|(at, why)| (&*known[at].key, why)).collect()
    }

    #[test]
    fn expired_sessions_are_removed_first_then_the_oldest() {
        let all = [
            known("a", Some(2)),
            known("b", Some(31)),
            known("c", Some(30)),
            known("d", Some(1)),
            known("e", Some(90)),
        ];
        assert_eq!(plan(&all, 500), [("e", Reason::Age), ("b", Reason::Age)]);
        assert_eq!(plan(&all, 2), [("e", Reason::Age), ("b", Reason::Age), ("c", Reason::Count)]);
        let all_but_the_newest =
            [("e", Reason::Age), ("b", Reason::Age), ("c", Reason::Count), ("a", Reason::Count)];
        assert_eq!(plan(&all, 1), all_but_the_newest);
    }

    #[test]
    fn a_finished_subagent_is_removed_after_an_hour() {
        let all = [known("sub 1", Some(1)), known("sub 2", Some(0)), known("sub 3", Some(40))];
        assert_eq!(plan(&all, 500), [("sub 3", Reason::Age), ("sub 1", Reason::Subagent)]);
    }

    #[test]
    fn sessions_without_a_time_or_with_a_future_one_count_as_new() {
        let all = [known("a", None), known("b", Some(-400)), known("c", Some(1))];
        assert_eq!(plan(&all, 500), []);
        assert_eq!(plan(&all, 2), [("c", Reason::Count)]);
    }
}
