//! Constraints, prohibitions and statements of the user.

use super::ExtractInput;
use super::agreement::agreement;
use super::note::Note;
use super::prose::passages;
use super::talk::WIDE;
use super::turns::Turn;
use crate::Field;
use ctx_text::Signal;
use ctx_text::output::is_error;
use ctx_text::output::root_cause;
use ctx_text::{clip_to_width, width};
use ctx_text::{marks, sentences};

/// Collects what the user demands or forbids, and what was agreed on.
pub(super) fn demands(
    job: &ExtractInput<'_>,
    turn: &Turn,
    previous: Option<&Turn>,
    recent: f32,
    out: &mut Vec<Note>,
) {
    let Some((at, said)) = turn.asked_at.and_then(|at| Some((at, job.messages.get(at)?))) else {
        return;
    };
    if let Some(note) = agreement(job, turn, previous) {
        out.push(note);
    }
    if turn.is_assent {
        return;
    }
    for passage in passages(&turn.ask) {
        for sentence in sentences(&passage.text) {
            // Pasted errors also say what must be.
            if is_error(sentence) {
                continue;
            }
            let signal = Signal::of(sentence);
            if signal.put_off {
                let text = clip_to_width(sentence, WIDE);
                out.push(Note::new(Field::NextSteps, text, &said.id, 0.6, at));
                continue;
            }
            if signal.demand
                && !signal.question
                && (signal.strict || !signal.chatter)
                && width(sentence) > if signal.strict { 5 } else { 16 }
            {
                let text = clip_to_width(sentence, WIDE);
                let weight = if signal.strict { 0.85 } else { 0.62 };
                out.push(Note::new(Field::Constraints, text, &said.id, weight, at));
            } else if signal.decision && !signal.question && chooses(sentence) {
                let text = clip_to_width(sentence, WIDE);
                out.push(Note::new(Field::Decisions, text, &said.id, 0.8, at));
            } else if !signal.question && tells(sentence) {
                let text = clip_to_width(sentence, WIDE);
                out.push(Note::new(Field::CriticalContext, text, &said.id, 0.45 * recent, at));
            }
        }
    }
    if let Some(cause) = root_cause(&turn.ask).filter(|line| line.contains(':')) {
        let text = clip_to_width(&cause, WIDE);
        out.push(Note::new(Field::CriticalContext, text, &said.id, 0.6 * recent, at));
    }
}

/// "Once instead of up to three times" is a count, not a choice.
fn chooses(sentence: &str) -> bool {
    !sentence.contains("instead of") || marks(sentence).contrast
}

/// Whether a statement of the user contains something that cannot be inferred.
fn tells(sentence: &str) -> bool {
    sentence.chars().any(|c| c.is_ascii_digit())
        || sentence.contains(['`', '/', '@'])
        || ["because", "因为"].iter().any(|why| sentence.contains(why))
}
