//! Converts messages between ctx-core and the SDK: encoded for an engine, and back to the form of a
//! row.

use std::collections::HashMap;
use std::io;

use ctx_core::{Block, CallId, Message, MessageOutline, Meta, Node, Role};
use ctx_engine_sdk::protocol::{self, Encoding, RawMessage};
use serde::{Deserialize, Serialize};

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
pub(super) fn encoded(message: &Message, encoding: Encoding) -> Option<RawMessage> {
    RawMessage::new(encoding, &sent(message)).ok()
}

fn sent(message: &Message) -> SentMessage<'_> {
    SentMessage { role: &message.role, blocks: &message.blocks }
}

/// Whether `raw` is byte for byte the output of [`encoded`] for a message. Does not allocate or
/// parse.
fn is_encoding_of(message: &Message, raw: &RawMessage) -> bool {
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
    let mut rest = Rest(raw.as_bytes());
    Encoding::of(rest.0).write(&mut rest, &sent(message)).is_ok() && rest.0.is_empty()
}

/// Parses a message written by an engine.
pub(super) fn read(raw: &RawMessage) -> Result<Message, Rejection> {
    let ReceivedMessage { role, blocks } = raw.read()?;
    Ok(Message::new(Role::from_name(&role), blocks))
}

/// Returns the form that a replacement gives a row.
pub(super) fn replacement(node: &Node, of: &protocol::Replacement) -> Result<Message, Rejection> {
    let id = &of.id;
    match (&of.text, &of.message) {
        (Some(_), Some(_)) => Err(Rejection::mismatch(id, "it has both a text and a message")),
        (None, None) => Err(Rejection::mismatch(id, "it has neither a text nor a message")),
        (Some(text), None) => with_text(node, id, text),
        (None, Some(message)) => form(node, id, &RawMessage::new(Encoding::Json, message)?),
    }
}

/// Returns the form that a whole message gives a row. Fields that the protocol does not carry are
/// taken from the row.
pub(super) fn form(node: &Node, id: &str, raw: &RawMessage) -> Result<Message, Rejection> {
    let mut form = read(raw)?;
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
pub(super) fn change(
    node: &Node,
    id: &str,
    raw: &RawMessage,
) -> Result<Option<Message>, Rejection> {
    let own = node.message().ok();
    // Most engines that return all messages return the bytes that they received.
    if own.as_ref().is_some_and(|own| is_encoding_of(own, raw)) {
        return Ok(None);
    }
    let form = form(node, id, raw)?;
    let is_same = |own: &Message| own.role == form.role && own.blocks == form.blocks;
    Ok((!own.is_some_and(|own| is_same(&own))).then_some(form))
}

#[cfg(test)]
mod tests {
    use ctx_core::{ContextView, Counter, Entry, TokenLedger, Tokens};

    use super::*;

    fn text(json: &str) -> RawMessage {
        RawMessage::Json(serde_json::value::RawValue::from_string(json.into()).unwrap())
    }

    fn changed(raw: &RawMessage) -> Option<Message> {
        let ledger = TokenLedger::new(Counter::default(), Tokens(100_000), Tokens(1_000));
        let mut view = ContextView::new(ledger);
        let message = Message::text(Role::User, "a \"b\"\n中");
        view.append(std::sync::Arc::new(Entry::in_memory("e", message))).unwrap();
        change(view.node(0), "e", raw).unwrap()
    }

    #[test]
    fn an_equal_message_in_another_spelling_is_no_change() {
        let message = Message::text(Role::User, "a \"b\"\n中");
        for encoding in [Encoding::Json, Encoding::MessagePack] {
            let same = encoded(&message, encoding).unwrap();
            assert_eq!(Encoding::of(same.as_bytes()), encoding);
            assert!(is_encoding_of(&message, &same));
        }
        let json = r#"{ "blocks": [{"text": "a \"b\"\n\u4e2d", "type": "text"}], "role": "user" }"#;
        let value: serde_json::Value = serde_json::from_str(json).unwrap();
        for raw in [text(json), RawMessage::new(Encoding::MessagePack, &value).unwrap()] {
            assert_eq!(changed(&raw), None, "{raw:?}");
            assert!(!is_encoding_of(&message, &raw));
        }
    }

    #[test]
    fn a_message_that_only_begins_like_the_row_is_a_change() {
        for said in ["a \"b\"\n", "a \"b\"\n中 and more", "another"] {
            let other = Message::text(Role::User, said);
            for encoding in [Encoding::Json, Encoding::MessagePack] {
                let form = changed(&encoded(&other, encoding).unwrap()).expect("another text");
                assert_eq!(form, other);
            }
        }
        let own = Message::text(Role::User, "a");
        let same = encoded(&own, Encoding::MessagePack).unwrap();
        let longer = RawMessage::MessagePack([same.as_bytes(), b"\x80"].concat());
        let (_, shorter) = same.as_bytes().split_last().unwrap();
        let shorter = RawMessage::MessagePack(shorter.to_vec());
        assert!(!is_encoding_of(&own, &longer) && !is_encoding_of(&own, &shorter));
        assert!(read(&longer).is_err() && read(&shorter).is_err());
    }

    #[test]
    fn every_kind_of_block_is_the_same_in_both_encodings() {
        let blocks = r#"[
            {"type":"text","text":"a"},
            {"type":"thinking","thinking":"b","signature":"c"},
            {"type":"toolCall","id":"d","name":"e","arguments":{"f":[1,-2,3.5,null,true,"g"]}},
            {"type":"toolResult","callId":"d","content":[{"type":"text","text":"h"}],"isError":true},
            {"type":"image","mimeType":"image/png","data":"aQ=="},
            {"type":"bash","command":"j","output":"k","exitCode":-1},
            {"type":"opaque","json":{"type":"l"}}
        ]"#;
        let message = Message::new(Role::User, serde_json::from_str(blocks).unwrap());
        for encoding in [Encoding::Json, Encoding::MessagePack] {
            let raw = encoded(&message, encoding).unwrap();
            assert_eq!(Encoding::of(raw.as_bytes()), encoding);
            assert_eq!(read(&raw).unwrap(), message, "{encoding}");
            // The engine's own form of it has the same blocks.
            let of_engine: protocol::Message = raw.read().unwrap();
            let raw = RawMessage::new(encoding, &of_engine).unwrap();
            assert_eq!(read(&raw).unwrap(), message, "{encoding}");
        }
    }

    #[test]
    fn json_that_messagepack_cannot_represent_is_sent_as_json() {
        let json = r#"{"role":"assistant","blocks":[{"type":"toolCall","id":"c","name":"n","arguments":{"n":1e400}}]}"#;
        let message = read(&text(json)).unwrap();
        let raw = encoded(&message, Encoding::MessagePack).unwrap();
        assert!(matches!(raw, RawMessage::Json(_)));
        let sent = protocol::OutgoingMessage { id: "e".into(), message: Some(raw) };
        let bytes = Encoding::MessagePack.encode(&sent).unwrap();
        let back: protocol::OutgoingMessage = protocol::decode(&bytes).unwrap();
        assert!(is_encoding_of(&message, &back.message.unwrap()));
    }
}
