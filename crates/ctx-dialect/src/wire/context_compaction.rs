//! Anthropic's compactions: the edit `compact_20260112` of `context_management`, and the block
//! `compaction` that covers everything before it.

use std::borrow::Cow;

use ctx_core::{Counter, Message, Role, Tokens};
use serde_json::value::RawValue;

use super::own_tools::with_elements;
use super::peek::peek;
use super::rewrite::patched;
use super::unit::last_compaction;
use super::{Protocol, Request};
use crate::json::{Object, ObjectWriter, array};
use crate::shape::as_user_text;

/// Anthropic's default: the size of a request, in tokens, over which it is compacted.
const TRIGGER_TOKENS: u64 = 150_000;

/// The stop reason of an answer that is only a compaction.
pub(super) const STOP_REASON: &str = "compaction";

/// A compaction that a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextCompaction {
    /// What the summary should say.
    pub instructions: Option<String>,
    /// Whether the answer is the summary alone.
    pub pauses: bool,
}

/// Returns the compaction that `context_management` asks for, if the request is over its trigger.
/// A message alone is not compacted.
#[must_use]
pub fn context_compaction(request: &Request<'_>) -> Option<ContextCompaction> {
    let is_compaction =
        |edit: &Object<'_>| edit.text("type").is_some_and(|kind| kind == "compact_20260112");
    let edit = super::context_edits::edits(&request.fields).find(is_compaction)?;
    let trigger = edit.object("trigger").and_then(|trigger| trigger.count("value"));
    let is_over =
        request.units.len() > 1 && size(request).get() > trigger.unwrap_or(TRIGGER_TOKENS);
    is_over.then(|| ContextCompaction {
        instructions: edit.owned("instructions").filter(|text| !text.trim().is_empty()),
        pauses: edit.is_true("pause_after_compaction"),
    })
}

/// Returns the estimated size of what the model reads of a request.
pub(super) fn size(request: &Request<'_>) -> Tokens {
    let count = |text: &str| Counter::default().text(text);
    let units: Tokens = request.units.iter().map(|unit| count(unit.raw)).sum();
    let tools = request.tools.map_or("", RawValue::get);
    units + count(request.system.as_deref().unwrap_or_default()) + count(tools)
}

/// Returns the body of a request with a compaction as its last answer, as its client sends it in the
/// next request; `None` if the history is empty.
#[must_use]
pub fn with_compaction(request: &Request<'_>, summary: &str) -> Option<String> {
    let answer = ObjectWriter::new().text("role", "assistant");
    let answer = answer.raw("content", array([block(Some(summary))])).end();
    with_elements(Protocol::Messages, request.body(), &answer)
}

/// Returns a block with a compaction; without a summary, as the beginning of a streamed one.
pub(super) fn block(summary: Option<&str>) -> String {
    let block = ObjectWriter::new().text("type", "compaction");
    match summary {
        Some(summary) => block.text("content", summary).end(),
        None => block.raw("content", "null").end(),
    }
}

/// Returns an element of `usage.iterations`: what a compaction used, or the message after it.
pub(super) fn iteration(kind: &str, input: u64, output: u64) -> String {
    let tokens = ObjectWriter::new().text("type", kind).plain("input_tokens", input);
    tokens.plain("output_tokens", output).end()
}

/// Returns the content of a compaction's block. One that failed has none, and covers nothing.
pub(super) fn block_content(block: &RawValue) -> Option<Cow<'_, str>> {
    let [kind, content] = peek(block.get(), ["type", "content"]);
    content.filter(|_| kind.is_some_and(|kind| kind == "compaction"))
}

/// Whether a block has a compaction.
pub(super) fn is_block(block: &&RawValue) -> bool {
    block_content(block).is_some()
}

/// Returns the streamed content of a compaction.
pub(super) fn delta(summary: &str) -> String {
    ObjectWriter::new().text("type", "compaction_delta").text("content", summary).end()
}

/// Returns the body of a request with a message of the user in place of everything up to its last
/// compaction, for a provider that does not know such blocks.
pub(super) fn with_summary(body: &str) -> Option<String> {
    let (object, _) = Object::parse_prefix(body);
    let messages = object.array("messages")?;
    let at = last_compaction(messages.iter().map(|raw| raw.get()), body)?;
    let (message, after) = messages.get(at..)?.split_first()?;
    let message = Object::of(message)?;
    let blocks = message.array("content")?;
    let place = blocks.iter().rposition(is_block)?;
    let (compaction, rest) = blocks.get(place..)?.split_first()?;
    let compaction = Object::of(compaction)?;
    let summary = Message::text(Role::CompactionSummary, compaction.text("content")?);
    let text = ObjectWriter::new()
        .text("type", "text")
        .text("text", &as_user_text(&summary)?.plain_text())
        .raw_if("cache_control", compaction.get("cache_control").map(RawValue::get))
        .end();
    let user = ObjectWriter::new().text("role", "user").raw("content", array([text])).end();
    let rest: Vec<_> = rest.iter().map(|raw| raw.get()).collect();
    let rest = (!rest.is_empty()).then(|| patched(&message, &[("content", Some(array(rest)))]));
    let all = [user].into_iter().chain(rest).chain(after.iter().map(|raw| raw.get().to_owned()));
    Some(patched(&object, &[("messages", Some(array(all)))]))
}
