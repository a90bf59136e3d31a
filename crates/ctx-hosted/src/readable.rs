//! Reads the messages of a session again: by id, or by their words.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use ctx_core::{ContentHash, Message};
use ctx_runtime::lookup::cited::message_text;
use ctx_search::lexical::{Bm25, Delta, pieces, score};
use ctx_search::search::terms_of;
use serde::Serialize;

use super::{HistoryItem, HostedSession};

/// Maximum number of messages that [`ReadableMessages::expand`] returns.
const MOST_IDS: usize = 8;
/// Maximum number of excerpts.
const MOST_FOUND: usize = 6;
/// The constants of [`ctx_search::SearchSettings`]: the pieces are of similar length.
const BM25: Bm25 = Bm25 { k1: 1.2, b: 0.4 };

/// The messages of a session, oldest first.
pub struct ReadableMessages(Vec<ReadableMessage>);

struct ReadableMessage {
    id: String,
    message: Arc<Message>,
    /// Whether the last request has it as it is.
    is_sent: bool,
}

/// A message by its id; no text if there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Expanded {
    /// The id, as asked for.
    pub id: String,
    /// Its text.
    pub text: Option<String>,
}

impl ReadableMessages {
    /// Returns the messages of a session after `compacted`, which a provider has compacted.
    pub fn of(session: &HostedSession, compacted: impl Iterator<Item = (String, Message)>) -> Self {
        let sent: HashMap<_, _> =
            session.sent.messages.iter().map(|sent| (&sent.id, sent.hash)).collect();
        let hashes: HashSet<_> = sent.values().collect();
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
        Self(compacted.chain(own).collect())
    }

    /// Returns the messages with these ids: one id or several, with or without `[e:`.
    pub fn expand(&self, ids: &str) -> Vec<Expanded> {
        let parts = ids.split(|c: char| c.is_whitespace() || "[],;#".contains(c));
        let ids = parts.map(|id| id.trim_start_matches("e:")).filter(|id| !id.is_empty());
        let text = |wanted: &str| {
            let known = self.0.iter().find(|m| m.id.eq_ignore_ascii_case(short(wanted)))?;
            Some(original(&known.message))
        };
        ids.take(MOST_IDS).map(|id| Expanded { id: id.to_owned(), text: text(id) }).collect()
    }

    /// Returns excerpts of the messages that match a query best and are not in the request, in the order
    /// of the conversation: of two values, the later one is in force.
    pub fn recall(&self, query: &str) -> Vec<String> {
        let (mut index, mut rows) = (Delta::default(), Vec::new());
        let mut calls = HashMap::new();
        for (place, ReadableMessage { message, is_sent, .. }) in self.0.iter().enumerate() {
            for call in message.tool_calls() {
                calls.insert(call.id.clone(), format!("{} {}", call.name, call.arguments.as_str()));
            }
            if *is_sent {
                continue;
            }
            // A result is also found by its call.
            let call = message.tool_results().find_map(|result| calls.get(&result.call_id));
            for piece in pieces(&original(message)) {
                index.add(rows.len() as u32, call.map_or("", |call| call), piece);
                rows.push((place, piece.to_owned()));
            }
        }
        let mut scores = vec![0.0; rows.len()];
        score(&terms_of(query), &[&index], BM25, &mut scores);
        let mut best: BTreeMap<usize, usize> = BTreeMap::new();
        for row in (0..rows.len()).filter(|row| scores[*row] > 0.0) {
            let known = best.entry(rows[row].0).or_insert(row);
            *known = if scores[row] > scores[*known] { row } else { *known };
        }
        let mut best: Vec<usize> = best.into_values().collect();
        best.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(b.cmp(a)));
        best.truncate(MOST_FOUND);
        best.sort_unstable();
        let excerpt = |row: usize| {
            let (place, piece) = &rows[row];
            let ReadableMessage { id, message, .. } = &self.0[*place];
            format!("[e:{id}] {}: {}", message.role.name(), piece.trim())
        };
        best.into_iter().map(excerpt).collect()
    }
}

/// Returns a message word for word; of a tool result, only its text.
fn original(message: &Message) -> String {
    let results: Vec<_> = message.tool_results().collect();
    match results.as_slice() {
        [only] if message.blocks.len() == 1 => only.plain_text().into_owned(),
        _ => message_text(message),
    }
}

/// Returns an id without leading zeros.
pub fn short(id: &str) -> &str {
    let short = id.trim_start_matches('0');
    if short.is_empty() { "0" } else { short }
}

#[cfg(test)]
mod tests {
    use ctx_core::{Block, RawJson, Role, ToolCall};

    use super::*;

    fn messages(all: &[Message]) -> ReadableMessages {
        let readable = |(n, message): (usize, &Message)| {
            let message = Arc::new(message.clone());
            ReadableMessage { id: format!("{n:x}"), message, is_sent: false }
        };
        ReadableMessages(all.iter().enumerate().map(readable).collect())
    }

    fn call(id: &str, arguments: &str) -> Message {
        let call = ToolCall::new(id, "bash", RawJson::from_text(arguments));
        Message::new(Role::Assistant, vec![Block::ToolCall(call)])
    }

    #[test]
    fn a_question_finds_the_message_that_answers_it_among_many_with_its_common_words() {
        let code = "fn only_that(id: u32) -> Option<u32> { with(id).on(that) }\n".repeat(40);
        let mut all: Vec<_> = (0..30).map(|_| Message::text(Role::User, code.as_str())).collect();
        let log = format!("{code}canary deployment dep-8fk2m1qz is on 5 % of the traffic\n{code}");
        all.insert(7, Message::text(Role::User, log));
        let found = messages(&all).recall("With which id do I roll back that canary deployment?");
        assert!(found.iter().any(|found| found.contains("dep-8fk2m1qz")), "{found:?}");
    }

    #[test]
    fn a_later_value_stands_after_an_earlier_one() {
        let all = [
            Message::text(Role::User, "The schema version is 41."),
            Message::text(Role::User, "Something else about harbours."),
            Message::text(Role::User, "After the migration of the schema: its version is 42 now."),
        ];
        let found = messages(&all).recall("schema version");
        assert_eq!(found.len(), 2);
        assert!(found[0].starts_with("[e:0] user: ") && found[0].contains("41"), "{found:?}");
        assert!(found[1].contains("42"), "{found:?}");
    }

    #[test]
    fn a_result_is_found_by_its_call() {
        let all = [
            call("c1", r#"{"command":"cat deploy/ledger.toml"}"#),
            Message::tool_result("c1", "listen = 7412"),
            Message::text(Role::User, "Thanks."),
        ];
        let found = messages(&all).recall("ledger");
        assert!(found.iter().any(|found| found.contains("7412")), "{found:?}");
        assert!(messages(&all).recall("harbour").is_empty());
        assert!(messages(&all).recall("").is_empty());
    }
}
