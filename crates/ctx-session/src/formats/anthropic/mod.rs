//! Anthropic messages: an array, a request body, or one message per line.

use ctx_core::Result;
use ctx_dialect::json::{Object, ObjectWriter, array};
use ctx_dialect::{anthropic, tools};

use super::{Conversation, Evidence, Format, FormatSpec, Omissions, Target};
use crate::entry::MessageEncoding;
use crate::read::Document;

impl Format {
    /// Anthropic messages: an array or a request body.
    pub const ANTHROPIC: Self = Self(&FormatSpec {
        name: "anthropic",
        judge_message,
        judge_document,
        encoding: MessageEncoding::Anthropic,
        provider: ("anthropic", "anthropic-messages"),
        target: Some(Target::Document { write, summaries: false }),
        keeps: |_, block| anthropic::keeps(block),
        keeps_meta: false,
        ..FormatSpec::NONE
    });
}

fn judge_message(message: &Object<'_>) -> Option<Evidence> {
    const BLOCKS: [&str; 4] = ["tool_use", "tool_result", "thinking", "redacted_thinking"];
    let is_own = |block: Object<'_>| {
        let kind = block.text("type").unwrap_or_default();
        BLOCKS.contains(&&*kind) || (kind == "image" && block.has("source"))
    };
    let blocks = message.array("content").unwrap_or_default();
    blocks.into_iter().filter_map(Object::of).any(is_own).then_some(Evidence::Weak)
}

fn judge_document(document: &Document<'_>) -> Option<Evidence> {
    let Document { body, objects, .. } = document;
    let tools = body.array("tools").unwrap_or_default();
    let schemas = tools.into_iter().filter_map(Object::of).any(|tool| tool.has("input_schema"));
    let plain = || !objects.is_empty() && objects.iter().all(only_blocks);
    (body.has("system") || schemas || plain()).then_some(Evidence::Likely)
}

/// Whether a message consists of text blocks and has one of Anthropic's two roles. OpenAI allows
/// such messages too, but does not write its answers this way.
fn only_blocks(message: &Object<'_>) -> bool {
    let role = message.text("role").is_some_and(|role| role == "user" || role == "assistant");
    let blocks = message.array("content").unwrap_or_default();
    let text = |raw| Object::of(raw).is_some_and(|b| b.text("type").is_some_and(|t| t == "text"));
    role && !blocks.is_empty() && blocks.into_iter().all(text)
}

fn write(conversation: &Conversation, omissions: &mut Omissions) -> Result<(String, usize)> {
    let (messages, count) = conversation.request(Format::ANTHROPIC, omissions)?;
    let written = anthropic::write(&messages);
    let tools = conversation.written_tools(tools::to_anthropic, omissions);
    let body = ObjectWriter::new()
        .text_if("system", written.system.as_deref())
        .plain_if("tools", tools)
        .raw("messages", array(written.messages.iter().map(|message| message.as_str())));
    Ok((body.end(), count))
}
