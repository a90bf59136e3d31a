//! Notes of what the user and the agent said.

use std::collections::HashMap;

use ctx_core::{Block, EntryId, Role};

use super::note::{Note, QUESTION};
use super::turns::{Turn, typed};
use super::voice::{Voice, decides};
use super::{ExtractInput, prose};
use crate::Field;
use ctx_facts::FactKind;
use ctx_text::{Signal, clip_to_width, collapsed, without_injected};

/// The maximum width of a line, in Latin letters.
pub(super) const WIDE: usize = 320;
/// The width of a brief mention.
pub(super) const NARROW: usize = 180;

/// Collects notes of what the agent said.
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
            let text = said.message.plain_text();
            let text = without_injected(&text);
            if said.message.role != Role::Assistant || !prose::says_something(&text) {
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
        }
    }
    out
}

/// Returns notes of the required passages of the agent.
pub(super) fn of_facts(job: &ExtractInput<'_>) -> Vec<Note> {
    let places: HashMap<&EntryId, usize> =
        job.messages.iter().enumerate().map(|(at, said)| (&said.id, at)).collect();
    let passages = job.facts.required.iter().filter(|fact| fact.kind.is_passage() && !fact.by_user);
    let notes = passages.filter_map(|fact| {
        let at = *places.get(&fact.entry)?;
        let recent = 0.5 + 0.5 * (at as f32 / job.messages.len() as f32);
        let (field, label, weight) = match fact.kind {
            FactKind::Decision if decides(Signal::of(&fact.text), &fact.text) => {
                (Field::Decisions, "", 0.6)
            }
            FactKind::Decision => (Field::CriticalContext, "", 0.6),
            FactKind::Question => (Field::CriticalContext, QUESTION, 0.5 * recent),
            FactKind::Failure => (Field::CriticalContext, "", 0.3),
            _ => (Field::CriticalContext, "", 0.5 * recent),
        };
        let text = clip_to_width(&collapsed(&fact.text), 2 * WIDE);
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
