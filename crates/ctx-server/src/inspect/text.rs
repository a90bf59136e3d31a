//! Messages, for people.

use ctx_core::{Block, Counter, Message};

use super::shape::{EntryAsked, Part, Shown};

/// So many characters of a message are shown, unless all of it is asked for; the rest is counted.
const SHOWN_CHARS: usize = 100_000;

/// A message in parts. Very long ones are cut, unless the whole is asked for.
#[must_use]
pub fn parts(message: &Message, counter: &Counter, asked: &EntryAsked) -> Shown {
    let mut shown = Shown { tokens: counter.message(message).get(), ..Shown::default() };
    let mut room = if asked.whole { usize::MAX } else { SHOWN_CHARS };
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

fn part(block: &Block) -> Part {
    let of = |kind, name: Option<&str>, text: &str| Part {
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
            Part { is_error: result.is_error, ..part }
        }
        Block::Image(image) => of("image", Some(&image.mime_type), ""),
        Block::Bash(run) => of("bash", Some(&run.command), &run.output),
        Block::Opaque { json } => of("opaque", None, json.as_str()),
    }
}

/// Whether a message holds words that are in small letters, in whatever it says.
pub(super) fn says(message: &Message, words: &str) -> bool {
    let mut parts = message.blocks.iter().map(part);
    parts.any(|part| holds(&part.text, words) || part.name.is_some_and(|name| holds(&name, words)))
}

/// Whether a text holds words that are in small letters.
pub(super) fn holds(text: &str, words: &str) -> bool {
    text.to_lowercase().contains(words)
}
