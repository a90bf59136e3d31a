//! Messages of the Vercel AI SDK: `ModelMessage`, and the prompt of a language model, which differs
//! only in its details.

use ctx_core::{Block, Image, Message, RawJson, Role, ToolCall, ToolResult};
use serde_json::value::RawValue;

use crate::block;
use crate::json::{JsonElement, Object, ObjectWriter, array, quote, string, text_block};
use crate::shape::{as_user_text, split_results, texts};
use crate::wire::{list, patched};

/// Parses a message. Parts without an equivalent, such as files and approvals, become opaque blocks.
#[must_use]
pub fn parse_raw(raw: &RawValue) -> Message {
    let Some(object) = Object::of(raw) else { return block::opaque_message(raw.get()) };
    let role = Role::from_name(&object.text("role").unwrap_or_else(|| "unknown".into()));
    Message::new(role, blocks(object.get("content")))
}

fn blocks(content: Option<&RawValue>) -> Vec<Block> {
    match content.and_then(JsonElement::all) {
        Some(parts) => parts.iter().map(part).collect(),
        None => block::content(content),
    }
}

fn part(element: &JsonElement<'_>) -> Block {
    let opaque = || Block::Opaque { json: RawJson::from_text(element.raw) };
    let Some(object) = &element.object else { return opaque() };
    match object.text("type").as_deref() {
        Some("text") => object.owned("text").map_or_else(opaque, Block::text),
        Some("reasoning") => Block::Thinking {
            thinking: object.owned("text").unwrap_or_default(),
            // The provider's signature is one of its options.
            signature: object.get("providerOptions").map(|raw| raw.get().to_owned()),
        },
        Some("tool-call") => Block::ToolCall(call(object)),
        Some("tool-result") => Block::ToolResult(result(object)),
        Some("image" | "file") => image(object).map_or_else(opaque, Block::Image),
        _ => opaque(),
    }
}

fn call(object: &Object<'_>) -> ToolCall {
    let input = object.first(&["input", "args"]);
    let input = input.map_or_else(|| RawJson::from_text("{}"), RawJson::from);
    let name = object.owned("toolName").unwrap_or_default();
    ToolCall::new(block::call_id(object, &["toolCallId"]), name, input)
}

/// Parses an image, whose data is a URL or Base64.
fn image(object: &Object<'_>) -> Option<Image> {
    let mime_type = object.owned("mediaType").unwrap_or_default();
    if object.text("type").as_deref() == Some("file") && !mime_type.starts_with("image/") {
        return None;
    }
    let data = string(object.first(&["image", "data"])?)?;
    let is_url = ["http://", "https://", "data:"].iter().any(|scheme| data.starts_with(scheme));
    Some(Image { mime_type, data: data.as_ref().into(), is_url })
}

fn result(object: &Object<'_>) -> ToolResult {
    let output = object.object("output").unwrap_or_default();
    let kind = output.text("type").unwrap_or_default();
    let value = output.first(&["value", "reason"]);
    let content = match (&*kind, value) {
        ("content", Some(parts)) => parts_of_result(parts),
        (_, Some(value)) => match string(value) {
            Some(text) => vec![Block::text(text)],
            None => vec![Block::text(value.get())],
        },
        (_, None) => block::content(object.first(&["result", "output"])),
    };
    ToolResult {
        call_id: block::call_id(object, &["toolCallId"]),
        content,
        name: object.owned("toolName"),
        is_error: kind.starts_with("error") || kind == "execution-denied",
    }
}

/// Parses the parts of a result. Calls and results inside it become opaque blocks.
fn parts_of_result(parts: &RawValue) -> Vec<Block> {
    let one = |element: &JsonElement<'_>| match part(element) {
        Block::ToolCall(_) | Block::ToolResult(_) => {
            Block::Opaque { json: RawJson::from_text(element.raw) }
        }
        block => block,
    };
    JsonElement::all(parts).map(|parts| parts.iter().map(one).collect()).unwrap_or_default()
}

/// Writes a message. `of` is the text of the message that it replaces: unchanged parts of it, and the
/// message's other fields, are kept. A message with results and other content becomes several.
#[must_use]
pub fn write(message: &Message, of: Option<&str>) -> Vec<RawJson> {
    if let Some(replaced) = of.and_then(|of| replacing(message, of)) {
        return vec![RawJson::from_text(replaced)];
    }
    let Some(message) = as_user_text(message) else { return Vec::new() };
    let messages = split_results(&message);
    messages.iter().map(|message| RawJson::from_text(fresh(message))).collect()
}

fn replacing(message: &Message, of: &str) -> Option<String> {
    let object = Object::parse(of).ok()?;
    let content = object.get("content")?;
    if Role::from_name(&object.text("role")?) != message.role {
        return None;
    }
    let content = match JsonElement::all(content) {
        Some(_) => {
            let raws = object.array("content")?;
            array(list(&raws, &blocks(Some(content)), &message.blocks, changed, |new| {
                Some(part_json(new))
            }))
        }
        None => quote(&texts(&message.blocks)),
    };
    Some(patched(&object, &[("content", Some(content))]))
}

fn changed(object: &Object<'_>, _: &Block, new: &Block) -> Option<String> {
    Some(match new {
        Block::Text { text } => patched(object, &[("text", Some(quote(text)))]),
        Block::ToolCall(call) => {
            patched(object, &[("input", Some(call.arguments.as_str().to_owned()))])
        }
        Block::ToolResult(result) => patched(object, &[("output", Some(output(result)))]),
        new => part_json(new),
    })
}

fn fresh(message: &Message) -> String {
    let role = match message.role {
        Role::ToolResult => "tool",
        Role::System => "system",
        Role::Assistant => "assistant",
        _ => "user",
    };
    let content = match message.role {
        Role::System => quote(&message.plain_text()),
        _ => array(message.blocks.iter().map(part_json)),
    };
    ObjectWriter::new().text("role", role).raw("content", content).end()
}

fn part_json(block: &Block) -> String {
    match block {
        Block::Text { text } => text_block(text),
        Block::Thinking { thinking, signature } => ObjectWriter::new()
            .text("type", "reasoning")
            .text("text", thinking)
            .raw_if("providerOptions", signature.as_deref().filter(|text| text.starts_with('{')))
            .end(),
        Block::ToolCall(call) => ObjectWriter::new()
            .text("type", "tool-call")
            .text("toolCallId", &call.id)
            .text("toolName", &call.name)
            .raw("input", call.arguments.as_str())
            .end(),
        Block::ToolResult(result) => ObjectWriter::new()
            .text("type", "tool-result")
            .text("toolCallId", &result.call_id)
            .text("toolName", result.name.as_deref().unwrap_or_default())
            .raw("output", output(result))
            .end(),
        Block::Image(image) => {
            let media_type = Some(image.mime_type.as_str()).filter(|kind| !kind.is_empty());
            ObjectWriter::new()
                .text("type", "file")
                .text("data", &image.data)
                .text("mediaType", media_type.unwrap_or("image/*"))
                .end()
        }
        Block::Opaque { json } if json.as_str().starts_with('{') => json.as_str().to_owned(),
        block => text_block(&crate::shape::block_text(block)),
    }
}

/// Writes the output of a tool.
fn output(result: &ToolResult) -> String {
    let has_pictures = result.content.iter().any(|block| matches!(block, Block::Image(_)));
    if has_pictures {
        let parts = array(result.content.iter().map(part_json));
        return ObjectWriter::new().text("type", "content").raw("value", parts).end();
    }
    let kind = if result.is_error { "error-text" } else { "text" };
    ObjectWriter::new().text("type", kind).text("value", &texts(&result.content)).end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::value;

    fn parse(json: &str) -> Message {
        parse_raw(value(json).unwrap())
    }

    #[test]
    fn messages_round_trip() {
        for json in [
            r#"{"role":"system","content":"be brief"}"#,
            r#"{"role":"user","content":[{"type":"text","text":"hi"},{"type":"file","data":"aGk=","mediaType":"image/png"}]}"#,
            r#"{"role":"assistant","content":[{"type":"reasoning","text":"hm","providerOptions":{"anthropic":{"signature":"s"}}},{"type":"tool-call","toolCallId":"c","toolName":"read","input":{"a":1.50}}]}"#,
            r#"{"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"read","output":{"type":"text","value":"x"}}]}"#,
            r#"{"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"read","output":{"type":"error-text","value":"no"}}]}"#,
            r#"{"role":"user","content":[{"type":"file","data":"QQ==","mediaType":"application/pdf","filename":"a.pdf"}]}"#,
        ] {
            let written = write(&parse(json), None);
            assert_eq!(written.iter().map(RawJson::as_str).collect::<Vec<_>>(), [json]);
        }
    }

    #[test]
    fn every_kind_of_output_is_read() {
        for (output, text, is_error) in [
            (r#"{"type":"json","value":{"a":[1]}}"#, r#"{"a":[1]}"#, false),
            (r#"{"type":"error-json","value":{"a":1}}"#, r#"{"a":1}"#, true),
            (r#"{"type":"content","value":[{"type":"text","text":"x"}]}"#, "x", false),
            (r#"{"type":"execution-denied","reason":"no"}"#, "no", true),
        ] {
            let json = format!(
                r#"{{"role":"tool","content":[{{"type":"tool-result","toolCallId":"c","toolName":"t","output":{output}}}]}}"#
            );
            let message = parse(&json);
            let result = message.tool_results().next().unwrap();
            assert_eq!((texts(&result.content).as_str(), result.is_error), (text, is_error));
        }
    }

    #[test]
    fn a_changed_part_keeps_the_others_and_the_fields() {
        let json = r#"{"role":"tool","content":[{"type":"tool-result","toolCallId":"a","toolName":"t","output":{"type":"json","value":1}},{"type":"tool-result","toolCallId":"b","toolName":"t","output":{"type":"text","value":"long"},"providerOptions":{"x":1}}],"providerOptions":{"y":2}}"#;
        let mut message = parse(json);
        let Block::ToolResult(second) = &mut message.blocks[1] else { panic!("a result") };
        second.content = vec![Block::text("short")];
        let written = write(&message, Some(json));
        let expected = json.replace(r#""value":"long""#, r#""value":"short""#);
        assert_eq!(written.iter().map(RawJson::as_str).collect::<Vec<_>>(), [expected]);
        let plain = r#"{"role":"user","content":"old","providerOptions":{"y":2}}"#;
        let written = write(&Message::text(Role::User, "new"), Some(plain));
        assert_eq!(written[0].as_str(), plain.replace("old", "new"));
    }
}
