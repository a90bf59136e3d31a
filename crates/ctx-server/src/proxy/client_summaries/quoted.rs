//! Finds the conversation that a request for a summary has as text.

use std::sync::Arc;

use ctx_core::{Block, Entry, EntryId, Message, Role};
use ctx_dialect::wire::{QuotedHistory, SummaryRequest};
use ctx_hosted::HostedSession;
use serde_json::Value;

use super::super::Proxy;
use super::super::client_request::ClientRequest;
use super::super::conversation::Conversation;
use super::super::fingerprint::Fingerprint;
use super::{Remembered, SummarisedHistory, normalised, owner, summaries_in, summary_entry};

/// What is compared of a text, in characters. Clients shorten longer results of tools.
const COMPARED_CHARS: usize = 1_000;

/// A quoted history; its text, and what follows it, with single blanks.
#[derive(Debug)]
pub(super) struct Quote {
    text: String,
    rest: String,
    /// What the user said.
    asked: Vec<String>,
}

impl Quote {
    fn new(quoted: &QuotedHistory) -> Self {
        let (text, rest) = (normalised(&quoted.text), normalised(&quoted.rest));
        let asked = quoted.messages.iter().filter(|message| message.role == Role::User);
        Self { text, rest, asked: asked.map(Message::plain_text).collect() }
    }

    /// Whether a message is quoted: its texts and the arguments of its calls, or what the user said
    /// between lines that the client adds.
    pub(super) fn has(&self, message: &Message) -> bool {
        let said = message.plain_text();
        // Requests for summaries are conversations too.
        if SummaryRequest::begins(&said) {
            return false;
        }
        let texts = message.blocks.iter().flat_map(texts);
        let mut texts =
            texts.map(|text| beginning(&text)).filter(|text| !text.is_empty()).peekable();
        texts.peek().is_some() && texts.all(|text| self.text.contains(&text))
            || message.role == Role::User && self.asked.iter().any(|asked| says(&said, asked))
    }

    /// Whether the request has a summary, to be brought up to date.
    pub(super) fn has_summary(&self, summary: &Remembered) -> bool {
        [&self.rest, &self.text].iter().any(|text| text.contains(&summary.normalised))
    }

    /// Whether a history has all messages of the user.
    fn is_of(&self, history: &SummarisedHistory) -> bool {
        let messages = history.entries.iter().filter_map(|entry| entry.message().ok());
        let texts: Vec<String> = messages
            .flat_map(|message| message.blocks.iter().flat_map(texts).collect::<Vec<_>>())
            .collect();
        let is_known = |asked: &String| texts.iter().any(|text| text.contains(asked));
        !texts.is_empty() && self.asked.iter().all(is_known)
    }
}

/// Returns the conversation that a request has as text, and its quoted history: the whole one last
/// used in the session that the client names, or else the one of the same key with most messages of
/// the quote.
pub(super) async fn quoted_history(
    proxy: &Proxy,
    client_request: &ClientRequest,
    quoted: &QuotedHistory,
) -> Option<(Arc<Conversation>, SummarisedHistory)> {
    let query = client_request.query.as_deref();
    let (protocol, headers) = (client_request.protocol(), &client_request.headers);
    let named = Fingerprint::named(&proxy.salt, protocol, headers, query);
    if let Some(conversation) = named.and_then(|group| proxy.conversations.last_used(&group)) {
        let state = conversation.state.lock().await;
        let session = state.session.as_ref()?;
        let history = SummarisedHistory::whole(proxy, client_request, session).ok()?;
        return Some((conversation.clone(), history));
    }
    let quote = Quote::new(quoted);
    let earlier = proxy.client_summaries.of(&owner(proxy, client_request));
    let mut best: Option<(Arc<Conversation>, SummarisedHistory)> = None;
    for conversation in proxy.conversations.of_key(&Fingerprint::key(&proxy.salt, headers, query)) {
        let state = conversation.state.lock().await;
        let Some(session) = &state.session else { continue };
        let Ok(history) = SummarisedHistory::of(session, &earlier, Some(&quote)) else { continue };
        let least = best.as_ref().map_or(0, |(_, best)| best.entries.len());
        if history.entries.len() > least && quote.is_of(&history) {
            best = Some((conversation.clone(), history));
        }
    }
    best
}

/// Whether a message has the text on lines of its own, or after the time in brackets.
fn says(message: &str, text: &str) -> bool {
    let message = message.trim();
    let is_whole = |(at, _): (usize, &str)| {
        let (before, after) = (&message[..at], &message[at + text.len()..]);
        (before.is_empty() || before.ends_with('\n') || before.ends_with("] "))
            && (after.is_empty() || after.starts_with('\n'))
    };
    !text.is_empty() && message.match_indices(text).any(is_whole)
}

/// Returns a quoted history as it is in the request, whose own session this is.
pub(super) fn quoted_text(
    quoted: &QuotedHistory,
    session: &HostedSession,
    earlier: &[Arc<Remembered>],
) -> SummarisedHistory {
    let rest = Message::text(Role::User, &quoted.rest);
    let (mut entries, mut is_found) = (Vec::new(), false);
    for (nth, message) in std::iter::once(&rest).chain(&quoted.messages).enumerate() {
        let id = EntryId::from(format!("quote-{nth}"));
        let found = if is_found { Vec::new() } else { summaries_in(message, earlier) };
        is_found |= !found.is_empty();
        // What follows the history are instructions, if not a summary.
        match found.is_empty() {
            false => entries.push(Arc::new(summary_entry(&id, &found))),
            true if nth > 0 => entries.push(Arc::new(Entry::in_memory(id, message.clone()))),
            true => {}
        }
    }
    let (conversation, ledger) = (session.id.clone(), session.ledger.clone());
    SummarisedHistory { conversation, ledger, entries, bytes: quoted.text.len() }
}

/// Returns the texts of a block as they are quoted.
fn texts(block: &Block) -> Vec<String> {
    match block {
        Block::Text { text } => vec![text.clone()],
        Block::ToolResult(result) => vec![result.plain_text().into_owned()],
        Block::ToolCall(call) => match serde_json::from_str(call.arguments.as_str()) {
            Ok(Value::Object(arguments)) => arguments.values().map(Value::to_string).collect(),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Returns the beginning of a text, with single blanks.
fn beginning(text: &str) -> String {
    let part: String = text.chars().take(COMPARED_CHARS).collect();
    normalised(&part)
}
