//! Checks of single blocks of a message.

use serde_json::Value;

use super::super::{Fault, Verdict, is_blank, is_word, text};
use super::BlockRef;

/// Kinds of blocks that are not checked further, and that both roles may send.
const OTHERS: &str = "server_tool_use web_search_tool_result web_fetch_tool_result \
    code_execution_tool_result bash_code_execution_tool_result \
    text_editor_code_execution_tool_result tool_search_tool_result mcp_tool_use mcp_tool_result \
    container_upload compaction tool_reference";
const PICTURES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

pub(super) fn check(part: &BlockRef<'_>, role: &str) -> Verdict {
    let at = &part.at;
    let refuse = |message: String| Err(Fault::new(message));
    let is_model = role == "assistant";
    match part.kind() {
        "text" => words(part.text.unwrap_or_else(|| part.get("text"))),
        "thinking" | "redacted_thinking" if !is_model => {
            refuse(format!("{at}: `thinking` blocks may only be in `assistant` messages"))
        }
        "thinking" if part.block.is_some_and(|block| !block["signature"].is_string()) => {
            refuse(format!("{at}.thinking.signature: Field required"))
        }
        kind @ ("thinking" | "redacted_thinking") => {
            match part.block.is_some_and(|block| !block["cache_control"].is_null()) {
                true => {
                    refuse(format!("{at}.{kind}.cache_control: Extra inputs are not permitted"))
                }
                false => Ok(()),
            }
        }
        "tool_use" if !is_model => {
            refuse(format!("{at}: `tool_use` blocks can only be in `assistant` messages"))
        }
        "tool_use" => call(part),
        "tool_result" if is_model => {
            refuse(format!("{at}: `tool_result` blocks can only be in `user` messages"))
        }
        "tool_result" => match part.block.map(|block| &block["content"]) {
            Some(Value::Array(inner)) => inner.iter().enumerate().try_for_each(|(k, block)| {
                let at = format!("{at}.tool_result.content.{k}");
                match text(block, "type") {
                    "text" => words(text(block, "text")),
                    "image" => picture(block, &at),
                    "document" | "search_result" | "tool_reference" => Ok(()),
                    kind => refuse(tag(&at, kind)),
                }
            }),
            _ => Ok(()),
        },
        "image" if !is_model => part.block.map_or(Ok(()), |block| picture(block, at)),
        "document" | "search_result" if !is_model => Ok(()),
        kind if OTHERS.split(' ').any(|other| other == kind) => Ok(()),
        kind => refuse(tag(at, kind)),
    }
}

fn words(text: &str) -> Verdict {
    match text {
        "" => Err(Fault::new("messages: text content blocks must be non-empty")),
        text if is_blank(text) => {
            Err(Fault::new("messages: text content blocks must contain non-whitespace text"))
        }
        _ => Ok(()),
    }
}

fn picture(block: &Value, at: &str) -> Verdict {
    let source = &block["source"];
    if text(source, "type") == "base64" && !PICTURES.contains(&text(source, "media_type")) {
        refuse!(
            "{at}.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', \
             'image/gif' or 'image/webp'"
        );
    }
    Ok(())
}

fn tag(at: &str, kind: &str) -> String {
    format!("{at}: Input tag '{kind}' found using 'type' does not match any of the expected tags")
}

fn call(part: &BlockRef<'_>) -> Verdict {
    let at = &part.at;
    let field = |name: &str, what: &str| Err(Fault::new(format!("{at}.tool_use.{name}: {what}")));
    let pattern = "String should match pattern '^[a-zA-Z0-9_-]+$'";
    let id = part.get("id");
    if !is_word(id) {
        return field("id", pattern);
    }
    // The maximum length of an id is not documented. Some clients reported refusals of longer ids;
    // none reported one of 64 characters.
    if id.len() > 64 {
        return field("id", "String should have at most 64 characters");
    }
    let name = part.get("name");
    if name.is_empty() {
        return field("name", "String should have at least 1 character");
    }
    if name.len() > 200 {
        return field("name", "String should have at most 200 characters");
    }
    match part.block.map(|block| &block["input"]) {
        Some(Value::Object(_)) => Ok(()),
        Some(Value::Null) | None => field("input", "Field required"),
        Some(_) => field("input", "Input should be a valid dictionary"),
    }
}
