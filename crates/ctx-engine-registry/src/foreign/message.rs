//! Converts messages between ctx-core and the SDK: to JSON for an engine, and back to the form of a
//! row.

use std::collections::HashMap;
use std::io;

use ctx_core::{Block, CallId, Message, MessageOutline, Meta, Node, Role};
use ctx_engine_sdk::protocol;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Rejection;

#[derive(Serialize)]
struct SentMessage<'m> {
    role: &'m Role,
    blocks: &'m [Block],
}

#[derive(Deserialize)]
struct ReceivedMessage {
    role: String,
    blocks: Vec<Block>,
}

/// Returns a message as sent to an engine: without the metadata of the transcript.
pub(super) fn json(message: &Message) -> Option<Box<RawValue>> {
    serde_json::value::to_raw_value(&sent(message)).ok()
}

fn sent(message: &Message) -> SentMessage<'_> {
    SentMessage { role: &message.role, blocks: &message.blocks }
}

/// Whether `json` is byte for byte the output of [`json`] for a message. Does not allocate or
/// parse.
fn is_json_of(message: &Message, json: &str) -> bool {
    struct Rest<'a>(&'a [u8]);
    impl io::Write for Rest<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.strip_prefix(bytes).ok_or(io::ErrorKind::InvalidData)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut rest = Rest(json.as_bytes());
    serde_json::to_writer(&mut rest, &sent(message)).is_ok() && rest.0.is_empty()
}

/// Parses a message written by an engine.
pub(super) fn read(json: &str) -> Result<Message, Rejection> {
    let ReceivedMessage { role, blocks } = serde_json::from_str(json)?;
    Ok(Message::new(Role::from_name(&role), blocks))
}

/// Returns the form that a replacement gives a row.
pub(super) fn replacement(node: &Node, of: &protocol::Replacement) -> Result<Message, Rejection> {
    let id = &of.id;
    match (&of.text, &of.message) {
        (Some(_), Some(_)) => Err(Rejection::mismatch(id, "it has both a text and a message")),
        (None, None) => Err(Rejection::mismatch(id, "it has neither a text nor a message")),
        (Some(text), None) => with_text(node, id, text),
        (None, Some(message)) => form(node, id, &serde_json::to_string(message)?),
    }
}

/// Returns the form that a whole message gives a row. Fields that the protocol does not carry are
/// taken from the row.
pub(super) fn form(node: &Node, id: &str, json: &str) -> Result<Message, Rejection> {
    let mut form = read(json)?;
    if form.role != *node.role() {
        return Err(Rejection::mismatch(id, "it has another role"));
    }
    let outline = MessageOutline::of(&form);
    if *outline.calls != *node.outline.calls {
        return Err(Rejection::mismatch(id, "it makes other tool calls"));
    }
    if *outline.results != *node.results() {
        return Err(Rejection::mismatch(id, "it has other tool results"));
    }
    if form.blocks.is_empty() {
        return Err(Rejection::mismatch(id, "it is empty: drop the row instead"));
    }
    let Ok(own) = node.message() else { return Ok(form) };
    let calls: HashMap<&CallId, _> = own.tool_calls().map(|call| (&call.id, call)).collect();
    let results: HashMap<&CallId, _> = own.tool_results().map(|r| (&r.call_id, r)).collect();
    for block in &mut form.blocks {
        match block {
            Block::ToolCall(call) => {
                if let Some(own) = calls.get(&call.id) {
                    call.spelling = own.spelling;
                }
            }
            Block::ToolResult(result) => {
                if let (None, Some(own)) = (&result.name, results.get(&result.call_id)) {
                    result.name.clone_from(&own.name);
                }
            }
            _ => {}
        }
    }
    form.meta = Meta::clone(&own.meta);
    Ok(form)
}

/// Returns the row's message with another text.
fn with_text(node: &Node, id: &str, text: &str) -> Result<Message, Rejection> {
    if text.is_empty() {
        return Err(Rejection::mismatch(id, "its text is empty: drop the row instead"));
    }
    let own = node.message();
    let own = own.map_err(|_| Rejection::mismatch(id, "the row can no longer be read"))?;
    let mut form = Message::clone(&own);
    match node.results() {
        [] => {
            let is_own = |block: &Block| matches!(block, Block::Text { .. } | Block::Bash(_));
            let at = form.blocks.iter().position(is_own).or_else(|| {
                form.blocks.iter().position(|block| matches!(block, Block::ToolCall(_)))
            });
            let at = at.unwrap_or(form.blocks.len());
            form.blocks.retain(|block| !is_own(block));
            form.blocks.insert(at.min(form.blocks.len()), Block::text(text));
        }
        [_] => {
            for block in &mut form.blocks {
                if let Block::ToolResult(result) = block {
                    result.content = vec![Block::text(text)];
                }
            }
        }
        _ => return Err(Rejection::mismatch(id, "it has several tool results: give a message")),
    }
    Ok(form)
}

/// Returns the message of an insertion.
pub(super) fn insertion(of: &protocol::Insertion) -> Result<Message, Rejection> {
    let role = of.role.as_deref().map_or(Role::User, Role::from_name);
    addable(&of.id, Message::text(role, of.text.clone()))
}

/// Rejects messages that a view cannot insert.
pub(super) fn addable(id: &str, message: Message) -> Result<Message, Rejection> {
    if id.is_empty() || id.len() > 256 || id.chars().any(char::is_control) {
        return Err(Rejection::insertion(id, "its id must be 1 to 256 bytes of plain text"));
    }
    if !matches!(message.role, Role::User | Role::Assistant | Role::System | Role::Custom) {
        return Err(Rejection::insertion(id, "its role is not allowed"));
    }
    let is_not_empty = |block: &Block| !matches!(block, Block::Text { text } if text.is_empty());
    if !message.blocks.iter().any(is_not_empty) {
        return Err(Rejection::insertion(id, "it is empty"));
    }
    let outline = MessageOutline::of(&message);
    if !outline.calls.is_empty() || !outline.results.is_empty() {
        return Err(Rejection::insertion(id, "it has tool calls or results"));
    }
    Ok(message)
}

/// Returns the form that a whole message gives a row, if it differs from the current form.
pub(super) fn change(node: &Node, id: &str, json: &str) -> Result<Option<Message>, Rejection> {
    let own = node.message().ok();
    // Most engines that return all messages return the bytes that they received.
    if own.as_ref().is_some_and(|own| is_json_of(own, json)) {
        return Ok(None);
    }
    let form = form(node, id, json)?;
    let is_same = |own: &Message| own.role == form.role && own.blocks == form.blocks;
    Ok((!own.is_some_and(|own| is_same(&own))).then_some(form))
}

#[cfg(test)]
mod tests {
    use ctx_core::{ContextView, Counter, Entry, TokenLedger, Tokens};

    use super::*;

    fn changed(json: &str) -> Option<Message> {
        let ledger = TokenLedger::new(Counter::default(), Tokens(100_000), Tokens(1_000));
        let mut view = ContextView::new(ledger);
        let message = Message::text(Role::User, "a \"b\"\n中");
        view.append(std::sync::Arc::new(Entry::in_memory("e", message))).unwrap();
        change(view.node(0), "e", json).unwrap()
    }

    #[test]
    fn an_equal_message_in_another_spelling_is_no_change() {
        for json in [
            r#"{"role":"user","blocks":[{"type":"text","text":"a \"b\"\n中"}]}"#,
            r#"{ "blocks": [{"text": "a \"b\"\n\u4e2d", "type": "text"}], "role": "user" }"#,
        ] {
            assert_eq!(changed(json), None, "{json}");
        }
        let same = json(&Message::text(Role::User, "a \"b\"\n中")).unwrap();
        assert!(is_json_of(&Message::text(Role::User, "a \"b\"\n中"), same.get()));
    }

    #[test]
    fn a_message_that_only_begins_like_the_row_is_a_change() {
        for text in [r#"a \"b\"\n"#, r#"a \"b\"\n中 and more"#, "another"] {
            let json = format!(r#"{{"role":"user","blocks":[{{"type":"text","text":"{text}"}}]}}"#);
            let form = changed(&json).expect("another text");
            assert_eq!(form.role, Role::User, "{json}");
        }
        let own = Message::text(Role::User, "a");
        let longer = format!("{} ", json(&own).unwrap().get());
        assert!(
            !is_json_of(&own, &longer) && !is_json_of(&own, longer.trim_end_matches(['}', ' ']))
        );
    }
}
