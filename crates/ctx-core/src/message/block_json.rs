//! Deserializes a [`Block`] from JSON.
//!
//! serde buffers the content of a tagged enum, and raw JSON does not survive that buffer. So the
//! fields of all kinds are read first, and the kind is checked afterwards.

use serde::Deserialize;

use crate::RawJson;

use super::{BashRun, Block, CallId, CallSpelling, Image, ToolCall, ToolResult};

/// The fields of all kinds of blocks.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct BlockFields {
    r#type: String,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    id: Option<CallId>,
    name: Option<String>,
    arguments: Option<RawJson>,
    spelling: CallSpelling,
    call_id: Option<CallId>,
    content: Option<Vec<Block>>,
    is_error: bool,
    mime_type: Option<String>,
    data: Option<String>,
    is_url: bool,
    command: Option<String>,
    output: Option<String>,
    exit_code: Option<i64>,
    cancelled: bool,
    truncated: bool,
    full_output_path: Option<String>,
    exclude_from_context: bool,
    json: Option<RawJson>,
}

impl TryFrom<BlockFields> for Block {
    type Error = String;

    fn try_from(of: BlockFields) -> Result<Self, String> {
        let kind = of.r#type;
        let missing = |field: &str| format!("missing field '{field}' in a block of type '{kind}'");
        Ok(match &*kind {
            "text" => Self::Text { text: of.text.ok_or_else(|| missing("text"))? },
            "thinking" => Self::Thinking {
                thinking: of.thinking.ok_or_else(|| missing("thinking"))?,
                signature: of.signature,
            },
            "toolCall" => Self::ToolCall(ToolCall {
                id: of.id.ok_or_else(|| missing("id"))?,
                name: of.name.ok_or_else(|| missing("name"))?,
                arguments: of.arguments.ok_or_else(|| missing("arguments"))?,
                spelling: of.spelling,
            }),
            "toolResult" => Self::ToolResult(ToolResult {
                call_id: of.call_id.ok_or_else(|| missing("callId"))?,
                name: of.name,
                content: of.content.ok_or_else(|| missing("content"))?,
                is_error: of.is_error,
            }),
            "image" => Self::Image(Image {
                mime_type: of.mime_type.unwrap_or_default(),
                data: of.data.ok_or_else(|| missing("data"))?.into(),
                is_url: of.is_url,
            }),
            "bash" => Self::Bash(BashRun {
                command: of.command.unwrap_or_default(),
                output: of.output.unwrap_or_default(),
                exit_code: of.exit_code,
                cancelled: of.cancelled,
                truncated: of.truncated,
                full_output_path: of.full_output_path,
                exclude_from_context: of.exclude_from_context,
            }),
            "opaque" => Self::Opaque { json: of.json.ok_or_else(|| missing("json"))? },
            _ => return Err(format!("unknown block type '{kind}'")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_json_comes_back_byte_for_byte() {
        let call = ToolCall {
            id: "c1".into(),
            name: "read".into(),
            arguments: RawJson::from_text("{ \"b\": 1.50, \"a\": [1e400] }"),
            spelling: CallSpelling::ToolUse,
        };
        let blocks =
            vec![Block::ToolCall(call), Block::Opaque { json: RawJson::from_text("[ 0 ]") }];
        let json = serde_json::to_string(&blocks).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Block>>(&json).unwrap(), blocks);
    }

    #[test]
    fn an_error_names_what_is_missing() {
        let error = serde_json::from_str::<Block>(r#"{"type":"text"}"#).unwrap_err().to_string();
        assert!(error.contains("missing field 'text' in a block of type 'text'"), "{error}");
        let error =
            serde_json::from_str::<Block>(r#"{"type":"hologram"}"#).unwrap_err().to_string();
        assert!(error.contains("unknown block type 'hologram'"), "{error}");
    }
}
