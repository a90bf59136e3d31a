//! Who asked what, and which message answered it.

use ctx_core::{Message, Role};

use super::clip::width;
use super::prose;
use super::signal::{is_assent, is_praise};
use crate::Said;
use crate::text::{is_courtesy, sentences};

/// A message of the user and what followed until the next one.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// Where the user's message is; absent where the history begins inside a turn.
    pub(super) asked_at: Option<usize>,
    /// What the user wrote by hand.
    pub(super) ask: String,
    /// Whether that only agrees or tells the agent to go on.
    pub(super) is_assent: bool,
    /// The messages of the turn, from the user's on.
    pub(super) range: std::ops::Range<usize>,
    /// The last message of the agent that says something.
    pub(super) answer_at: Option<usize>,
}

impl Turn {
    /// Whether the user only greets or thanks.
    pub(super) fn is_courtesy(&self) -> bool {
        self.ask.len() < 200 && sentences(&self.ask).into_iter().all(is_courtesy)
    }

    /// Whether the user asks for nothing: agrees, praises, greets.
    pub(super) fn is_small_talk(&self) -> bool {
        let short = width(&self.ask) < 14 && !self.ask.contains(['?', '？']);
        self.is_assent
            || short
            || self.is_courtesy()
            || (self.ask.len() < 80 && is_praise(&self.ask))
    }
}

/// The turns of a history, in order.
pub(super) fn turns(said: &[Said]) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for (at, Said { message, .. }) in said.iter().enumerate() {
        if let Some(ask) = typed(message) {
            let is_assent = is_assent(&ask);
            turns.push(Turn {
                asked_at: Some(at),
                ask,
                is_assent,
                range: at..at,
                ..Turn::default()
            });
        } else if turns.is_empty() {
            turns.push(Turn { range: at..at, ..Turn::default() });
        }
        let Some(turn) = turns.last_mut() else { continue };
        turn.range.end = at + 1;
        if message.role == Role::Assistant && !message.plain_text().trim().is_empty() {
            turn.answer_at = Some(at);
        }
    }
    turns
}

/// What the user typed in a message.
pub(super) fn typed(message: &Message) -> Option<String> {
    if message.role != Role::User {
        return None;
    }
    // Blocks are looked at one by one: reminders come as blocks of their own.
    let mut out = String::new();
    for block in &message.blocks {
        if let ctx_core::Block::Text { text } = block
            && let Some(text) = prose::by_hand(text)
        {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(text.trim());
        }
    }
    (!out.is_empty()).then_some(out)
}
