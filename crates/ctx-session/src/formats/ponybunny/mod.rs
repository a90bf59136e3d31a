//! PonyBunny's JSON5: `messages`, and summaries of older ones in `compactedHistory`.

use ctx_core::{Block, Message, Result, Role};
use ctx_dialect::json::{ObjectWriter, array};
use ctx_dialect::ponybunny;

use super::{Conversation, Evidence, Format, FormatSpec, Omissions, Target};
use crate::entry::MessageEncoding;

impl Format {
    /// PonyBunny's JSON5 (`messages`, `compactedHistory`).
    pub const PONYBUNNY: Self = Self(&FormatSpec {
        name: "ponybunny",
        judge_message: |message| {
            let fields = ["toolCalls", "toolCallId", "thinkingBlocks"];
            fields.iter().any(|key| message.has(key)).then_some(Evidence::Certain)
        },
        judge_document: |document| match document.body.has("compactedHistory") {
            true => Some(Evidence::Certain),
            // No other agent is known to write JSON5.
            false => document.was_json5.then_some(Evidence::Weak),
        },
        encoding: MessageEncoding::PonyBunny,
        target: Some(Target::Document { write, summaries: true }),
        keeps: |_, block| !matches!(block, Block::Image(_)),
        ..FormatSpec::NONE
    });
}

fn write(conversation: &Conversation, omissions: &mut Omissions) -> Result<(String, usize)> {
    if conversation.tools.is_some() {
        omissions.add("the tools: ponybunny cannot represent them".to_owned());
    }
    let system = conversation.system.as_ref();
    let system = system.map(|text| ponybunny::write(&Message::text(Role::System, text)));
    let mut messages = system.unwrap_or_default();
    for entry in &conversation.entries {
        let message = entry.message()?;
        omissions.of_message(&message, Format::PONYBUNNY);
        messages.extend(ponybunny::write(&message));
    }
    let mut summaries = Vec::new();
    for (entry, replaced) in &conversation.summaries {
        summaries.push(ponybunny::write_summary(&*entry.message()?, *replaced));
    }
    let body = ObjectWriter::new()
        .raw("messages", array(messages))
        .raw("compactedHistory", array(summaries));
    Ok((body.end(), conversation.entries.len()))
}
