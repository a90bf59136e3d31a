//! Tool calls and tool results.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Chars, IMAGE_TOKENS, RawJson};

use super::Block;

/// The id that links a tool call to its result.
pub type CallId = Arc<str>;

/// The `type` of a tool call block. Real transcripts use all four.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum CallSpelling {
    /// `tool_use`: Anthropic.
    #[serde(rename = "tool_use")]
    ToolUse,
    /// `toolUse`: Bedrock and older agents.
    #[serde(rename = "toolUse")]
    ToolUseCamel,
    /// `toolCall`: pi.
    #[default]
    #[serde(rename = "toolCall")]
    ToolCall,
    /// `functionCall`: Gemini.
    #[serde(rename = "functionCall")]
    FunctionCall,
}

/// A tool call requested by the model.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToolCall {
    /// The id that links the call to its result.
    pub id: CallId,
    /// The name of the tool.
    pub name: String,
    /// The arguments, as the recorded JSON text.
    pub arguments: RawJson,
    /// The `type` of the block.
    #[serde(default)]
    pub spelling: CallSpelling,
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// The call this answers.
    pub call_id: CallId,
    /// The name of the tool, if the transcript records it.
    pub name: Option<String>,
    /// Text, images, and blocks of unknown kinds.
    pub content: Vec<Block>,
    /// Whether the tool failed.
    #[serde(default)]
    pub is_error: bool,
}

impl ToolCall {
    /// Creates a call in the default spelling.
    pub fn new(id: impl Into<CallId>, name: impl Into<String>, arguments: RawJson) -> Self {
        let spelling = CallSpelling::default();
        Self { id: id.into(), name: name.into(), arguments, spelling }
    }
}

impl ToolResult {
    /// Returns all text blocks, joined by line breaks.
    #[must_use]
    pub fn plain_text(&self) -> Cow<'_, str> {
        let mut texts = self.content.iter().filter_map(|b| match b {
            Block::Text { text } => Some(text.as_str()),
            _ => None,
        });
        let Some(first) = texts.next() else { return Cow::Borrowed("") };
        let mut all = Cow::Borrowed(first);
        for text in texts {
            let all = all.to_mut();
            all.push('\n');
            all.push_str(text);
        }
        all
    }

    /// Returns its size in UTF-16 units: text, the JSON of unknown blocks, and the tokens of images
    /// at four characters per token.
    #[must_use]
    pub fn chars(&self) -> u64 {
        let size = |block: &Block| match block {
            Block::Text { text } => u64::from(Chars::of(text).0),
            Block::Image(_) => u64::from(IMAGE_TOKENS) * 4,
            Block::Opaque { json } => json.stringified_chars(),
            _ => 0,
        };
        self.content.iter().map(size).sum()
    }
}
