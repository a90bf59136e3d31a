//! Answers the calls of the model.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ctx_core::text::{clip, head_bytes};
use ctx_core::{ContentHash, Counter, Message, Tokens, ToolCall};
use ctx_runtime::lookup::cited::message_text;
use serde_json::Value;

use super::super::provider_compaction::CompactedOriginals;
use super::{EXPAND, Retrieval, short};
use crate::hosted::{HistoryItem, HostedSession};

/// Maximum number of messages that one call returns.
const MOST_IDS: usize = 8;
/// Maximum number of excerpts.
const MOST_FOUND: usize = 6;
/// Characters of an excerpt before and after the word found.
const BEFORE: usize = 150;
const AFTER: usize = 350;
/// Maximum number of words of a query.
const MOST_WORDS: usize = 24;

const NO_ROOM: &str = "[ctx: the window has no room for it in this answer]";

impl Retrieval {
    /// Returns the result of a call, which takes its size from the room left.
    pub(super) async fn answer(&mut self, call: &ToolCall) -> String {
        let state = self.conversation.state.lock().await;
        let Some(session) = &state.session else { return NO_ROOM.to_owned() };
        // A model may write a number as a text, or a text as a number.
        let arguments: Value = serde_json::from_str(call.arguments.as_str()).unwrap_or_default();
        let argument = |name: &str| match &arguments[name] {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => String::new(),
        };
        let all = readable_messages(session, self.originals.as_ref());
        let text = match call.name == EXPAND {
            true => expanded(&all, &argument("id")),
            false => recalled(&all, &argument("query")),
        };
        let counter = session.ledger.counter();
        let fitted = fitted(&text, argument("from").parse().unwrap_or(0), self.room, counter);
        self.room -= counter.text(&fitted);
        fitted
    }
}

/// A message that the model can read.
struct ReadableMessage {
    id: String,
    message: Arc<Message>,
    /// Whether the request has it as it is.
    is_sent: bool,
}

/// Returns the messages of a conversation after those of the provider's compaction, oldest first.
fn readable_messages(
    session: &HostedSession,
    originals: Option<&CompactedOriginals>,
) -> Vec<ReadableMessage> {
    let sent: HashMap<_, _> =
        session.sent.messages.iter().map(|sent| (&sent.id, sent.hash)).collect();
    let hashes: HashSet<_> = sent.values().collect();
    let compacted = originals.into_iter().flat_map(CompactedOriginals::messages);
    let compacted = compacted.map(|(id, message)| {
        let is_sent = hashes.contains(&ContentHash::of(&message));
        ReadableMessage { id, message: Arc::new(message), is_sent }
    });
    let own = session.history.items().iter().filter_map(|HistoryItem { entry, .. }| {
        let is_same = |hash: &ContentHash| entry.hash().is_ok_and(|own| own == *hash);
        let is_sent = sent.get(entry.id()).is_some_and(is_same);
        let id = short(entry.id()).to_owned();
        Some(ReadableMessage { id, message: entry.message().ok()?, is_sent })
    });
    compacted.chain(own).collect()
}

/// Returns the messages that a call names.
fn expanded(all: &[ReadableMessage], id: &str) -> String {
    let parts = id.split(|c: char| c.is_whitespace() || "[],;#".contains(c));
    let ids = parts.map(|id| id.trim_start_matches("e:")).filter(|id| !id.is_empty());
    let ids: Vec<&str> = ids.take(MOST_IDS).collect();
    let of = |wanted: &&str| {
        let known = all.iter().find(|known| known.id.eq_ignore_ascii_case(short(wanted)))?;
        Some(original(&known.message))
    };
    let texts: Vec<_> = ids
        .iter()
        .map(|id| {
            of(id).unwrap_or_else(|| {
                format!("[ctx: this conversation has no message {:?}]", clip(id, 40))
            })
        })
        .collect();
    if texts.is_empty() {
        return format!("[ctx: {EXPAND} needs the `id` of a message]");
    }
    texts.join("\n\n")
}

/// Returns a message word for word; of a tool result, only its text.
fn original(message: &Message) -> String {
    let results: Vec<_> = message.tool_results().collect();
    match results.as_slice() {
        [only] if message.blocks.len() == 1 => only.plain_text().into_owned(),
        _ => message_text(message),
    }
}

/// Returns excerpts of the messages that have most of the rarest words, and are not in the request.
fn recalled(all: &[ReadableMessage], query: &str) -> String {
    let lower = query.to_lowercase();
    let mut words: Vec<&str> =
        lower.split(|c: char| !c.is_alphanumeric() && !"_-./".contains(c)).collect();
    words.retain(|word| word.chars().count() > 1);
    words.dedup();
    words.truncate(MOST_WORDS);
    let mut calls = HashMap::new();
    let mut texts = Vec::new();
    for ReadableMessage { id, message, is_sent } in all {
        for call in message.tool_calls() {
            calls.insert(call.id.clone(), format!("{} {}", call.name, call.arguments.as_str()));
        }
        if !is_sent {
            // A result is also found by its call.
            let call = message.tool_results().find_map(|result| calls.get(&result.call_id));
            let call = call.map(|call| format!("{call}\n")).unwrap_or_default();
            texts.push((id, message.role.name(), call + &original(message)));
        }
    }
    let found: Vec<Vec<Option<usize>>> = texts
        .iter()
        .map(|(_, _, text)| {
            let text = text.to_lowercase();
            words.iter().map(|word| text.find(word)).collect()
        })
        .collect();
    let rarity = |word: usize| {
        let count = found.iter().filter(|found| found[word].is_some()).count();
        (texts.len() as f64 / count.max(1) as f64).ln() + 0.1
    };
    let rarities: Vec<f64> = (0..words.len()).map(rarity).collect();
    let score = |found: &[Option<usize>]| -> f64 {
        found.iter().zip(&rarities).filter(|(at, _)| at.is_some()).map(|(_, rarity)| rarity).sum()
    };
    let mut ranked: Vec<usize> = (0..texts.len()).filter(|n| score(&found[*n]) > 0.0).collect();
    ranked.sort_by(|a, b| score(&found[*b]).total_cmp(&score(&found[*a])).then(b.cmp(a)));
    let excerpts = ranked.into_iter().take(MOST_FOUND).map(|n| {
        let (id, role, text) = &texts[n];
        let rarest = (0..words.len())
            .filter(|word| found[n][*word].is_some())
            .max_by(|a, b| rarities[*a].total_cmp(&rarities[*b]));
        let at = rarest.and_then(|word| found[n][word]).unwrap_or_default();
        let chars = head_bytes(text, at).chars().count();
        let excerpt = text.chars().skip(chars.saturating_sub(BEFORE)).take(BEFORE + AFTER);
        format!("[e:{id}] {role}: {}", excerpt.collect::<String>())
    });
    let excerpts: Vec<_> = excerpts.collect();
    match excerpts.is_empty() {
        true => "[ctx: no earlier message has these words]".to_owned(),
        false => excerpts.join("\n\n"),
    }
}

/// Returns a text from a character on, cut to the room left.
fn fitted(text: &str, from: usize, room: Tokens, counter: &Counter) -> String {
    let rest: String = text.chars().skip(from).collect();
    let tokens = counter.text(&rest);
    if tokens <= room {
        return rest;
    }
    let share = f64::from(room.0) / f64::from(tokens.0.max(1)) * 0.9;
    let count = rest.chars().count();
    let kept = (count as f64 * share) as usize;
    if kept == 0 {
        return NO_ROOM.to_owned();
    }
    let part: String = rest.chars().take(kept).collect();
    let next = from + kept;
    format!("{part}\n[ctx: {} more characters, from {next} on]", count - kept)
}
