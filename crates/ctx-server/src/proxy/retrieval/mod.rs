//! Lets the model read what was cut, by tools that ctx adds to the request and answers itself.
//!
//! ```text
//! cut request + tools -> provider -> call of a tool -> its result from the history of the conversation
//!     -> the same request, the call and the result -> provider -> ... -> one answer for the client
//! ```
//!
//! The client sees neither the tools nor the calls. The tools are added while something of the
//! conversation is cut, from the first request on in which the cache breaks anyway.

mod answer;
mod rounds;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ctx_core::{Block, Message, RawJson, Role, Tokens, ToolCall, ToolResult, ToolSpec};
use ctx_dialect::wire::OutgoingUnit;
use ctx_hosted::{AssembledRequest, OutgoingMessage, short};

use super::Proxy;
use super::config::RetrievalBy;
use super::conversation::Conversation;
use super::prepare::RequestContext;
use super::provider_compaction::CompactedOriginals;
use super::units::RequestUnit;

pub(super) use rounds::{Exchange, retrieving};

/// The tool that returns messages by id.
pub(super) const EXPAND: &str = "ctx_expand";
/// The tool that searches in messages.
pub(super) const RECALL: &str = "ctx_recall";
pub(super) const NAMES: &[&str] = &[EXPAND, RECALL];

/// The part of the free window that the results of one answer may take.
const SHARE: f64 = 1.0 / 3.0;
/// The maximum size of the results of one answer.
const MOST: Tokens = Tokens(20_000);
/// The part of the window that postponed results may take in each request.
const POSTPONED_SHARE: f64 = 0.125;
/// Maximum number of answers with postponed calls that are remembered.
const MOST_POSTPONED: usize = 64;

/// The originals that the model can read in one answer.
#[derive(Clone, Debug)]
pub(super) struct Retrieval {
    conversation: Arc<Conversation>,
    /// The tokens left for results.
    room: Tokens,
    /// The id of the last message of the request.
    last: String,
    /// What a compaction of the provider in the request covers.
    originals: Option<CompactedOriginals>,
}

/// Calls with their results.
pub(super) type AnsweredCalls = Vec<(ToolCall, String)>;

/// The results of calls that came together with calls of the client's tools, by the id of one of
/// these, or by the message before the answer if they have no ids: they are sent together with its
/// result, in each request that has it.
#[derive(Debug, Default)]
pub(super) struct PostponedCalls {
    /// Oldest first.
    calls: Mutex<VecDeque<(String, AnsweredCalls)>>,
    /// The characters of these results in the last request.
    sent: AtomicUsize,
}

impl PostponedCalls {
    /// Creates it from those that were saved.
    pub(super) fn new(saved: Vec<(String, AnsweredCalls)>) -> Self {
        Self { calls: Mutex::new(saved.into()), sent: AtomicUsize::new(0) }
    }

    /// Returns all, oldest first.
    pub(super) fn all(&self) -> Vec<(String, AnsweredCalls)> {
        self.lock().iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(String, AnsweredCalls)>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, beside: String, answered: AnsweredCalls) {
        let mut all = self.lock();
        all.push_back((beside, answered));
        if all.len() > MOST_POSTPONED {
            all.pop_front();
        }
    }

    fn beside(&self, id: &str) -> Option<AnsweredCalls> {
        let all = self.lock();
        all.iter().find(|(beside, _)| beside == id).map(|(_, answered)| answered.clone())
    }

    /// Returns the tokens of the results in the last request.
    fn tokens(&self) -> Tokens {
        Tokens::saturating_from(self.sent.load(Ordering::Relaxed) as u64 / 3)
    }
}

impl Retrieval {
    pub(super) fn new(context: &RequestContext) -> Self {
        let (record, conversation) = (&context.record, context.conversation.clone());
        let free = record.window - record.sent_tokens - conversation.postponed.tokens();
        Self {
            conversation,
            room: free.scale(SHARE).min(MOST),
            last: context.last.clone(),
            originals: context.originals.clone(),
        }
    }

    /// Keeps the results of calls for later requests. `beside`: the id of a call of the client in
    /// the same answer; empty if the API has none (Gemini).
    async fn keep(&self, proxy: &Proxy, mut beside: String, mut answered: AnsweredCalls) {
        if beside.is_empty() {
            beside = after(&self.last);
        }
        // Such calls are named by their function and their order.
        for (n, (call, _)) in answered.iter_mut().enumerate() {
            if call.id.is_empty() {
                call.id = format!("{}#{}", call.name, n + 1).into();
            }
        }
        self.conversation.postponed.add(beside.clone(), answered.clone());
        let Some(store) = &proxy.conversations.store else { return };
        if let Err(error) = self.conversation.save_postponed(store, beside, answered).await {
            proxy.warn_of("store", &format!("other replicas do not know a result: {error}"));
        }
    }

    /// Limits the room for results that later requests repeat.
    fn postpone(&mut self, window: u64) {
        let most = Tokens::saturating_from(window).scale(POSTPONED_SHARE);
        self.room = self.room.min(most - self.conversation.postponed.tokens());
    }
}

/// Whether a request should have the tools, as far as its history is concerned.
pub(super) fn is_wanted(by: RetrievalBy, assembled: &AssembledRequest, units: usize) -> bool {
    let is_cut = || {
        let outgoing = &assembled.outgoing;
        outgoing.len() != units || outgoing.iter().any(|out| out.unchanged.is_none())
    };
    match by {
        RetrievalBy::Off => false,
        RetrievalBy::Tool => true,
        RetrievalBy::Auto => is_cut(),
    }
}

/// Returns the tools.
pub(super) fn tools() -> Vec<ToolSpec> {
    let spec = |name: &str, description: &str, parameters: serde_json::Value| ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: RawJson::from_text(parameters.to_string()),
    };
    vec![
        spec(
            EXPAND,
            "Returns an earlier message or tool result of this conversation word for word, if it \
             was shortened or replaced by a summary. Use it instead of repeating a call.",
            serde_json::json!({
                "type": "object",
                "properties": {
                    "id": { "type": "string",
                        "description": "the id after `e:` in a summary, or in the note of a shortened result" },
                    "from": { "type": "integer",
                        "description": "the character to start from, for a text that was too long" }
                },
                "required": ["id"]
            }),
        ),
        spec(
            RECALL,
            "Finds earlier messages of this conversation that left the context, by words that \
             stand in them. Returns excerpts with their ids, oldest first.",
            serde_json::json!({
                "type": "object",
                "properties": { "query": { "type": "string" } },
                "required": ["query"]
            }),
        ),
    ]
}

/// A history with notes of what can be retrieved, and with the postponed calls.
#[derive(Debug, Default)]
pub(super) struct MarkedHistory {
    /// For each outgoing message another form, and a message that follows it.
    changes: Vec<(Option<Message>, Option<Message>)>,
}

impl MarkedHistory {
    pub(super) fn of(
        context: &RequestContext,
        assembled: &AssembledRequest,
        units: &[RequestUnit<'_>],
    ) -> Self {
        let postponed = &context.conversation.postponed;
        let mut sent = 0;
        let outgoing = &assembled.outgoing;
        let mut change = |(n, out): (usize, &OutgoingMessage)| {
            let before = |by: usize| outgoing.get(n.checked_sub(by)?);
            let asked = before(1).is_some_and(|out| out.message.tool_calls().next().is_some());
            let results = results_beside(postponed, out, before(2).filter(|_| asked));
            let all = results.iter().flat_map(Message::tool_results);
            sent += all.map(|result| result.plain_text().len()).sum::<usize>();
            let is_compaction = |of: &&CompactedOriginals| out.index == Some(of.at);
            let compaction = context.originals.as_ref().filter(is_compaction);
            let next = results.or_else(|| compaction.map(CompactedOriginals::note));
            (calls_beside(postponed, out, before(1)).or_else(|| noted(out, units)), next)
        };
        let changes = outgoing.iter().enumerate().map(&mut change).collect();
        postponed.sent.store(sent, Ordering::Relaxed);
        Self { changes }
    }

    /// Returns the outgoing history. A message and its unit in the body have the same index.
    pub(super) fn units<'a>(&'a self, assembled: &'a AssembledRequest) -> Vec<OutgoingUnit<'a>> {
        let mut units = Vec::with_capacity(assembled.outgoing.len());
        for (n, out) in assembled.outgoing.iter().enumerate() {
            let changes = self.changes.get(n);
            let form = changes.and_then(|(form, _)| form.as_ref());
            let next = changes.and_then(|(_, next)| next.as_ref());
            units.push(match (form, out.unchanged) {
                (Some(message), _) => OutgoingUnit::Message { message, of: out.index },
                (None, Some(at)) => OutgoingUnit::Unchanged(at),
                (None, None) => OutgoingUnit::Message { message: &out.message, of: out.index },
            });
            units.extend(next.map(|message| OutgoingUnit::Message { message, of: None }));
        }
        units
    }
}

/// Whether an outgoing history is the client's, apart from a note after a compaction.
pub(super) fn is_client_history(out: &[OutgoingUnit<'_>], units: &[RequestUnit<'_>]) -> bool {
    let notes = out.iter().filter(|out| matches!(out, OutgoingUnit::Message { of: None, .. }));
    let rest = out.iter().filter(|out| !matches!(out, OutgoingUnit::Message { of: None, .. }));
    let is_same = |(n, out): (usize, &OutgoingUnit<'_>)| matches!(out, OutgoingUnit::Unchanged(at) if *at == n);
    out.len() - notes.count() == units.len() && rest.enumerate().all(is_same)
}

/// Returns the key of calls in the answer after a message, if they have no ids.
fn after(id: &str) -> String {
    format!("after {id}")
}

/// Returns an answer with the calls that were postponed because of one of its calls. `before` is the
/// message before the answer.
fn calls_beside(
    postponed: &PostponedCalls,
    out: &OutgoingMessage,
    before: Option<&OutgoingMessage>,
) -> Option<Message> {
    let by_order = |_| postponed.beside(&after(&before?.id));
    let by_id = out.message.tool_calls().find_map(|call| postponed.beside(&call.id));
    let answered = by_id.or_else(|| out.message.tool_calls().next().and_then(by_order))?;
    let mut message = Message::clone(&out.message);
    message.blocks.extend(answered.into_iter().map(|(call, _)| Block::ToolCall(call)));
    Some(message)
}

/// Returns the results of postponed calls, which follow the result of the client's call. `before` is
/// the message before the answer with that call.
fn results_beside(
    postponed: &PostponedCalls,
    out: &OutgoingMessage,
    before: Option<&OutgoingMessage>,
) -> Option<Message> {
    let by_order = |_| postponed.beside(&after(&before?.id));
    let by_id = out.message.tool_results().find_map(|result| postponed.beside(&result.call_id));
    let answered = by_id.or_else(|| out.message.tool_results().next().and_then(by_order));
    let results = answered?.into_iter().map(|(call, text)| {
        Block::ToolResult(ToolResult {
            call_id: call.id,
            name: Some(call.name),
            content: vec![Block::text(text)],
            is_error: false,
        })
    });
    Some(Message::new(Role::ToolResult, results.collect()))
}

/// Returns a message with a note in each result that was shortened.
fn noted(out: &OutgoingMessage, units: &[RequestUnit<'_>]) -> Option<Message> {
    let original = units.get(out.index.filter(|_| out.unchanged.is_none())?)?.message();
    let before: Vec<_> = original.tool_results().collect();
    let id = short(&out.id);
    out.message.with_results(|n, result| {
        if before.get(n).is_none_or(|before| before.content == result.content) {
            return None;
        }
        let note = format!("[ctx: shortened; {EXPAND} with id {id} returns all of it]");
        let mut content = result.content.clone();
        match content.iter_mut().rev().find_map(|block| match block {
            Block::Text { text } => Some(text),
            _ => None,
        }) {
            Some(text) => text.extend(["\n", &note]),
            None => content.push(Block::text(note)),
        }
        Some(content)
    })
}
