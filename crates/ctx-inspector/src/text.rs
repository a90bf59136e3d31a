//! Messages for display.

use ctx_core::{Block, Counter, Message};

use super::shape::{EntryQuery, MessagePart, MessageView};

/// Maximum number of characters shown of a message, unless all are requested. The rest is counted.
const SHOWN_CHARS: usize = 100_000;

/// Returns the parts of a message. A long message is truncated, unless the query requests all.
#[must_use]
pub(crate) fn message_view(
    message: &Message,
    counter: &Counter,
    query: &EntryQuery,
) -> MessageView {
    let mut shown =
        MessageView { tokens: counter.message(message).get(), ..MessageView::default() };
    let mut room = if query.whole { usize::MAX } else { SHOWN_CHARS };
    for block in &message.blocks {
        let mut part = part(block);
        let chars = part.text.chars().count();
        if chars > room {
            part.text = part.text.chars().take(room).collect();
            shown.cut += chars - room;
        }
        room -= chars.min(room);
        shown.parts.push(part);
    }
    shown
}

fn part(block: &Block) -> MessagePart {
    let of = |kind, name: Option<&str>, text: &str| MessagePart {
        kind,
        name: name.map(str::to_owned),
        is_error: false,
        text: text.to_owned(),
    };
    match block {
        Block::Text { text } => of("text", None, text),
        Block::Thinking { thinking, .. } => of("thinking", None, thinking),
        Block::ToolCall(call) => of("toolCall", Some(&call.name), call.arguments.as_str()),
        Block::ToolResult(result) => {
            let part = of("toolResult", None, &result.plain_text());
            MessagePart { is_error: result.is_error, ..part }
        }
        Block::Image(image) => of("image", Some(&image.mime_type), ""),
        Block::Bash(run) => of("bash", Some(&run.command), &run.output),
        Block::Opaque { json } => of("opaque", None, json.as_str()),
    }
}

/// Whether a message contains the words, given in lower case.
pub(super) fn message_contains(message: &Message, words: &str) -> bool {
    let mut parts = message.blocks.iter().map(part);
    parts.any(|part| {
        contains(&part.text, words) || part.name.is_some_and(|name| contains(&name, words))
    })
}

/// Whether a text contains the words, given in lower case.
pub(super) fn contains(text: &str, words: &str) -> bool {
    text.to_lowercase().contains(words)
}
