//! Requests that apply to the current work only.

use crate::WordList;
use ctx_core::Chars;
use ctx_core::text::{Slice, head, tail};

/// Verbs at the beginning of a sentence that request one step of work.
static STEPS: WordList = WordList::new("request.verbs");

/// Words that may precede the verb.
static LEADS: WordList = WordList::new("request.leads");

/// Words that make it a permanent rule.
static RULES: WordList = WordList::new("request.rules");

/// Whether a sentence requests one step of the current work, and sets no rule for the rest of it:
/// "read lease.rs again in full", "keep them tiny", where *they* are being created.
pub fn is_step(sentence: &str) -> bool {
    let near = head(sentence, Chars(400)).to_lowercase();
    let mut words = near
        .split(|c: char| !(c.is_alphanumeric() || c == '\''))
        .filter(|word| !word.is_empty())
        .skip_while(|word| LEADS.contains(word));
    let first = words.next().unwrap_or_default();
    let mut rest = words.peekable();
    let these = || ["them", "these", "those"];
    let of_these = first == "keep" && rest.peek().is_some_and(|next| these().contains(next));
    (of_these || STEPS.contains(&first)) && !rest.any(|word| RULES.contains(&word))
}

/// Beginnings of a request for work, in languages without spaces.
static TASKS: WordList = WordList::new("request.tasks");

/// Whether a sentence asks for one piece of work, and not for a way of working.
#[must_use]
pub fn is_task(sentence: &str) -> bool {
    is_step(sentence) || TASKS.iter().any(|start| sentence.starts_with(start))
}

/// Whether the text at a position is part of an indirect question such as "where it should go" or
/// "what has to be done", which is not a demand.
pub fn is_asked_about(sentence: &str, at: usize) -> bool {
    static INDIRECT: WordList = WordList::new("request.indirect");
    let before = tail(sentence.slice(..at), Chars(60));
    let clause = before.rsplit([',', ';', ':', '.', '(', '\n']).next().unwrap_or_default();
    // At most four words are in between: "where those two new modules".
    let near = clause.split_whitespace().rev().take(6);
    near.into_iter().any(|word| INDIRECT.iter().any(|ask| word.eq_ignore_ascii_case(ask)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_no_rule() {
        for (sentence, step) in [
            ("Read lease.rs and queue.rs again in full before you go on, I want the text.", true),
            ("Keep them tiny.", true),
            ("please add a test, I want it to be short", true),
            ("Keep the API as it is.", false),
            ("Read every file in full before you change it.", false),
            ("Run the tests, always.", false),
            ("Prefer small functions.", false),
            ("Each command should have a test.", false),
            ("请读一下", false),
            ("", false),
        ] {
            assert_eq!(is_step(sentence), step, "{sentence}");
        }
    }

    #[test]
    fn what_is_to_be_found_out_is_told_from_what_is_demanded() {
        for (sentence, asked) in [
            ("locations where those modules should go", true),
            ("tell me what should be done", true),
            ("It should be small", false),
            ("I know where it is, it should be small", false),
        ] {
            let at = sentence.find("should").unwrap_or_default();
            assert_eq!(is_asked_about(sentence, at), asked, "{sentence}");
        }
    }
}
