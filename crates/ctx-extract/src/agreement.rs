//! The user's answers to questions of the agent.

use ctx_core::EntryId;

use super::ExtractInput;
use super::note::Note;
use super::talk::{NARROW, WIDE};
use super::turns::Turn;
use crate::Field;
use ctx_facts::chosen_option;
use ctx_text::{Signal, WordList, clip_to_width, collapsed, sentences, width};

/// Words of questions that propose something: "should i", "would you like".
static PROPOSALS: WordList = WordList::new("assent.proposals");
/// Words between two things of which a "yes" chooses neither.
static ALTERNATIVES: WordList = WordList::new("assent.alternatives");

/// What stands between a question and the answer of the user.
pub(super) const ANSWER: &str = " → user: ";

/// Builds a note from a short answer of the user to the agent: the question, the option, and the
/// answer.
pub(super) fn agreement(
    job: &ExtractInput<'_>,
    turn: &Turn,
    previous: Option<&Turn>,
) -> Option<Note> {
    let at = turn.asked_at?;
    let answer = job.messages.get(at).filter(|answer| !is_superseded(job, &answer.id))?;
    let asked = job.messages.get(previous?.answer_at?)?;
    let reply = collapsed(&turn.ask);
    let text = asked.message.plain_text();
    let chosen = chosen_option(&text, &reply);
    if width(&reply) > WIDE || !(turn.is_assent || chosen.is_some() || starts_agreeing(&reply)) {
        return None;
    }
    let lines = text.lines().rev().flat_map(|line| sentences(line.trim()));
    let question = lines.take(60).find(|s| Signal::of(s).question)?;
    let lower = question.to_lowercase();
    if chosen.is_none() && (ALTERNATIVES.is_in(&lower) || question.ends_with([':', '：'])) {
        return None;
    }
    let weight = if turn.is_assent { 0.6 } else { 0.9 };
    // "Do you know if it ran? yes" decides nothing.
    let decides = chosen.is_some() || PROPOSALS.is_in(&lower);
    let field = if decides { Field::Decisions } else { Field::CriticalContext };
    let words = clip_to_width(chosen.as_deref().unwrap_or(question), NARROW);
    let mut note = Note::new(field, format!("{words}{ANSWER}{reply}"), &answer.id, weight, at);
    note.cites.insert(0, asked.id.clone());
    Some(note)
}

/// Whether a later statement replaced or withdrew something in a message.
pub(super) fn is_superseded(job: &ExtractInput<'_>, id: &EntryId) -> bool {
    job.facts.superseded.iter().any(|old| old.fact.entry == *id)
}

fn starts_agreeing(reply: &str) -> bool {
    static STARTS: WordList = WordList::new("assent.starts");
    let lower = reply.chars().take(40).collect::<String>().to_lowercase();
    STARTS.iter().any(|start| {
        lower.strip_prefix(start).is_some_and(|rest| {
            !start.is_ascii() || !rest.starts_with(|c: char| c.is_ascii_alphanumeric())
        })
    })
}
