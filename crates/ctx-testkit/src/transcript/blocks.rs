//! Blocks of messages, and their sizes.

use ctx_core::{Block, CallSpelling, Image, Message};

/// Returns the length of a message's texts, plus a small constant.
pub(super) fn bytes_of(message: &Message) -> usize {
    fn of(block: &Block) -> usize {
        match block {
            Block::Text { text } => text.len(),
            Block::Thinking { thinking, .. } => thinking.len(),
            Block::ToolCall(call) => call.arguments.as_str().len(),
            Block::ToolResult(result) => result.content.iter().map(of).sum(),
            Block::Image(_) => 4_800,
            Block::Bash(run) => run.output.len(),
            Block::Opaque { json } => json.as_str().len(),
        }
    }
    16 + message.blocks.iter().map(of).sum::<usize>()
}

pub(super) fn image() -> Block {
    let (mime_type, data) = ("image/png".to_owned(), "iVBORw0KGgo=".into());
    Block::Image(Image { mime_type, data, is_url: false })
}

/// Returns a text as JSON.
pub(super) fn quoted(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for c in text.chars() {
        match c {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            c if u32::from(c) < 0x20 => json.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json.push('"');
    json
}

/// The spellings of calls.
pub(super) const SPELLINGS: [CallSpelling; 4] = [
    CallSpelling::ToolCall,
    CallSpelling::ToolUse,
    CallSpelling::ToolUseCamel,
    CallSpelling::FunctionCall,
];
