//! Blocks of Bedrock Converse.

use ctx_core::{Block, ToolResult};

use crate::json::{Object, ObjectWriter, arguments_object, array};
use crate::shape::block_text;

/// Writes a block; `None` if the API refuses it: empty text, and thinking, whose signature would
/// not match.
pub(super) fn block(block: &Block) -> Option<String> {
    let under = |key, inner: ObjectWriter| Some(ObjectWriter::new().raw(key, inner.end()).end());
    match block {
        Block::Thinking { .. } => None,
        Block::ToolCall(call) => under(
            "toolUse",
            ObjectWriter::new()
                .text("toolUseId", &call.id)
                .text("name", &call.name)
                .raw("input", arguments_object(&call.arguments)),
        ),
        Block::ToolResult(result) => under("toolResult", self::result(result)),
        Block::Image(image) if !image.is_url => {
            let format = image.mime_type.rsplit('/').next().unwrap_or_default();
            let source = ObjectWriter::new().text("bytes", &image.data).end();
            under("image", ObjectWriter::new().text("format", format).raw("source", source))
        }
        Block::Opaque { json } if Object::parse(json.as_str()).is_ok() => {
            Some(json.as_str().to_owned())
        }
        block => {
            let text = block_text(block);
            (!text.trim().is_empty()).then(|| ObjectWriter::new().text("text", &text).end())
        }
    }
}

fn result(result: &ToolResult) -> ObjectWriter {
    let inner = |inner: &Block| match inner {
        // Neither calls nor results are nested.
        Block::ToolResult(_) | Block::ToolCall(_) => block(&Block::text(block_text(inner))),
        inner => block(inner),
    };
    ObjectWriter::new()
        .text("toolUseId", &result.call_id)
        .raw("content", array(result.content.iter().filter_map(inner)))
        .text_if("status", result.is_error.then_some("error"))
}
