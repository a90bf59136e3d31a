//! Splits a history into turns.

use ctx_core::{Message, Role};

use super::prose;
use ctx_facts::{CitedMessage, own_words};
use ctx_text::is_assent;

/// A user message and everything until the next one.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// The index of the user's message; `None` if the history begins inside a turn.
    pub(super) asked_at: Option<usize>,
    /// What the user typed.
    pub(super) ask: String,
    /// Whether it only agrees or tells the agent to continue.
    pub(super) is_assent: bool,
    /// The messages of the turn, from the user's on.
    pub(super) range: std::ops::Range<usize>,
    /// The last message of the agent that has text.
    pub(super) answer_at: Option<usize>,
}

/// Returns the turns of a history, in order.
pub(super) fn turns(said: &[CitedMessage]) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for (at, CitedMessage { message, .. }) in said.iter().enumerate() {
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

/// Returns what the user typed in a message.
pub(super) fn typed(message: &Message) -> Option<String> {
    let own = own_words(message);
    let typed = own.trim();
    (message.role == Role::User && prose::says_something(typed)).then(|| typed.to_owned())
}
