//! Messages, for people.

use ctx_core::{Block, Counter, Message};

use super::shape::{Part, Shown};

/// So many characters of a message are sent; the rest is counted.
const SHOWN_CHARS: usize = 400_000;

/// Room for how a message begins.
const BEGINS_CHARS: usize = 120;

/// A message in parts. Very long ones are cut.
#[must_use]
pub fn parts(message: &Message, counter: &Counter) -> Shown {
    let mut shown = Shown { tokens: counter.message(message).get(), ..Shown::default() };
    let mut room = SHOWN_CHARS;
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

/// The first line of a message that says something; else the calls that it makes.
#[must_use]
pub fn begins(message: &Message) -> String {
    let mut calls = Vec::new();
    for block in &message.blocks {
        let part = part(block);
        if part.kind == "toolCall" {
            let name = part.name.unwrap_or_default();
            calls.push(format!("{name} {}", beginning(&part.text)));
        } else if part.kind != "thinking" && !beginning(&part.text).is_empty() {
            return beginning(&part.text);
        }
    }
    calls.join(", ").chars().take(BEGINS_CHARS).collect()
}

fn beginning(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.chars().take(BEGINS_CHARS).collect()
}
