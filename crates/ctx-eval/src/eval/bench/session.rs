//! A session in the form that the bench uses: messages as text with their handles, and the places
//! at which the session is cut.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use ctx_core::{CallId, Counter, Entry, Message, Result, Role, Tokens};

use super::handles::HandleIds;
use crate::eval::text::{add_message, add_said};

/// The minimum number of tokens of the history before a cut.
pub(super) const LEAST_BEFORE: Tokens = Tokens(16_000);
/// The minimum number of tokens after a cut.
pub(super) const LEAST_AFTER: Tokens = Tokens(4_000);

/// The share of the budget for messages that the bench keeps verbatim beside an arm's summary.
const TAIL_SHARE: f64 = 0.25;

/// Who speaks in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    /// The user, or a host acting for the user.
    User,
    /// The agent.
    Agent,
    /// A tool.
    Tool,
    /// A summary of earlier history.
    Summary,
}

/// A message.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) entry: Arc<Entry>,
    pub(super) message: Arc<Message>,
    pub(super) speaker: Speaker,
    /// The text, call arguments and results; without thinking.
    pub(super) text: String,
    /// The tokens of the text.
    pub(super) tokens: Tokens,
    /// The handles in its text. Of a call, only the texts in its arguments count.
    pub(super) said: Vec<u32>,
    /// Whether a request was made right before it.
    pub(super) request: bool,
}

impl Item {
    /// Reads an entry.
    pub(super) fn of(
        entry: &Arc<Entry>,
        request: bool,
        counter: &Counter,
        ids: &mut HandleIds,
    ) -> Result<Arc<Self>> {
        let message = entry.message()?;
        let is_result = message.tool_results().next().is_some() && !entry.outline()?.has_content;
        let speaker = match message.role {
            Role::Assistant => Speaker::Agent,
            Role::ToolResult => Speaker::Tool,
            Role::CompactionSummary => Speaker::Summary,
            _ if is_result => Speaker::Tool,
            _ => Speaker::User,
        };
        let (mut text, mut said) = (String::new(), String::new());
        add_message(&message, &mut text);
        add_said(&message, &mut said);
        let (tokens, said) = (counter.text(&text), ids.of(&said));
        // The arms read each message many times.
        let entry = Arc::new(Entry::in_memory(entry.id().clone(), message.clone()));
        Ok(Arc::new(Self { entry, message, speaker, text, tokens, said, request }))
    }
}

/// Returns the tokens of messages.
pub(super) fn tokens(items: &[Arc<Item>]) -> Tokens {
    items.iter().map(|item| item.tokens).sum()
}

/// Returns the ends of `count` parts with about equal numbers of tokens. A part ends at a request,
/// so a short history may have fewer parts. The last part ends with the history.
pub(super) fn parts(items: &[Arc<Item>], count: usize) -> Vec<usize> {
    let all = tokens(items).get();
    let mut ends = Vec::with_capacity(count);
    let mut sum = 0;
    for (at, item) in items.iter().enumerate() {
        let due = all * (ends.len() as u64 + 1) / count.max(1) as u64;
        if item.request && sum >= due && ends.len() + 1 < count {
            ends.push(at);
        }
        sum += item.tokens.get();
    }
    ends.push(items.len());
    ends
}

/// Returns up to `count` places at which the session is cut, spread evenly over the requests with
/// enough history before and enough work after them.
pub(super) fn cuts(items: &[Arc<Item>], count: usize) -> Vec<usize> {
    let all = tokens(items);
    let mut before = Tokens::ZERO;
    let mut places = Vec::new();
    for (at, item) in items.iter().enumerate() {
        if item.request && before >= LEAST_BEFORE && all - before >= LEAST_AFTER {
            places.push(at);
        }
        before += item.tokens;
    }
    let count = count.min(places.len());
    (0..count).map(|nth| places[(2 * nth + 1) * places.len() / (2 * count)]).collect()
}

/// Returns the messages that the bench keeps verbatim beside a summary: the newest whole messages
/// within a quarter of the budget. They do not begin with a result without its call.
pub(super) fn tail(items: &[Arc<Item>], budget: Tokens) -> Range<usize> {
    let most = budget.scale(TAIL_SHARE);
    let mut sum = Tokens::ZERO;
    let mut first = items.len();
    while let Some(item) = first.checked_sub(1).and_then(|at| items.get(at)) {
        sum += item.tokens;
        if sum > most {
            break;
        }
        first -= 1;
    }
    let calls = items[first..].iter().flat_map(|item| item.message.tool_calls());
    let calls: HashSet<&CallId> = calls.map(|call| &call.id).collect();
    let is_orphan =
        |item: &Arc<Item>| item.message.tool_results().any(|it| !calls.contains(&it.call_id));
    first += items[first..].iter().rposition(is_orphan).map_or(0, |at| at + 1);
    first..items.len()
}
