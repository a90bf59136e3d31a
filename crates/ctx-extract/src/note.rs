//! Candidate lines of a summary.

use std::collections::HashSet;
use std::sync::LazyLock;

use ctx_core::EntryId;
use regex::Regex;

use crate::Field;

/// The label of the newest request.
pub(super) const LATEST: &str = "Latest ask: ";
/// The label of the first request of the session.
pub(super) const FIRST: &str = "First: ";
/// The label of the requests in between.
pub(super) const EARLIER: &str = "Earlier: ";
/// The label of an unanswered question.
pub(super) const QUESTION: &str = "Open question: ";
/// The label of work that the user took back.
pub(super) const REVERTED: &str = "Reverted by the user: ";

/// The label of names that may be needed next.
pub(super) const NAMES: &str = "Names: ";

/// The labels of lines that list tokens.
pub(super) const TOKENS: [&str; 6] = [NAMES, "Errors: ", "Paths: ", "URLs: ", "IDs: ", "Numbers: "];

/// All labels. A labelled line gets a new label in the next summary.
pub(super) const LABELS: [&str; 5] = [LATEST, FIRST, EARLIER, QUESTION, REVERTED];

/// A candidate line of a summary.
#[derive(Clone, Debug)]
pub(super) struct Note {
    pub(super) field: Field,
    /// A fixed label before the text: `Latest: `.
    pub(super) label: &'static str,
    /// Its words.
    pub(super) text: String,
    /// The cited entries, newest last.
    pub(super) cites: Vec<EntryId>,
    /// Its weight, from 0 to about 1.
    pub(super) weight: f32,
    /// Its position in the history; lines of the previous summary come before all others.
    pub(super) order: i64,
    /// Its position among the notes of the same message.
    pub(super) place: usize,
    /// Whether these are the user's own words.
    pub(super) is_user: bool,
    /// Whether it matches the user's focus.
    pub(super) focused: bool,
}

impl Note {
    pub(super) fn new(field: Field, text: String, cite: &EntryId, weight: f32, at: usize) -> Self {
        let order = i64::try_from(at).unwrap_or(i64::MAX);
        let cites = vec![cite.clone()];
        Self {
            field,
            label: "",
            text,
            cites,
            weight,
            order,
            place: 0,
            is_user: false,
            focused: false,
        }
    }

    pub(super) fn labelled(mut self, label: &'static str) -> Self {
        self.label = label;
        self
    }
}

/// Removes the notes at these places.
pub(super) fn drop_all(notes: &mut Vec<Note>, gone: &HashSet<usize>) {
    let mut places = 0..;
    notes.retain(|_| places.next().is_none_or(|n| !gone.contains(&n)));
}

/// Whether a field holds tasks, in one state.
pub(super) fn is_work(field: Field) -> bool {
    matches!(field, Field::Done | Field::InProgress | Field::Blocked | Field::NextSteps)
}

/// A citation, or a tag that frames a summary or its sources.
static MARK: LazyLock<Regex> = LazyLock::new(|| {
    let tags = "summary|conversation|read-files|modified-files|open-tasks|rules-file[^<>]*";
    Regex::new(&format!(r"\[(e:[^\[\]<\n]{{0,160}})\]|<(/?(?:{tags}))>"))
        .expect("a test uses the pattern")
});

/// Disarms a quoted text, so that nothing in it passes for a citation or for a tag of the summary's
/// frame: both ends of such a mark become parentheses.
pub(super) fn without_marks(text: &str) -> String {
    // Nothing is removed: the text around a removed mark could join to form the same mark. The start
    // of a citation must not find its end after this text.
    MARK.replace_all(text, "($1$2)").replace("[e:", "(e:")
}

/// Normalises a text: removes case, white space and punctuation.
pub(super) fn normal(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_lose_both_of_their_ends() {
        for (text, expected) in [
            ("see [e:x], please", "see (e:x), please"),
            ("</summary> and <summary>", "(/summary) and (summary)"),
            ("<conversation></conversation>", "(conversation)(/conversation)"),
            ("</read-files></modified-files>", "(/read-files)(/modified-files)"),
            ("[e:a][e:b] [1] <b>", "(e:a)(e:b) [1] <b>"),
            ("never closed [e:x", "never closed (e:x"),
            ("[e:[e:x]]", "(e:(e:x)]"),
            ("[e:<summary>]", "(e:(summary)]"),
            ("<<summary>>", "<(summary)>"),
            ("</summary", "</summary"),
            ("Vec<Summary> é[é", "Vec<Summary> é[é"),
            ("", ""),
        ] {
            let safe = without_marks(text);
            assert_eq!(safe, expected, "{text}");
            assert_eq!(without_marks(&safe), safe, "{text}");
        }
    }
}
