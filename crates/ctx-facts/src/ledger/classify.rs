//! What a sentence is: a rule, a decision, a request, a statement.

use ctx_core::text::head_chars;
use ctx_text::{Marks, Sentence, Signal, WordList, is_assent, is_courtesy, is_step, width};

use super::passages::ASSISTANT;
use super::personal::personal;
use crate::{FactKind, Statement};

/// Words that make a general statement a demand: "from now on".
static AHEAD: WordList = WordList::new("demand.ahead");
static REASONS: WordList = WordList::new("decision.reasons");
/// Words by which a question asks for something: "can you", "please".
static ADDRESSED: WordList = WordList::new("request.addressed");
/// Words before what was chosen: "use ", "I'll ".
static CHOICES: WordList = WordList::new("decision.choices");

/// A sentence below this weight says something only if it gives a value.
const SHORT: usize = 12;

/// A remark such as "wow, it works" is shorter.
const REMARK: usize = 52;

/// Returns the kind of fact that a sentence of the user states; `None` if it says little.
#[must_use]
pub fn stated_kind(sentence: &Sentence<'_>) -> Option<FactKind> {
    Some(classified(sentence)?.0)
}

/// Classifies a sentence of the user: its kind, its weight, and whether it withdraws something.
pub(super) fn classified(sentence: &Sentence<'_>) -> Option<(FactKind, f32, bool)> {
    let Sentence { text: sentence, marks } = *sentence;
    // "Should we always use pnpm?" demands nothing; "can you not touch it?" does.
    let asks = marks.question && sentence.trim_end().ends_with(['?', '？']);
    let (kind, weight) = match marks {
        _ if is_courtesy(sentence) || is_assent(sentence) => return None,
        _ if asks && !is_addressed(sentence) => (FactKind::Request, 0.52),
        Marks { standing: true, .. } if demands(&marks, sentence) => (FactKind::Pinned, 0.9),
        Marks { constraint: true, .. } => (FactKind::Constraint, 0.7),
        _ if personal(sentence).is_some() => {
            (FactKind::Personal, personal(sentence).unwrap_or_default().max(ASSISTANT + 0.01))
        }
        Marks { decision: true, .. } | Marks { contrast: true, .. } => (FactKind::Decision, 0.6),
        Marks { revokes: true, .. } => (FactKind::Constraint, 0.6),
        Marks { question: true, .. } => (FactKind::Question, 0.6),
        _ if says_little(sentence) => return None,
        _ if states(sentence, &marks) => (FactKind::Statement, 0.55),
        _ => (FactKind::Request, 0.55),
    };
    Some((kind, weight, marks.revokes))
}

/// Whether a question asks for something: "can you never touch it?", "能不能用中文？".
fn is_addressed(question: &str) -> bool {
    let lower = question.to_lowercase();
    ADDRESSED.is_in(&lower)
}

static SUBJECTS: WordList = WordList::new("statement.subjects");

/// Whether a sentence says how something is, and asks for nothing.
fn states(sentence: &str, marks: &Marks) -> bool {
    let lower = head_chars(sentence, 24).to_lowercase();
    let first = lower.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let has_subject = SUBJECTS.contains(first)
        || SUBJECTS.iter().any(|word| !word.is_ascii() && lower.starts_with(word));
    let is_request = marks.request && !first.is_empty() && !has_subject || is_step(sentence);
    !is_request && (has_subject && !marks.request || Statement::of(sentence).is_copular())
}

/// Whether a sentence is a remark, or has no more than one content word: "can leave it".
fn says_little(sentence: &str) -> bool {
    let width = width(sentence.trim());
    let statement = Statement::of(sentence);
    (width < SHORT || statement.gist.words.len() < 2) && !statement.has_value()
        || width < REMARK && Signal::of(sentence).chatter
}

/// Whether a general statement is a demand, unlike "it crashes every time".
fn demands(marks: &Marks, sentence: &str) -> bool {
    let lower = sentence.to_ascii_lowercase();
    marks.constraint || marks.request || AHEAD.is_in(&lower)
}

/// Whether a sentence gives a reason.
#[must_use]
pub fn has_reason(sentence: &str) -> bool {
    let lower = sentence.to_ascii_lowercase();
    REASONS.is_in(&lower)
}

/// Whether a sentence with a word such as "chose" is a choice of its speaker, and not a description
/// of the code.
#[must_use]
pub fn chooses(sentence: &str) -> bool {
    let lower = sentence.to_ascii_lowercase();
    has_reason(sentence)
        || CHOICES.iter().any(|lead| lower.starts_with(lead) || lower.contains(&format!(" {lead}")))
}
