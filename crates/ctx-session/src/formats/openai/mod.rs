//! OpenAI chat messages: an array, a request body, or one message per line.

use ctx_core::Result;
use ctx_dialect::json::{ObjectWriter, array};
use ctx_dialect::{openai_chat, tools};

use super::{Conversation, Evidence, Format, FormatSpec, Omissions, Target};

impl Format {
    /// OpenAI chat messages: an array, a request body, or one message per line.
    pub const OPENAI_CHAT: Self = Self(&FormatSpec {
        name: "openai",
        judge_message: |message| {
            let fields = ["tool_calls", "tool_call_id", "refusal", "reasoning_content"];
            fields.iter().any(|key| message.has(key)).then_some(Evidence::Likely)
        },
        target: Some(Target::Document { write, summaries: false }),
        keeps: openai_chat::keeps,
        keeps_meta: false,
        ..FormatSpec::NONE
    });
}

/// Writes only the messages, or a request body if there are tools.
fn write(conversation: &Conversation, omissions: &mut Omissions) -> Result<(String, usize)> {
    let (messages, count) = conversation.request(Format::OPENAI_CHAT, omissions)?;
    let list = openai_chat::write(&messages);
    let list = array(list.iter().map(|message| message.as_str()));
    let json = match conversation.written_tools(tools::to_openai, omissions) {
        None => list,
        Some(tools) => ObjectWriter::new().raw("tools", tools).raw("messages", list).end(),
    };
    Ok((json, count))
}
