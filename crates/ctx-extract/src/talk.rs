//! Notes of what the user and the agent said.

use std::collections::HashMap;

use ctx_core::{Block, EntryId, Role};

use super::ExtractInput;
use super::note::{Note, QUESTION};
use super::prose::{self, passages};
use super::turns::{Turn, typed};
use super::voice::{Voice, decides};
use crate::Field;
use ctx_facts::FactKind;
use ctx_text::{Signal, clip_to_width, sentences, without_injected};

/// The maximum width of a line, in Latin letters.
pub(super) const WIDE: usize = 320;
/// The width of a brief mention.
pub(super) const NARROW: usize = 180;

/// Collects notes of what the agent said, and of pinned messages.
pub(super) fn notes(job: &ExtractInput<'_>, turns: &[Turn]) -> Vec<Note> {
    let mut out = Vec::new();
    let works = job.messages.iter().any(|said| {
        let blocks = &said.message.blocks;
        blocks.iter().any(|block| matches!(block, Block::ToolCall(_) | Block::Bash(_)))
    });
    for (n, turn) in turns.iter().enumerate() {
        // Later statements are more likely to be still valid.
        let age = (n + 1) as f32 / turns.len() as f32;
        let recent = 0.65 + 0.35 * age;
        for at in turn.range.clone() {
            let Some(said) = job.messages.get(at) else { continue };
            if said.message.role == Role::Assistant {
                let text = said.message.plain_text();
                let text = without_injected(&text);
                if !prose::says_something(&text) {
                    continue;
                }
                let voice = Voice {
                    at,
                    id: &said.id,
                    is_answer: turn.answer_at == Some(at),
                    turns_since: u32::try_from(turns.len() - n - 1).unwrap_or(u32::MAX),
                    recent,
                    works,
                };
                voice.notes(&text, &mut out);
            } else if said.pinned {
                out.push(pinned(job, at));
            }
        }
    }
    announced(job, turns, &mut out);
    out
}

fn pinned(job: &ExtractInput<'_>, at: usize) -> Note {
    let said = &job.messages[at];
    let text = said.message.plain_text();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    Note::new(Field::Constraints, clip_to_width(&text, 2 * WIDE), &said.id, 1.0, at)
}

/// Adds what the agent announced, if the history ends in the middle of its work.
fn announced(job: &ExtractInput<'_>, turns: &[Turn], out: &mut Vec<Note>) {
    let Some(turn) = turns.last() else { return };
    let (Some(at), Some(last)) = (turn.answer_at, turn.range.clone().last()) else {
        return;
    };
    let ends_at_work = job.messages.get(last).is_some_and(|said| {
        said.message.role != Role::Assistant || said.message.tool_calls().next().is_some()
    });
    let Some(said) = job.messages.get(at).filter(|_| ends_at_work) else { return };
    let text = said.message.plain_text();
    let passages = passages(&text);
    let sentence =
        passages.iter().flat_map(|p| sentences(p.text)).rfind(|s| Signal::of(s).announces);
    // A line that ends in a colon introduces a call; it is not a passage of its own.
    let lead = || {
        text.lines()
            .rev()
            .map(str::trim)
            .find(|line| line.ends_with([':', '：']) && Signal::of(line).announces)
    };
    if let Some(words) = sentence.or_else(lead) {
        let words = clip_to_width(words.trim_end_matches([':', '：']), WIDE);
        if !words.is_empty() {
            out.push(Note::new(Field::InProgress, words, &said.id, 0.8, at));
        }
    }
}

/// Returns notes of the required passages of the agent.
pub(super) fn of_facts(job: &ExtractInput<'_>) -> Vec<Note> {
    let places: HashMap<&EntryId, usize> =
        job.messages.iter().enumerate().map(|(at, said)| (&said.id, at)).collect();
    let passages = job.facts.required.iter().filter(|fact| fact.kind.is_passage() && !fact.by_user);
    let notes = passages.filter_map(|fact| {
        let at = *places.get(&fact.entry)?;
        let signal = Signal::of(&fact.text);
        let recent = 0.5 + 0.5 * (at as f32 / job.messages.len() as f32);
        let (field, label, weight) = match fact.kind {
            FactKind::Decision if signal.announces => (Field::CriticalContext, "", 0.3),
            FactKind::Decision
                if (signal.decision || signal.finding) && !decides(signal, &fact.text) =>
            {
                (Field::CriticalContext, "", 0.6)
            }
            FactKind::Decision => (Field::Decisions, "", 0.6),
            FactKind::Personal => (Field::CriticalContext, "", 0.5 * recent),
            FactKind::Failure => (Field::CriticalContext, "", 0.3),
            FactKind::Question => (Field::CriticalContext, QUESTION, 0.5 * recent),
            _ => (Field::Constraints, "", 1.0),
        };
        let text = fact.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = clip_to_width(&text, 2 * WIDE);
        let weight = weight + 0.15 * fact.weight.clamp(0.0, 1.0);
        let note = Note::new(field, text, &fact.entry, weight, at).labelled(label);
        (!note.text.is_empty()).then_some(note)
    });
    notes.collect()
}

/// Returns what the user typed in a split turn, newest last: entry and text.
pub(super) fn requests(job: &ExtractInput<'_>) -> Vec<(EntryId, String)> {
    let prefix = job.turn_start.and_then(|start| job.messages.get(start..)).unwrap_or_default();
    prefix.iter().filter_map(|said| Some((said.id.clone(), typed(&said.message)?))).collect()
}
