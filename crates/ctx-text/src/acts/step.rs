//! Requests that apply to the current work only.

use crate::WordList;
use ctx_core::Chars;
use ctx_core::text::head;

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
    (of_these || STEPS.contains(first)) && !rest.any(|word| RULES.contains(word))
}

/// Beginnings of a request for work, in languages without spaces.
static TASKS: WordList = WordList::new("request.tasks");

/// Whether a sentence asks for one piece of work, and not for a way of working.
#[must_use]
pub fn is_task(sentence: &str) -> bool {
    is_step(sentence) || TASKS.begins(sentence)
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
}
